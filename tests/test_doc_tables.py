"""The tables in the documentation are made from the code: `<!-- table: name -->` stands above each.

`python tests/test_doc_tables.py` writes them anew; as a test it says which one is no longer true.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import json
import pathlib
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import toolspeak as ts
from toolspeak import errors
from toolspeak.models.providers import PROVIDERS

DOCS = Path(__file__).resolve().parents[1] / "docs"
TABLE = re.compile(r"(?<=<!-- table: )([\w-]+)( -->\n)((?:\|.*\n)*)")
Row = list[str]


def code(text: str) -> str:
    return f"`{text}`"


def providers() -> Iterator[Row]:
    yield ["name", "address", "key", "address from"]
    for row in PROVIDERS.values():
        address_from = code(f"${row.url_variable}") if row.url_variable else ""
        yield [code(f"{row.name}:"), code(row.url), code(f"${row.key_variable}"), address_from]


def dialects() -> Iterator[Row]:
    yield ["dialect", "a call"]

    def add(a: int, b: int) -> int:
        return a + b

    function = {"name": "add", "arguments": '{"a": 1, "b": 2}'}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}
    for name in ts.dialects():
        told = ts.render([{"role": "user", "content": "1 + 2?"}, call], [add], name)  # pyright: ignore[reportArgumentType]
        wire = " ".join(str(next(m["content"] for m in told.messages if m["role"] == "assistant")).split())
        yield [code(name), code(wire)]


def error_tree() -> Iterator[Row]:
    yield ["error", "status", "what it is"]

    def below(kind: type[errors.ToolspeakError], depth: int) -> Iterator[Row]:
        said = (kind.__doc__ or "").partition("\n")[0]
        yield ["&emsp;" * depth + code(kind.__name__), str(kind.status), said]
        for inner in kind.__subclasses__():
            if inner.__module__ == errors.__name__:
                yield from below(inner, depth + 1)

    yield from below(errors.ToolspeakError, 0)


class Colour(enum.Enum):
    RED = "red"


ANNOTATIONS: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "int | None": int | None,
    "int | str": int | str,
    'Literal["on", "off"]': Literal["on", "off"],
    "Colour (an Enum)": Colour,
    "list[int]": list[int],
    "dict[str, float]": dict[str, float],
    "tuple[int, str]": tuple[int, str],
    "datetime.date": datetime.date,
    "datetime.datetime": datetime.datetime,
    "uuid.UUID": uuid.UUID,
    "decimal.Decimal": decimal.Decimal,
    "pathlib.Path": pathlib.Path,
    "bytes": bytes,
}


def annotations() -> Iterator[Row]:
    yield ["annotation", "what a model is told"]
    for shown, kind in ANNOTATIONS.items():

        def function(x: Any) -> None: ...

        function.__annotations__["x"] = kind
        schema = ts.tool(function).parameters
        told = {key: value for key, value in schema["properties"]["x"].items() if key != "title"}
        if "$ref" in told:
            told = {key: value for key, value in next(iter(schema["$defs"].values())).items() if key != "title"}
        yield [code(shown).replace("|", "\\|"), code(json.dumps(told)).replace("|", "\\|")]


GIVEN: list[tuple[str, Any]] = [
    ("integer", "42"), ("integer", 42.0), ("integer", "042"), ("integer", "3.7"), ("integer", 3.7), ("integer", True),
    ("number", "2.50"), ("number", "1e3"), ("number", ""), ("number", True), ("number", "1,000"),
    ("boolean", "true"), ("boolean", "False"), ("boolean", "yes"), ("boolean", 1),
    ("null", "null"),
    ("string", 42), ("string", None),
    ("object", '{"a": 1}'), ("object", '{"a": 1, "a": 2}'), ("array", "[1, 2]"), ("array", "1, 2"), ("array", 1),
]  # fmt: skip


def coercion() -> Iterator[Row]:
    yield ["wanted", "came", "becomes"]
    for kind, value in GIVEN:
        schema = {"type": "object", "properties": {"x": {"type": kind}}, "required": ["x"]}
        box = ts.Toolbox({"name": "f", "parameters": schema})
        checked = box.validate({"name": "f", "arguments": {"x": value}})
        becomes = code(json.dumps(checked.call.arguments["x"])) if checked.call else "refused"
        yield [kind, code(json.dumps(value)), becomes]


WRITTEN: list[dict[str, Any] | None] = [
    {"city": {"type": "str"}},
    {"type": "dict", "properties": {"days": "int"}},
    {"properties": {"at": {"type": "float", "required": True}}},
    {"type": "object", "properties": {"x": {"type": "string", "nullable": True}}},
    {"type": "object", "properties": {"x": {"type": "list", "items": "str"}}},
    None,
]


def schemas() -> Iterator[Row]:
    yield ["written", "understood as"]
    for parameters in WRITTEN:
        understood = ts.Toolbox({"name": "f", "parameters": parameters}).list()[0]["parameters"]
        yield [code(json.dumps(parameters)) if parameters is not None else "nothing", code(json.dumps(understood))]


TABLES: dict[str, Callable[[], Iterator[Row]]] = {
    "providers": providers,
    "dialects": dialects,
    "errors": error_tree,
    "annotations": annotations,
    "coercion": coercion,
    "schemas": schemas,
}


def made(name: str) -> str:
    head, *rows = TABLES[name]()
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines)


def standing() -> dict[str, str]:
    pages = [page.read_text("utf-8") for page in DOCS.rglob("*.md")]
    return {found[1]: found[3] for page in pages for found in TABLE.finditer(page)}


@pytest.mark.parametrize("name", TABLES)
def test_table_is_what_the_code_says(name: str) -> None:
    assert standing().get(name) == made(name), "run: python tests/test_doc_tables.py"


if __name__ == "__main__":
    for page in DOCS.rglob("*.md"):
        text = page.read_text("utf-8")
        new = TABLE.sub(lambda found: found[1] + found[2] + made(found[1]), text)
        if new != text:
            page.write_text(new, "utf-8")
