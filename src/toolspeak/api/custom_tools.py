"""Custom tools, which take text instead of JSON. The model gets a function with one string parameter, `input`.

A client describes such a tool as free text ("do not wrap it in JSON"). The description that the model reads says how both
fit together: the call has the one field, and what the client says of the text applies to its value.

The format of the text becomes part of the function's schema: a regular expression as `pattern`, a Lark grammar as the
keyword of `schema.text_grammars`. A call that violates either is requested again.
"""

from __future__ import annotations

from typing import Any

from ..schema.nonblocking_json import loads_or
from ..schema.text_grammars import KEYWORD, readable
from .json_stream import Payload, record

AS_FUNCTION = (
    "Here this tool is a function with one argument, the string `input`: pass the whole text in it. What is said of the "
    "text, such as its form or that it is not JSON, is about this string."
)
"""What a model reads of a custom tool beside the client's description."""


def function(tool: Payload) -> Payload:
    """Return the function for a custom tool."""
    form = grammar(tool)
    field: Payload = {"type": "string"}
    about = f"{tool.get('description') or ''}\n\n{AS_FUNCTION}"
    if form:
        about += f"\n\nThe text must fit this {form.get('syntax')} grammar:\n{form.get('definition')}"
    if form.get("syntax") == "regex":
        field["pattern"] = f"^({form.get('definition')})$"
    elif is_enforced(tool):
        field[KEYWORD] = form.get("definition")
    schema = {"type": "object", "properties": {"input": field}, "required": ["input"], "additionalProperties": False}
    return {"name": tool["name"], "description": about.strip(), "parameters": schema}


def custom_input(arguments: str) -> str:
    """Return the text in the arguments of the function; the arguments themselves if they have none."""
    value = record(loads_or(arguments, None)).get("input")
    return value if isinstance(value, str) else arguments


def grammar(tool: Payload) -> dict[str, Any]:
    """Return the grammar of a tool's format with its `syntax` and `definition`; empty if it accepts any text."""
    form = record(tool.get("format"))
    if form.get("type") != "grammar":
        return {}
    return record(form.get("grammar", form))


def is_enforced(tool: Payload) -> bool:
    """Whether the format of a tool is enforced here. If not, the model only sees it in the description."""
    form = grammar(tool)
    if form.get("syntax") in (None, "regex"):
        return True
    return readable(form.get("definition"))
