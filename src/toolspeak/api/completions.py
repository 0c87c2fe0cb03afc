"""OpenAI's raw completions (`POST /v1/completions`): an exact prompt in, its continuation out.

The client's direction. Servers of one's own speak it still, and it is how a text model behind one is given
the very bytes of a prompt.
"""

from __future__ import annotations

from ..errors import UsageError
from ..events import Event
from ..types import Request
from . import openai_chat
from .payloads import Payload

TOKENS = 1024
"""The longest reply where the request sets no bound: the API's own default of 16 serves nobody."""


def write_request(request: Request, model: str, *, grammar_field: str = "") -> Payload:
    """The JSON body of a streamed request; it must have a `prompt`. `grammar_field`: where the server takes a grammar."""
    if request.prompt is None:
        raise UsageError("/v1/completions continues a prompt, and the request holds messages: render them first")
    body: Payload = {
        "model": model,
        "prompt": request.prompt,
        "max_tokens": TOKENS if request.max_tokens is None else request.max_tokens,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    sampling = {"temperature": request.temperature, "seed": request.seed}
    body |= {key: value for key, value in sampling.items() if value is not None}
    if request.stop:
        body["stop"] = list(request.stop)
    if request.grammar is not None and grammar_field:
        body |= openai_chat.write_grammar(grammar_field, request.grammar)
    return body | dict(request.sampling)


class ReplyReader(openai_chat.ReplyReader):
    """Events from the bytes of a reply, cut anywhere; the chat API's frames, with a `text` in the place of a message."""

    def _choice(self, choice: Payload) -> list[Event]:
        return super()._choice({**choice, "delta": {"content": choice.get("text")}})
