"""Builds a grammar of the replies that a dialect allows, for constrained sampling. The notations are in `grammars/`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

from ..errors import UsageError
from ..types import Tool
from .dialect import Dialect
from .grammars.calls import calls
from .grammars.engine_schemas import json_schema
from .grammars.gbnf import gbnf
from .grammars.lark import lark
from .grammars.reply import Thought, reply
from .grammars.rules import Rules
from .grammars.structural import structural_tag
from .reading.lexicon import THINK, program

Form = Literal["lark", "gbnf", "json_schema", "structural_tag"]
FORMS: tuple[Form, ...] = get_args(Form)


def grammar(
    d: Dialect,
    tools: Sequence[Tool[..., Any]],
    choice: str = "auto",
    form: Form = "lark",
    parallel: bool = True,
    prompt: str = "",
    thinking: bool = True,
) -> str | dict[str, Any]:
    """A grammar of every valid reply in the dialect. lark and gbnf are texts, the other forms are JSON data.

    `choice`: "auto" allows text, calls, or text and then calls; "required" allows calls, the name of a tool only calls
    of it; "none" allows text without a call. `parallel` allows several calls. If the dialect has thoughts, one may
    come first (not without `thinking`); it is already open if `prompt`, the text that the reply continues, ends inside
    it. Properties come in the order of their schema; optional ones may be omitted, and others follow if the schema
    allows them. Whitespace is that of the dialect when written. Raises UsageError if the form cannot express this.
    """
    if form not in FORMS:
        raise UsageError(f"form: expected {', '.join(FORMS)}, received {form!r}")
    tools = _chosen(d, tools, choice)
    if choice not in ("auto", "none"):
        choice = "required"
    if choice == "auto" and not tools:
        choice = "none"
    if form == "json_schema":
        return json_schema(d, tools, choice, parallel)
    thought: Thought = "open" if program(d, True).begins(prompt) == THINK else "may" if thinking else "never"
    if form == "structural_tag":
        return structural_tag(d, tools, choice, parallel, thought)
    rules = reply(d, tools, choice, parallel, thought)
    return lark(rules) if form == "lark" else gbnf(rules)


def _chosen(d: Dialect, tools: Sequence[Tool[..., Any]], choice: str) -> list[Tool[..., Any]]:
    """The tools that may be called."""
    if choice in ("auto", "none"):
        able = {tool.name for tool, _ in calls(d, tools, Rules())}
        return [tool for tool in tools if tool.name in able]
    fit = [tool for tool, _ in calls(d, tools, Rules()) if choice in ("required", tool.name)]
    if fit:
        return fit
    names = ", ".join(tool.name for tool in tools) or "none"
    if choice == "required" or any(tool.name == choice for tool in tools):
        raise UsageError(f"{d.name} cannot write a call of any of the tools ({names})")
    raise UsageError(f"choice: expected auto, none, required or an offered tool ({names}), received {choice!r}")
