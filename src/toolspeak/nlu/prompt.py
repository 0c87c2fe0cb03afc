"""Prompts for scoring: tools as compact signatures after worked examples, the form that small models read best.

A tool is shown as a Python function without a body, with its description as the docstring. The examples are fixed and
use other tools, so that a model can cache the prompt up to the tool. Comparison with JSON Schema in the prompt:
`docs/explanation/weak-models.md`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ..types import Schema, Tool

REPLY: Tool[..., Any] = Tool(
    "reply",
    "Answer the user in words: greetings, small talk, questions about yourself, general knowledge.",
    {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]},
)
"""The pseudo-tool for "no tool"."""
LOOK_UP: Tool[..., Any] = Tool(
    "look_up",
    "Look up facts about people, places, things, prices, dates and events.",
    {"type": "object", "properties": {"question": {"type": "string"}}, "required": ["question"]},
)
"""The pseudo-tool for a question that none of the tools answers."""

WORDS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict"}


def signature(tool: Tool[..., Any]) -> str:
    """A tool as a function header with its docstring."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", ())
    parameters = [_parameter(name, schema, name in required) for name, schema in properties.items()]
    lines = [tool.description.strip()]
    lines += [f"{name}: {text}" for name, schema in properties.items() if (text := _described(schema))]
    body = "\n    ".join(line for part in lines for line in part.splitlines() if line.strip())
    return f'def {tool.name}({", ".join(parameters)}):\n    """{body}"""\n'


def _parameter(name: str, schema: Any, required: bool) -> str:
    text = f"{name}: {type_text(schema)}"
    if required:
        return text
    default: Any = schema.get("default") if isinstance(schema, Mapping) else None  # pyright: ignore
    return f"{text} = {literal(default)}"


def _described(schema: Any) -> str:
    return str(schema.get("description", "")).strip() if isinstance(schema, Mapping) else ""  # pyright: ignore[reportUnknownMemberType,reportUnknownArgumentType]


def type_text(schema: Any) -> str:
    """A JSON Schema as a short Python-like type: `str`, `"EUR" | "USD"`, `list[int]`."""
    if not isinstance(schema, Mapping):
        return "any"
    s: Schema = schema  # pyright: ignore[reportUnknownVariableType]
    if "enum" in s or "const" in s:
        return " | ".join(literal(value) for value in s.get("enum", [s.get("const")]))
    for union in ("anyOf", "oneOf"):
        if union in s:
            return " | ".join(dict.fromkeys(type_text(option) for option in s[union]))
    kind = s.get("type")
    if isinstance(kind, list):
        return " | ".join(WORDS.get(str(k), "None") for k in kind)  # pyright: ignore[reportUnknownVariableType,reportUnknownArgumentType]
    if kind == "array":
        return f"list[{type_text(s.get('items', {}))}]"
    return WORDS.get(str(kind), "None" if kind == "null" else "any")


def literal(value: Any) -> str:
    """A value as it is written in a call."""
    if value is None or isinstance(value, bool):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def request(text: str) -> str:
    """The line with a request; a call follows on the next line."""
    return f"\n# Request: {text}\n"


def _example(tool: Tool[..., Any], question: str, **arguments: Any) -> str:
    written = ", ".join(f"{key}={literal(value)}" for key, value in arguments.items())
    return f"{signature(tool)}{request(question)}{tool.name}({written})\n\n"


def _object(required: int, **properties: Any) -> Schema:
    return {"type": "object", "properties": properties, "required": list(properties)[:required]}


def _text(description: str) -> Schema:
    return {"type": "string", "description": description}


_CURRENCY = ["EUR", "USD", "JPY"]
_EMAIL: Tool[..., Any] = Tool(
    "send_email",
    "Send an email message.",
    _object(
        2,
        to={"type": "array", "items": {"type": "string"}, "description": "The addresses of the receivers."},
        subject=_text("The subject line."),
        urgent={"type": "boolean", "default": False},
    ),
)
_CONVERT: Tool[..., Any] = Tool(
    "convert_currency",
    "Convert money from one currency to another.",
    _object(
        3,
        amount={"type": "number", "description": "The amount of money."},
        source={"enum": _CURRENCY, "description": "The currency to convert from."},
        target={"enum": _CURRENCY, "description": "The currency to convert to."},
    ),
)

EXAMPLES = (
    "# Each request is answered by calling the function defined above it. Values are copied from the request.\n\n"
    + _example(
        _EMAIL,
        "Please mail bob@acme.com and li@corp.org about the late invoice.",
        to=["bob@acme.com", "li@corp.org"],
        subject="late invoice",
    )
    + _example(REPLY, "Good afternoon!", message="Good afternoon! How can I help you?")
    + _example(_CONVERT, "How many yen are 250 dollars?", amount=250, source="USD", target="JPY")
    + _example(REPLY, "Do you like cats?", message="I do! Cats are wonderful animals.")
    + _example(REPLY, "Who wrote Don Quixote?", message="Don Quixote was written by Miguel de Cervantes.")
    + _example(REPLY, "Good bye!", message="Good bye! Have a nice day.")
)
"""The worked examples, the same for every request."""


def framed(tool: Tool[..., Any]) -> str:
    """The prompt up to a request to one tool: the examples, then the tool."""
    return EXAMPLES + signature(tool)
