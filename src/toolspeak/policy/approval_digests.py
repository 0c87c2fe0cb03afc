"""Digests that tie an approval to what was approved: a tool's definition, the arguments, and the conversation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..types import Message, Tool


def canonical(value: Any) -> str:
    """Return JSON data as canonical text, independent of the order of fields."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=repr)


def digest(value: Any) -> str:
    """Return the SHA-256 of the canonical text of JSON data."""
    return "sha256:" + hashlib.sha256(canonical(value).encode()).hexdigest()


def definition_digest(tool: Tool[..., Any]) -> str:
    """Return the digest of everything that a model and a policy know about a tool."""
    return digest([tool.name, tool.description, tool.parameters, tool.effect, tool.reads])


def call_digest(
    definition: str, key: str, arguments: Mapping[str, Any], messages: Sequence[Message], expires: float
) -> str:
    """Return the digest of a pending call with the id `key`, after these messages, until its expiry."""
    return digest([definition, key, dict(arguments), list(messages), expires])
