"""Which tool must be called, as the APIs' `tool_choice` has it: a word, or the name of a tool."""

from __future__ import annotations

from typing import Any

from ..errors import Refused
from ..types import Tool

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
        said = f"{param}: a call is required and no tool is offered that could be called; of a tool of the provider's: {TURN_OFF}"
        raise Refused(said, code="invalid_value", param=param)
    return word, offered


def of_name(name: str, offered: Offered, param: str) -> tuple[str, Offered]:
    """The choice of one tool, and the tools that it leaves. Raises Refused for one that is not offered."""
    found = tuple(tool for tool in offered if tool.name == name)
    if not found:
        said = f"{param}: there is no tool {name[:100]!r} among those that are offered"
        raise Refused(said, code="invalid_value", param=param)
    return ("required", found) if name in WORDS else (name, offered)  # a tool may be called like a word of ours
