"""OpenAI's chat completions (`POST /v1/chat/completions`), as OpenAI and the many servers like it speak it."""

from .reply import (
    ReplyReader,
    ReplyWriter,
    read_content,
    read_models,
    read_usage,
    write_error,
    write_model,
    write_models,
    write_reply,
    write_usage,
)
from .request import BODY, is_strict, read_request, write_choice, write_messages, write_request, write_tool

__all__ = [
    "BODY", "ReplyReader", "ReplyWriter", "is_strict", "read_content", "read_models", "read_request", "read_usage",
    "write_choice", "write_error", "write_messages", "write_model", "write_models", "write_reply", "write_request", "write_tool", "write_usage",
]  # fmt: skip
