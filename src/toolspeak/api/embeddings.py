"""Embeddings (`POST /v1/embeddings`, and Ollama's `POST /api/embed`), both directions.

Vectors are arrays: two million numbers of a reply take 16 MB. As Python's floats they take 70, in many small blocks that
are given back to the system only when no other object is near one.
"""

from __future__ import annotations

import base64
import struct
from array import array
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

from ..errors import ServerFailed
from ..schema import nonblocking_json
from ..schema.phrases import number_of
from ..types import Schema
from .base64_text import decode_base64
from .field_schemas import MODEL
from .json_stream import Payload, record, records

MOST = 2048
"""The most texts in one request, as at OpenAI."""
NUMBER = 20
"""Characters of a number."""
VECTOR = 262_144
"""Characters of JSON that are parsed in one step: about those of the longest usual vector."""
NUMBERS = ({float}, {int}, {float, int})
"""The types of the numbers of a vector. A bool is none."""
LARGEST = 3.4028234663852886e38
"""The largest 32-bit float."""


@dataclass(frozen=True, slots=True)
class Texts:
    """A client's request for embeddings. `dimensions`: the length of the vectors; `base64`: encode them as bytes."""

    model: str
    texts: tuple[str, ...]
    dimensions: int | None = None
    base64: bool = False
    ignored: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Vectors:
    """A vector for each text, in order, and the usage."""

    rows: tuple[Sequence[float], ...]
    tokens: int = 0


# ------------------------------------------------------------------ for a server


def reply_size(vectors: Vectors) -> int:
    """Return about how many characters a response has."""
    return NUMBER * sum(map(len, vectors.rows))


def write_request(texts: Sequence[str], model: str, dimensions: int | None = None) -> Payload:
    """Return the JSON body of a request to an OpenAI-compatible server."""
    body: Payload = {"model": model, "input": list(texts), "encoding_format": "float"}
    return body if dimensions is None else {**body, "dimensions": dimensions}


def write_ollama(texts: Sequence[str], model: str, dimensions: int | None = None) -> Payload:
    """Return the JSON body of a request to Ollama. `truncate` is off: Ollama would cut a long text silently."""
    body: Payload = {"model": model, "input": list(texts), "truncate": False}
    return body if dimensions is None else {**body, "dimensions": dimensions}


def read_body(raw: bytes, count: int) -> Vectors:
    """Return the vectors of `count` texts from the bytes of a response. Raises ValueError for what is not JSON."""
    text = raw.decode()
    return read_reply(record(nonblocking_json.loads(text, values=len(text), piece=VECTOR, packed=_packed)), count)


def read_reply(body: Payload, count: int) -> Vectors:
    """Return the vectors of `count` texts from a response of either API. Raises ServerFailed for anything else."""
    if "embeddings" in body:
        vectors = cast("list[Any]", body["embeddings"]) if isinstance(body["embeddings"], list) else []
        tokens = body.get("prompt_eval_count")
    else:
        rows = records(body.get("data"))
        order = [row.get("index") for row in rows]
        if sorted(order, key=str) == sorted(range(count), key=str):
            rows.sort(key=lambda row: row["index"])
        vectors = [row.get("embedding") for row in rows]
        tokens = record(body.get("usage")).get("prompt_tokens")
    if len(vectors) != count:
        raise ServerFailed(f"expected {number_of(count, 'vector')} from the server, got {len(vectors)}")
    return Vectors(tuple(map(_vector, vectors)), tokens if isinstance(tokens, int) and tokens > 0 else 0)


def _packed(value: Any) -> Any:
    """Return a list of numbers as an array, also in a row of a reply; any other value as it is."""
    if isinstance(value, dict) and "embedding" in value:
        value["embedding"] = _packed(value["embedding"])
    elif isinstance(value, list) and {*map(type, value := cast("list[Any]", value))} in NUMBERS:
        with suppress(OverflowError):
            return array("d", value)
    return cast("Any", value)


def _vector(value: Any) -> array[float]:
    row = _packed(_decoded(value) if isinstance(value, str) else value)
    if not isinstance(row, array) or not all(abs(number) <= LARGEST for number in cast("array[float]", row)):
        raise ServerFailed("expected a vector of numbers from the server, got something else")
    return cast("array[float]", row)


def _decoded(text: str) -> list[float]:
    raw = decode_base64(text)
    return [*struct.unpack(f"<{len(raw) // 4}f", raw)] if raw and len(raw) % 4 == 0 else []


# ------------------------------------------------------------------ for a client

TEXT: Schema = {"type": "string", "minLength": 1}
BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "required": ["model", "input"],
    "properties": {
        "model": MODEL,
        "input": {"anyOf": [TEXT, {"type": "array", "minItems": 1, "maxItems": MOST, "items": TEXT}]},
        "encoding_format": {"enum": ["float", "base64", None]},
        "dimensions": {"type": ["integer", "null"], "minimum": 1, "maximum": 65_536},
    },
}
"""The schema of a request body. It has the fields that are read; any others are reported as ignored."""


def read_request(body: Mapping[str, Any]) -> Texts:
    """Parse a body that matches BODY."""
    texts: str | list[str] = body["input"]
    known: Mapping[str, Any] = BODY["properties"]
    return Texts(
        body["model"],
        (texts,) if isinstance(texts, str) else tuple(texts),
        body.get("dimensions"),
        body.get("encoding_format") == "base64",
        tuple(sorted(name for name in body if name not in known)),
    )


def write_reply(vectors: Vectors, texts: Texts) -> Payload:
    """Return the vectors in the format that the client wants."""
    rows = [_encoded(row) if texts.base64 else as_array(row) for row in vectors.rows]
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": at, "embedding": row} for at, row in enumerate(rows)],
        "model": texts.model,
        "usage": {"prompt_tokens": vectors.tokens, "total_tokens": vectors.tokens},
    }


def as_array(row: Sequence[float]) -> array[float]:
    """Return a vector as an array, as which JSON encoders write it."""
    return row if isinstance(row, array) else array("d", row)


def _encoded(row: Sequence[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode()
