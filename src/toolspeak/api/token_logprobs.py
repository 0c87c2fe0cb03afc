"""Reads the log probabilities of a text's tokens, in the form of the chat API.

Only the fields of the API are read, and only values of their types: a server may send anything beside them, of any size,
and all that is read is stored, counted and written once more.
"""

from __future__ import annotations

import math
from typing import Any, cast

from .json_stream import Payload, records
from .stream_reader import MOST_TOKENS

LONGEST_TOKEN = 4_096
"""The most characters, or bytes, of a token."""
MOST_ALTERNATIVES = 128
"""The most alternatives of a token that are read. Clients may request 20."""
LEAST = -9999.0
"""How the API writes the log probability of what is impossible: JSON has no infinity."""
BYTES = frozenset(range(256))
LOGPROB = 1_000
"""About the characters of a token's log probability in JSON, with 20 alternatives."""


def read_token_logprobs(value: Any) -> list[Payload]:
    """Return the log probabilities of tokens; what is no token is left out."""
    rows: list[Payload] = []
    for item in records(value) if value else ():
        if row := _token(item):
            others = records(item.get("top_logprobs"))[:MOST_ALTERNATIVES]
            rows.append({**row, "top_logprobs": [token for other in others if (token := _token(other))]})
    return rows


def _token(item: Payload) -> Payload:
    """Return a token with its log probability and its bytes, as far as they are sent; nothing for an impossible one."""
    token = item.get("token")
    if not isinstance(token, str) or len(token) > LONGEST_TOKEN:
        return {}
    return {"token": token, **_logprob(item.get("logprob")), **_bytes(item)}


def _logprob(value: Any) -> Payload:
    if isinstance(value, float):
        return {"logprob": value if math.isfinite(value) else LEAST}
    return {"logprob": value} if abs(_integer(value, 2 * MOST_TOKENS)) <= MOST_TOKENS else {}


def _bytes(item: Payload) -> Payload:
    if "bytes" not in item:
        return {}
    value = cast("list[Any]", item["bytes"] if isinstance(item["bytes"], list) else [None])
    fits = BYTES.issuperset(_integer(one, -1) for one in value) if len(value) <= LONGEST_TOKEN else False
    return {"bytes": value if fits else None}


def _integer(value: Any, default: int) -> int:
    return value if type(value) is int else default
