"""Digests by which an approval knows what it was given for: a tool's definition, its arguments, the conversation."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from ..types import Message, Tool


def canonical(value: Any) -> str:
    """JSON data as the one text that stands for it, whatever the order of its fields."""
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=repr)


def digest(value: Any) -> str:
    """SHA-256 of the canonical text of JSON data."""
    return "sha256:" + hashlib.sha256(canonical(value).encode()).hexdigest()


def definition_digest(tool: Tool[..., Any]) -> str:
    """The digest of all that a model and a policy know of a tool."""
    return digest([tool.name, tool.description, tool.parameters, tool.effect, tool.reads])


def call_digest(
    definition: str, key: str, arguments: Mapping[str, Any], messages: Sequence[Message], expires: float
) -> str:
    """The digest of the call with the id `key` that waits for approval, behind these messages, until it expires."""
    return digest([definition, key, dict(arguments), list(messages), expires])
