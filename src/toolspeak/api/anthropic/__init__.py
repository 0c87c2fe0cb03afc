"""Anthropic's Messages API (`POST /v1/messages`), which other servers implement too."""

from .reader import ReplyReader, read_count, read_usage
from .request import BODY, COUNT_BODY, read_request, write_count, write_request
from .writer import ReplyWriter, write_counted, write_error, write_model, write_models, write_reply, write_usage

__all__ = [
    "BODY", "COUNT_BODY", "ReplyReader", "ReplyWriter", "read_count", "read_request", "read_usage", "write_count",
    "write_counted", "write_error", "write_model", "write_models", "write_reply", "write_request", "write_usage",
]  # fmt: skip
