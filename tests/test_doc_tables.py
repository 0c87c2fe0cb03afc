"""The tables in the documentation are made from the code: `<!-- table: name -->` stands above each.

`python tests/test_doc_tables.py` writes them anew, and the pages that are generated whole; as a test it says which one
is no longer true.
"""

from __future__ import annotations

import ast
import datetime
import decimal
import enum
import json
import pathlib
import re
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest

import toolspeak as ts
from strategies import CASES
from toolspeak import errors
from toolspeak.cli.commands.dialects import TITLES, row as row_of
from toolspeak.models.http.providers import PROVIDERS

DOCS = Path(__file__).resolve().parents[1] / "docs"
TABLE = re.compile(r"(?<=<!-- table: )([\w-]+)( -->\n)((?:\|.*\n)*)")
Row = list[str]


def code(text: str) -> str:
    """The text as code in a cell: what Markdown would take for its own is written so that every renderer shows it."""
    if not re.search("[|`]", text):
        return f"`{text}`"
    shown = re.sub(r"[<>&|`*\[\]\\]", lambda special: f"&#{ord(special[0])};", text)
    return f"<code>{shown}</code>"


def providers() -> Iterator[Row]:
    yield ["name", "address", "key", "address from"]
    for row in PROVIDERS.values():
        address_from = code(f"${row.url_variable}") if row.url_variable else ""
        yield [code(f"{row.name}:"), code(row.url), code(f"${row.key_variable}"), address_from]


def strategies() -> Iterator[Row]:
    yield ["model", "what is known", "asked", "why"]
    for case in CASES:
        yield [case.model, case.known, f"**{case.asked}**", case.why]


def dialects() -> Iterator[Row]:
    yield list(TITLES)
    for name, models, call in map(row_of, map(ts.dialect, ts.dialects())):
        yield [code(name), models, code(call)]


def error_tree() -> Iterator[Row]:
    yield ["error", "status", "what it is"]

    def below(kind: type[errors.ToolspeakError], depth: int) -> Iterator[Row]:
        said = (kind.__doc__ or "").partition("\n")[0]
        yield ["&emsp;" * depth + code(kind.__name__), str(kind.status), said]
        for inner in kind.__subclasses__():
            if inner.__module__ == errors.__name__:
                yield from below(inner, depth + 1)

    yield from below(errors.ToolspeakError, 0)


def clients() -> Iterator[Row]:
    yield ["program", "versions", "asked by", "checks passed"]
    outcome = Path(__file__).parent / "clients" / "outcome.json"
    for name, row in json.loads(outcome.read_text("utf-8")).items():
        total = row["passed"] + row["failed"]
        versions = ", ".join(code(pin) for pin in row["pins"])
        yield [name, versions, ", ".join(row["ways"]), f"{row['passed']} of {total}"]


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
    yield ["annotation", "what the model sees"]
    for shown, kind in ANNOTATIONS.items():

        def function(x: Any) -> None: ...

        function.__annotations__["x"] = kind
        schema = ts.tool(function).parameters
        told = {key: value for key, value in schema["properties"]["x"].items() if key != "title"}
        if "$ref" in told:
            told = {key: value for key, value in next(iter(schema["$defs"].values())).items() if key != "title"}
        yield [code(shown), code(json.dumps(told))]


GIVEN: list[tuple[str, Any]] = [
    ("integer", "42"), ("integer", 42.0), ("integer", "042"), ("integer", "3.7"), ("integer", 3.7), ("integer", True),
    ("number", "2.50"), ("number", "1e3"), ("number", ""), ("number", True), ("number", "1,000"),
    ("boolean", "true"), ("boolean", "False"), ("boolean", "yes"), ("boolean", 1),
    ("null", "null"),
    ("string", 42), ("string", None),
    ("object", '{"a": 1}'), ("object", '{"a": 1, "a": 2}'), ("array", "[1, 2]"), ("array", "1, 2"), ("array", 1),
]  # fmt: skip


def coercion() -> Iterator[Row]:
    yield ["expected", "received", "result"]
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
    "strategies": strategies,
    "providers": providers,
    "dialects": dialects,
    "errors": error_tree,
    "annotations": annotations,
    "coercion": coercion,
    "schemas": schemas,
    "clients": clients,
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


# ------------------------------------------------------------------ the rules of notes

WIRE = Path(ts.__file__).parent / "wire"
RULES = re.compile(r"<!-- rules: (\w+) -->\n\|.*\n\|.*\n((?:\|.*\n)*)")
"""The files of `wire` whose notes tell of a prompt; those of the others tell of a reply."""
PLACES = {"note": 0, "Note": 0, "word": 0, "repair": 1}
"""The functions that are given a rule, and which argument it is."""


def rules_in(source: str) -> Iterator[str]:
    """The rules of notes in a file. A rule that is not written out stands in a variable of that name."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            place = PLACES.get(called, len(node.args))
            if place < len(node.args):
                yield from written(node.args[place])


def written(rule: ast.expr) -> Iterator[str]:
    if isinstance(rule, ast.IfExp):
        yield from (*written(rule.body), *written(rule.orelse))
    elif isinstance(rule, ast.Starred):
        yield from written(rule.value)
    elif isinstance(rule, ast.Tuple):
        yield from written(rule.elts[0])
    elif isinstance(rule, ast.Constant):
        yield rule.value
    else:
        assert ast.unparse(rule).rpartition(".")[2] == "rule" or isinstance(rule, ast.Name), ast.unparse(rule)


@pytest.mark.parametrize("what", ["read", "render"])
def test_every_rule_of_a_note_is_told(what: str) -> None:
    files = [path for path in WIRE.rglob("*.py") if (path.parent.name == "prompt") == (what == "render")]
    used = {rule for path in files for rule in rules_in(path.read_text("utf-8"))}
    tables = dict(RULES.findall((DOCS / "reference" / "notes.md").read_text("utf-8")))
    told = re.findall(r"^\| `([\w-]+)` \|", tables[what], re.MULTILINE)
    assert told == sorted(used)


def test_every_rule_of_a_note_on_a_run_is_told() -> None:
    files = [path for path in WIRE.parent.rglob("*.py") if WIRE not in path.parents]
    calls = [
        node for path in files for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call)
    ]
    notes = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Note" and call.args]
    used = {rule.value for rule in notes if isinstance(rule, ast.Constant)}
    rows = re.findall(r"^\| (`.+?) \|", (DOCS / "reference" / "notes.md").read_text("utf-8"), re.MULTILINE)
    assert used <= {rule for row in rows for rule in re.findall(r"`([\w-]+)`", row)}


GENERATORS = {
    "docs/reference/api.md": "scripts/api_reference.py",
    "docs/explanation/architecture.md": "scripts/architecture.py",
}
"""Pages that are generated whole; `test_docs.py` compares them."""


if __name__ == "__main__":
    for page in DOCS.rglob("*.md"):
        text = page.read_text("utf-8")
        new = TABLE.sub(lambda found: found[1] + found[2] + made(found[1]), text)
        if new != text:
            page.write_text(new, "utf-8")
    for script in GENERATORS.values():
        subprocess.run([sys.executable, script], cwd=DOCS.parent, check=True)
