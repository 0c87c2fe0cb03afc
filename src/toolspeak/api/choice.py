"""Reads and writes `tool_choice`: a mode such as "auto", or the name of the one tool that must be called."""

from __future__ import annotations

from typing import Any

from ..errors import Refused
from ..schema.suggestions import did_you_mean, near
from ..types import Tool
from .field_schemas import cannot

WORDS = ("auto", "none", "required")

TURN_OFF = (
    'turn that tool off in the client\'s settings (such as web_search = "disabled" where a configuration file has them), '
    "or offer a function that does it"
)
"""The advice if a request demands a provider's tool."""

Offered = tuple[Tool[..., Any], ...]


def of_word(word: str, offered: Offered, param: str) -> tuple[str, Offered]:
    """Return the choice for a word, and the tools that it leaves. Raises Refused if a required call is impossible."""
    if word == "required" and not offered:
        raise _nothing_to_call(param)
    return word, offered


def not_run(kind: str) -> Refused:
    """Return the refusal of a demand for a tool that only its provider can run."""
    if kind == "required":
        return _nothing_to_call("tool_choice")
    message = f"{kind[:100]!r} is a tool that only its provider runs: {TURN_OFF}"
    return cannot("tool_choice.type", message)


def _nothing_to_call(param: str) -> Refused:
    message = (
        f"{param}: a call is required, but no tool is offered that can be called. If the client means a provider's tool: "
        f"{TURN_OFF}"
    )
    return Refused(message, code="invalid_value", param=param)


def of_name(name: str, offered: Offered, param: str) -> tuple[str, Offered]:
    """Return the choice of one tool, and the tools that it leaves. Raises Refused for one that is not offered."""
    matches = tuple(tool for tool in offered if tool.name == name)
    if not matches:
        meant = did_you_mean(near(name[:100], [tool.name for tool in offered]))
        message = f"{param}: there is no tool {name[:100]!r} among those that are offered.{meant}"
        raise Refused(message, code="invalid_value", param=param)
    return ("required", matches) if name in WORDS else (name, offered)  # a tool may have the name of one of our words
