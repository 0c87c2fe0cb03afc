"""OpenAI's raw completions (`POST /v1/completions`): an exact prompt in, its continuation out.

Servers of one's own speak it still, and it is how a text model behind one is given the very bytes of a prompt.
"""

from ..openai_chat import write_error
from .reader import ReplyReader
from .request import BODY, SAMPLING, read_request, write_request
from .writer import ReplyWriter, write_reply

__all__ = [
    "BODY",
    "SAMPLING",
    "ReplyReader",
    "ReplyWriter",
    "read_request",
    "write_error",
    "write_reply",
    "write_request",
]
