"""Reads a server's reply to `POST /v1/completions`, whole or streamed, into events.

The chunks are those of the chat API, with `text` in place of a message, and log probabilities in parallel lists.
"""

from __future__ import annotations

from typing import Any, cast

from ...events import Event
from .. import openai_chat
from ..json_stream import Payload, record
from ..token_logprobs import LONGEST_TOKEN


class ReplyReader(openai_chat.ReplyReader):
    """Reads events from the bytes of a reply in pieces; see the chat API's reader."""

    def _choice(self, choice: Payload) -> list[Event]:
        logprobs = record(choice.get("logprobs"))
        if "tokens" in logprobs:  # some servers use the chat API's format
            logprobs = {"content": read_logprobs(logprobs)}
        return super()._choice({**choice, "delta": {"content": choice.get("text")}, "logprobs": logprobs})


def read_logprobs(logprobs: Payload) -> list[Payload]:
    """Likelihoods in the form of the chat API, from this one's lists; what does not fit together is left out."""
    tokens, values, tops = (_list(logprobs.get(name)) for name in ("tokens", "token_logprobs", "top_logprobs"))
    rows: list[Payload] = []
    for at, (token, value) in enumerate(zip(tokens, values, strict=False)):
        if isinstance(token, str) and len(token) <= LONGEST_TOKEN and isinstance(value, int | float):
            others = record(tops[at]) if at < len(tops) else {}
            top = [_token(text, logprob) for text, logprob in others.items() if isinstance(logprob, int | float)]
            rows.append({**_token(token, value), "top_logprobs": top})
    return rows


def _token(token: str, value: float) -> Payload:
    return {"token": token, "logprob": value, "bytes": list(token.encode("utf-8", "replace"))}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []
