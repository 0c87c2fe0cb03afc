"""OpenAI's Responses API (`POST /v1/responses`), as OpenAI and the servers like it speak it."""

from .items import kept
from .reply import ReplyReader
from .request import BODY, read_request, write_request
from .writer import ReplyWriter, write_error, write_reply

__all__ = ["BODY", "ReplyReader", "ReplyWriter", "kept", "read_request", "write_error", "write_reply", "write_request"]
