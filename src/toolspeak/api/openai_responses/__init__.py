"""OpenAI's Responses API (`POST /v1/responses`), which other servers implement too."""

from .items import is_reference, stored_items
from .reader import ReplyReader
from .request import BODY, read_request, write_request
from .writer import ReplyWriter, write_error, write_reply

__all__ = [
    "BODY",
    "ReplyReader",
    "ReplyWriter",
    "is_reference",
    "read_request",
    "stored_items",
    "write_error",
    "write_reply",
    "write_request",
]
