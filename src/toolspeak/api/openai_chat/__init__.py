"""OpenAI's chat completions (`POST /v1/chat/completions`), which many other servers implement too."""

from .messages import write_messages
from .reader import ReplyReader, read_content, read_models, read_usage
from .request import BODY, is_strict, read_request, write_constraints, write_request
from .tools import write_choice, write_tool
from .writer import ReplyWriter, write_error, write_model, write_models, write_reply, write_usage

__all__ = [
    "BODY", "ReplyReader", "ReplyWriter", "is_strict", "read_content", "read_models", "read_request", "read_usage",
    "write_choice", "write_constraints", "write_error", "write_messages", "write_model", "write_models", "write_reply",
    "write_request", "write_tool", "write_usage",
]  # fmt: skip
