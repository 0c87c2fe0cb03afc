"""OpenAI's raw completions (`POST /v1/completions`): an exact prompt in, its continuation out.

Self-hosted servers still offer this API. With it, a base model behind a server can be given the exact text of a prompt.
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
