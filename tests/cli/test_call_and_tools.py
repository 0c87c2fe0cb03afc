"""`toolspeak call` and `toolspeak tools`."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from world import ANSI, Cli, Terminal

from toolspeak.cli.command_group import root


def run(*args: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(root, args, input=stdin)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [('{"a": 383, "b": 135721}', "136104\n"), ('{"a": "1", "b": 2}', "3\n")],
)
def test_a_call_is_checked_and_run(arguments: str, printed: str) -> None:
    done = run("call", "weather.py:add", arguments)
    assert (done.exit_code, done.stdout) == (0, printed)
    assert ("note: " in done.stderr) == ('"1"' in arguments)


def test_results_are_printed_as_they_are() -> None:
    assert run("call", "weather.py:weather", '{"city": "Oslo"}').stdout == "Sunny in Oslo, 21 °C\n"
    assert json.loads(run("call", "weather.py:weather", '{"city": "Oslo"}', "--json").stdout) == "Sunny in Oslo, 21 °C"
    assert run("call", "weather.py:add", "-", stdin='{"a": 1, "b": 2}').stdout == "3\n"


def test_what_a_tool_prints_goes_to_standard_error(cli: Cli) -> None:
    done = cli("call", "weather.py:noisy", '{"word": "ü"}')
    assert json.loads(done.stdout) == {"word": "ü"}
    for noise in ("printed", "written", "from a child"):
        assert noise in done.stderr


def test_every_problem_of_a_call_is_listed() -> None:
    done = run("call", "weather.py:add", '{"a": "x", "c": 2}')
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("error: the call cannot be run, 3 problems:\n")
    assert all(path in done.stderr for path in ("/a: ", "/b: ", "/c: "))


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["weather.py", "{}"], 2, "expected FILE:NAME"),
        (["one.py", "{}"], 2, "Did you mean 'one.py:only'?"),
        (["weather.py:wether", "{}"], 2, "Did you mean weather?"),
        (["weather.py:add,weather", "{}"], 2, "expected one tool"),
        (["weather.py:add", "{a: 1}"], 2, "the arguments are not JSON"),
        (["weather.py:add", "[1, 2]"], 2, "must be a JSON object"),
        (["weather.py:add", "[" * 100_000], 2, "nested too deeply"),
        (["weather.py:add", '{"a": 1, "a": 3, "b": 2}'], 2, "the arguments have 'a' twice"),
        (["weather.py:WEATHER", "{}"], 2, "has no WEATHER"),
        (["weather.py:broken", '{"word": "bread"}'], 1, "RuntimeError: no bread today"),
    ],
)
def test_what_cannot_be_called_is_told_in_a_line(place: Path, args: list[str], code: int, message: str) -> None:
    (place / "one.py").write_text("def only() -> None: ...\n", "utf-8")
    done = run("call", *args)
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_debug_shows_where_a_tool_failed() -> None:
    done = run("call", "weather.py:broken", '{"word": "bread"}', "--debug")
    assert 'weather.py", line' in done.stderr


def test_tools_are_json_when_piped() -> None:
    done = run("tools", "weather.py")
    told = {one["name"]: one for one in json.loads(done.stdout)}
    assert list(told) == ["weather", "add", "noisy", "broken", "slow"]
    assert told["weather"]["parameters"]["required"] == ["city"]
    assert told["weather"]["parameters"]["properties"]["city"]["description"] == "The city, e.g. Beijing"


def test_tools_are_a_table_on_a_terminal(terminal: Callable[..., Terminal]) -> None:
    code, seen = terminal("tools", "weather.py", COLUMNS="110").end()
    assert code == 0
    assert ANSI.search(seen)
    for text in ("weather", "city: string", 'unit?: "celsius" | "fahrenheit" = "celsius"', "Add two numbers."):
        assert text in seen


def test_only_what_is_public_and_defined_there_is_offered(place: Path) -> None:
    (place / "more.py").write_text(
        "from json import dumps\nfrom weather import add, weather\n"
        "class Thing: ...\ndef mine(x: int) -> int: return x\nalias = mine\ndef _own(): ...\n"
    )
    assert [one["name"] for one in json.loads(run("tools", "more.py").stdout)] == ["weather", "mine"]
    (place / "more.py").write_text("from weather import add\n__all__ = ['add']\n")
    assert [one["name"] for one in json.loads(run("tools", "more.py").stdout)] == ["add"]


def test_a_toolbox_can_be_named(place: Path) -> None:
    (place / "boxed.py").write_text(
        "from typing import Annotated\nimport toolspeak as ts\n"
        "def find(what: str, db: Annotated[dict, ts.Injected]) -> str:\n    return db[what]\n"
        "box = ts.Toolbox(find, inject={'db': {'key': 'under the mat'}}).prefix('home_')\n"
    )
    done = run("call", "boxed.py:box", '{"what": "key"}')
    assert done.stdout == "under the mat\n"


def test_a_tool_that_needs_a_value_of_the_application_says_so(place: Path) -> None:
    (place / "bare.py").write_text(
        "from typing import Annotated\nimport toolspeak as ts\n"
        "def find(what: str, db: Annotated[dict, ts.Injected]) -> str: return db[what]\n"
    )
    done = run("call", "bare.py:find", '{"what": "key"}')
    assert done.exit_code == 2
    assert "needs db" in done.stderr


PETS = {
    "openapi": "3.1.0",
    "servers": [{"url": "http://127.0.0.1:9"}],
    "paths": {
        "/pets": {"get": {"operationId": "list_pets"}, "post": {"operationId": "add-pet"}},
    },
}


@pytest.mark.parametrize(
    ("spec", "names"),
    [
        ("pets.json", ["list_pets", "add-pet"]),
        ("openapi:pets.json", ["list_pets", "add-pet"]),
        ("pets.json:list_pets", ["list_pets"]),
        ("pets.json:list_pets,add-pet", ["list_pets", "add-pet"]),
        ("openapi:pets.json:add-pet", ["add-pet"]),
        ("pets.yaml:list_pets", ["list_pets"]),
        ("openapi:pets.yaml:list_*", ["list_pets"]),
    ],
)
def test_the_operations_of_an_openapi_document_are_tools(place: Path, spec: str, names: list[str]) -> None:
    for name in ("pets.json", "pets.yaml"):
        (place / name).write_text(json.dumps(PETS), "utf-8")
    assert [one["name"] for one in json.loads(run("tools", spec).stdout)] == names


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["tools", "openapi:none.json"], 2, "none.json cannot be read"),
        (["tools", "openapi:http://127.0.0.1:9/openapi.json"], 2, "no answer from 127.0.0.1:9"),
        (["tools", "old.json"], 2, "swagger2openapi"),
        (["call", "pets.json:list_pets"], 1, "is not a public address"),
        (["call", "openapi:pets.json:add-pet"], 1, "is not a public address"),
        (["tools", "pets.json:list_pest"], 2, "Did you mean 'list_pets'?"),
        (["tools", "nobody.json"], 2, "nobody.json names no servers; expected {"),
        (["tools", "servers.json:my-nots"], 2, "has no server my-nots. It has: my-notes"),
    ],
)
def test_what_is_wrong_with_a_document_is_told_in_a_line(place: Path, args: list[str], code: int, message: str) -> None:
    (place / "pets.json").write_text(json.dumps(PETS), "utf-8")
    (place / "old.json").write_text('{"swagger": "2.0"}', "utf-8")
    (place / "nobody.json").write_text('{"mcpServers": {}}', "utf-8")
    (place / "servers.json").write_text('{"mcpServers": {"my-notes": {"command": "none"}}}', "utf-8")
    done = run(*args)
    assert (done.exit_code, done.stdout) == (code, "")
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_no_error_moves_the_cursor_of_a_terminal(terminal: Callable[..., Terminal]) -> None:
    """The words are of a server or a tool."""
    Path("failing.py").write_text(
        'def fail(how: str) -> str:\n    "Fail."\n    raise ValueError("\\x1b[2J\\x1b]0;title\\x07 \\x9b31m \\u202e and " + how)\n'
    )
    code, seen = terminal("call", "failing.py:fail", '{"how": "so"}', NO_COLOR="1").end()
    assert code == 1
    assert "␛[2J␛]0;title␇ \\x9b31m \\u202e and so" in seen
    assert not set("\x1b\x07\x9b\u202e") & set(seen)


def box_file(folder: Path) -> str:
    """A Python file with a toolbox and no function of its own."""
    text = "import toolspeak as ts\nfrom operator import add, mul\nbox = ts.Toolbox()\n"
    text += "box.define('add', lambda a, b: a + b)\nbox.define('mul', lambda a, b: a * b)\n"
    (folder / "boxed.py").write_text(text)
    return str(folder / "boxed.py")


def test_a_tool_of_a_toolbox_in_a_file(tmp_path: Path) -> None:
    file = box_file(tmp_path)
    for target in (f"{file}:box#mul", f"{file}#mul"):
        assert run("call", target, '{"a": 6, "b": 7}').stdout == "42\n"
    assert [tool["name"] for tool in json.loads(run("tools", file).stdout)] == ["add", "mul"]
    assert [tool["name"] for tool in json.loads(run("tools", f"{file}:box#mul").stdout)] == ["mul"]
    several = run("call", f"{file}:box", "{}")
    assert several.exit_code == 2
    assert f"names 2: add, mul. Name one of them: {file}:box#add" in several.stderr
    assert "Did you mean 'mul'?" in run("call", f"{file}:box#mull", "{}").stderr


def test_the_target_that_is_advised_works(tmp_path: Path) -> None:
    """For a tool of a toolbox, `FILE:NAME` was advised, and that there is none in the file."""
    (tmp_path / "plain.py").write_text(
        "import toolspeak as ts\n"
        "def mul(a: int, b: int) -> int: return a * b\n"
        "def add(a: int, b: int) -> int: return a + b\n"
        "minus = ts.tool(name='sub')(lambda a, b: a - b)\n"
    )
    api = {"openapi": "3.1.0", "servers": [{"url": "http://127.0.0.1:9"}], "paths": {
        f"/{name}": {"get": {"operationId": name, "responses": {}}} for name in ("mul", "more")
    }}  # fmt: skip
    (tmp_path / "api.json").write_text(json.dumps(api))
    (tmp_path / "boxes.py").write_text(
        "import toolspeak as ts\nbox = ts.Toolbox()\n"
        "box.define('add', lambda a, b: a + b)\nbox.define('mul', lambda a, b: a * b)\n"
    )
    boxed, plain, document = (str(tmp_path / name) for name in ("boxes.py", "plain.py", "api.json"))
    for target in (
        boxed, f"{boxed}:mul", f"{boxed}:mull", f"{boxed}:box", f"{boxed}:box#mull", plain, f"{plain}:mull", f"{plain}:mul,add", f"{plain}#mull",
        f"{plain}:sub", document, f"{document}:mull", f"openapi:{document}:m*", f"openapi:{document}:mull",
    ):  # fmt: skip
        error = run("call", target, "{}").stderr
        advised = re.search(r"(?:Did you mean|Name one of them:) '?([^\s'?]+)", error)
        assert advised, error
        whole = advised[1].startswith((str(tmp_path), "openapi:"))
        better = advised[1] if whole else re.sub("[^:#]*$", advised[1], target, count=1)
        (tool,) = json.loads(run("tools", better).stdout or "[]") or [{}]
        assert tool, (target, error, better)
    assert "It offers: box#add, box#mul" in run("call", f"{boxed}:other", "{}").stderr


def test_a_file_of_servers_is_not_started_for_advice(tmp_path: Path) -> None:
    began = tmp_path / "began"
    server = {"command": sys.executable, "args": ["-c", f"open({str(began)!r}, 'w')"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"s": server}}))
    assert "expected FILE:NAME" in run("call", str(tmp_path / "mcp.json"), "{}").stderr
    assert not began.exists()


def test_the_forms_of_a_target_are_named() -> None:
    for text in (run("call", "weather.py", "{}").stderr, run("call", "--help").stdout):
        for form in ("FILE:TOOLBOX#NAME", "openapi:DOCUMENT:NAME", "mcp:SERVER#NAME"):
            assert form in " ".join(text.split())


def test_a_schema_without_a_function_gets_no_options_that_call_lacks(tmp_path: Path) -> None:
    (tmp_path / "tools.json").write_text('[{"type": "function", "function": {"name": "f", "parameters": {}}}]')
    done = run("call", f"{tmp_path / 'tools.json'}:f", "{}")
    assert done.exit_code == 2
    assert "cannot be run. Offer the functions of a .py file" in done.stderr
    assert "--dry-run" not in done.stderr
