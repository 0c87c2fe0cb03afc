"""`toolspeak tools`: print the tool definitions that a file's functions have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

import click

from ...display import visible
from ..options import Command, complete_file

if TYPE_CHECKING:
    from ...types import Tool
    from ..terminal import Out


@click.command(cls=Command)
@click.argument("files", metavar="FILE[:NAMES]...", nargs=-1, required=True, shell_complete=complete_file)
@click.option("--json", "as_json", is_flag=True, help="Print the JSON Schemas; this is the default when piped.")
def tools(files: tuple[str, ...], as_json: bool) -> None:
    """Show the tools in a file: names, descriptions, parameters.

    \b
    toolspeak tools weather.py
    toolspeak tools weather.py:forecast --json > tools.json
    """
    from ..terminal import answers
    from ..tool_sources import toolbox

    with answers() as out:
        box = toolbox(files)
        if as_json or not out.terminal:
            out.line(json.dumps(box.list(), indent=2, ensure_ascii=False))
        else:
            _table(out, list(box))


def _table(out: Out, tools: list[Tool[..., Any]]) -> None:
    from rich.table import Table
    from rich.text import Text

    from ..terminal import console

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("tool", "parameters", "what it does"):
        table.add_column(title)
    for one in tools:
        lines = [
            _parameter(name, schema, one.parameters) for name, schema in one.parameters.get("properties", {}).items()
        ]
        summary = one.description.partition("\n\n")[0]
        table.add_row(
            Text(visible(one.name), "cyan"), Text(visible("\n".join(lines) or "none")), Text(visible(summary))
        )
    console(out.stream).print(table)


def _parameter(name: str, schema: Any, parameters: Any) -> str:
    """Return a parameter as text, such as `city: string` or `days?: integer = 3`."""
    optional = "" if name in parameters.get("required", ()) else "?"
    node = cast("dict[str, Any]", schema) if isinstance(schema, dict) else {}
    default = f" = {json.dumps(node['default'], ensure_ascii=False)}" if "default" in node else ""
    return f"{name}{optional}: {_kind(schema)}{default}"


def _kind(schema: Any) -> str:
    """Return a JSON Schema in a word or two, such as `list of string`."""
    if not isinstance(schema, dict):
        return "anything"
    node = cast("dict[str, Any]", schema)
    if "enum" in node:
        return " | ".join(json.dumps(one, ensure_ascii=False) for one in node["enum"])
    if "anyOf" in node:
        return " | ".join(dict.fromkeys(_kind(one) for one in node["anyOf"]))
    if "$ref" in node:
        return str(node["$ref"]).rpartition("/")[2]
    kind: Any = node.get("type", "anything")
    if kind == "array":
        return f"list of {_kind(node.get('items', True))}"
    return " | ".join(cast("list[str]", kind)) if isinstance(kind, list) else str(kind)
