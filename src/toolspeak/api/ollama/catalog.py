"""Ollama's models and its version: `/`, `/api/tags`, `/api/ps`, `/api/show`, `/api/version`; and `/api/embed`."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from ...types import Schema
from ..embeddings import BODY as EMBEDDINGS, Texts, Vectors
from ..field_schemas import FLAG, MODEL
from ..incoming import Stamp
from ..json_stream import Payload
from ..openai_chat.writer import CREATED
from .writer import moment

VERSION = "0.13.5"
"""The version of Ollama that `/api/version` names: clients check it for what they need of the API."""
DETAILS: Payload = {
    "parent_model": "", "format": "", "family": "", "families": [], "parameter_size": "", "quantization_level": "",
}  # fmt: skip
"""What is told of how a model was made: nothing, since nobody knows."""
RUNNING = b"Ollama is running"
"""What `/` answers: Ollama's own client looks there before each of its commands."""
FOREVER = datetime(2300, 1, 1, tzinfo=UTC)
"""When a model is unloaded: never. Ollama's own client says so of a time that is more than a hundred years away."""
SHOW_BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "properties": {"model": MODEL, "name": MODEL},
}
"""The body of a question for one model. Ollama's own client names it in `name`, beside an empty `model`."""
EMBED_BODY: Schema = {
    "type": "object",
    "additionalProperties": True,
    "required": ["model", "input"],
    "properties": {
        **{name: EMBEDDINGS["properties"][name] for name in ("model", "input", "dimensions")},
        "truncate": FLAG,
        "options": {"type": ["object", "null"]},
    },
}
"""The body of a question for vectors. A text that is too long is refused, whatever `truncate` says."""


def write_models(names: Sequence[str]) -> Payload:
    """The models there are (`GET /api/tags`). The digest is that of the name: clients tell models apart by it."""
    return {"models": [_model(name) for name in names]}


def _model(name: str) -> Payload:
    digest = hashlib.sha256(name.encode()).hexdigest()
    return {
        "name": name, "model": name, "modified_at": moment(CREATED), "size": 0, "digest": digest, "details": DETAILS,
    }  # fmt: skip


def write_running(contexts: Mapping[str, int | None]) -> Payload:
    """The models that are loaded (`GET /api/ps`): all, each with the tokens that it reads and writes at once, 0 where
    nobody knows."""
    expires = moment(int(FOREVER.timestamp()))
    return {
        "models": [
            {**_model(name), "expires_at": expires, "size_vram": 0, "context_length": context or 0}
            for name, context in contexts.items()
        ]
    }


def write_model(context: int | None) -> Payload:
    """What is known of a model (`POST /api/show`); `context` is how many tokens it reads and writes at once."""
    info: Payload = {"general.architecture": "toolspeak"}
    if context:
        info["toolspeak.context_length"] = context
    return {
        "modelfile": "", "parameters": "", "template": "", "details": DETAILS, "model_info": info,
        "capabilities": ["completion", "tools"], "modified_at": moment(CREATED),
    }  # fmt: skip


def write_version(own: str) -> Payload:
    """The version of the API, and in `toolspeak` that of the gateway (`GET /api/version`)."""
    return {"version": VERSION, "toolspeak": own}


def read_texts(body: Mapping[str, Any]) -> Texts:
    """What a body that fits EMBED_BODY asks for."""
    texts: str | list[str] = body["input"]
    known = EMBED_BODY["properties"]
    return Texts(
        body["model"], (texts,) if isinstance(texts, str) else tuple(texts), body.get("dimensions"),
        ignored=tuple(sorted(name for name in body if name not in known or name in ("truncate", "options"))),
    )  # fmt: skip


def write_vectors(vectors: Vectors, asked: Texts, stamp: Stamp) -> Payload:
    """The vectors as the client wants them."""
    return {
        "model": asked.model,
        "embeddings": [list(row) for row in vectors.rows],
        "total_duration": max(1, round(stamp.times()[1] * 1e9)),
        "load_duration": 0,
        "prompt_eval_count": vectors.tokens,
    }
