"""Reads and writes `tool_choice`: a word, or the name of the tool that must be called."""

from __future__ import annotations

from typing import Any

from ..errors import Refused
from ..types import Tool
from .field_schemas import cannot

WORDS = ("auto", "none", "required")

TURN_OFF = (
    'turn that tool off in the client\'s settings (such as web_search = "disabled" where a configuration file has them), '
    "or offer a function that does it"
)
"""What helps where a tool of the provider's is demanded."""

Offered = tuple[Tool[..., Any], ...]


def of_word(word: str, offered: Offered, param: str) -> tuple[str, Offered]:
    """The choice that a word makes, and the tools that it leaves. Raises Refused where a call cannot be."""
    if word == "required" and not offered:
        raise _nothing_to_call(param)
    return word, offered


def not_run(kind: str) -> Refused:
    """The refusal of a demand for a tool that its provider runs."""
    if kind == "required":
        return _nothing_to_call("tool_choice")
    said = f"{kind[:100]!r} is a tool that runs at its provider, and nobody runs it here: {TURN_OFF}"
    return cannot("tool_choice.type", said)


def _nothing_to_call(param: str) -> Refused:
    said = (
        f"{param}: a call is required and no tool is offered that could be called; of a tool of the provider's: "
        f"{TURN_OFF}"
    )
    return Refused(said, code="invalid_value", param=param)


def of_name(name: str, offered: Offered, param: str) -> tuple[str, Offered]:
    """The choice of one tool, and the tools that it leaves. Raises Refused for one that is not offered."""
    found = tuple(tool for tool in offered if tool.name == name)
    if not found:
        said = f"{param}: there is no tool {name[:100]!r} among those that are offered"
        raise Refused(said, code="invalid_value", param=param)
    return ("required", found) if name in WORDS else (name, offered)  # a tool may be called like a word of ours
