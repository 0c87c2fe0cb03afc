"""Puts examples of a tool's arguments into its description, for models that have no other place for them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..types import Tool

HEAD = "Examples of its arguments:"


def in_words(tools: Sequence[Tool[..., Any]]) -> tuple[Tool[..., Any], ...]:
    """The tools, each with its examples after its description."""
    return tuple(map(_described, tools)) if any(tool.examples for tool in tools) else tuple(tools)


def _described(tool: Tool[..., Any]) -> Tool[..., Any]:
    if not tool.examples:
        return tool
    lines = "\n".join([HEAD, *(json.dumps(dict(one), ensure_ascii=False, default=str) for one in tool.examples)])
    return replace(tool, description=f"{tool.description}\n\n{lines}".strip(), examples=())
