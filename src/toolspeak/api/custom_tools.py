"""Custom tools, which take a text instead of JSON: to a model each is a function of one text, `input`.

A format of the text is part of the function's schema: a regular expression as `pattern`, a grammar in Lark's notation
as the keyword of `schema.text_grammars`. A call is held to both, and asked for again where it does not fit.
"""

from __future__ import annotations

from typing import Any

from ..schema.json_pieces import loads_or
from ..schema.text_grammars import KEYWORD, readable
from .json_stream import Payload, record


def function(tool: Payload) -> Payload:
    """The function that a custom tool is for a model."""
    form = grammar(tool)
    taken: Payload = {"type": "string"}
    said = tool.get("description") or ""
    if form:
        said += f"\n\nThe input must fit this {form.get('syntax')} grammar:\n{form.get('definition')}"
    if form.get("syntax") == "regex":
        taken["pattern"] = f"^({form.get('definition')})$"
    elif is_enforced(tool):
        taken[KEYWORD] = form.get("definition")
    schema = {"type": "object", "properties": {"input": taken}, "required": ["input"], "additionalProperties": False}
    return {"name": tool["name"], "description": said.strip(), "parameters": schema}


def custom_input(arguments: str) -> str:
    """The text that a custom tool is called with, from the arguments of its function; those themselves where they hold
    none."""
    value = record(loads_or(arguments, None)).get("input")
    return value if isinstance(value, str) else arguments


def grammar(tool: Payload) -> dict[str, Any]:
    """The grammar of a tool's format with its `syntax` and `definition`; empty where it takes any text."""
    form = record(tool.get("format"))
    if form.get("type") != "grammar":
        return {}
    return record(form.get("grammar", form))


def is_enforced(tool: Payload) -> bool:
    """Whether calls are held to the format of a tool here; else a model is only shown it."""
    form = grammar(tool)
    if form.get("syntax") in (None, "regex"):
        return True
    return readable(form.get("definition"))
