"""Python modules and files as tools."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

import toolspeak as ts

SOURCE = '''
from json import dumps
from toolspeak import tool

def add(a: int, b: int) -> int:
    """Adds."""
    return a + b

@tool
def name(x: str) -> str:
    return x

def _hidden(): ...

double = lambda x: 2 * x
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "own_tools.py"
    path.write_text(SOURCE, "utf-8")
    return path


def test_a_file_a_module_and_its_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    box = ts.module(file)
    assert [one.name for one in box] == ["add", "name"]
    assert box.call({"name": "add", "arguments": {"a": 1, "b": 2}}) == 3
    assert [one.name for one in ts.module(str(file), "add")] == ["add"]
    monkeypatch.syspath_prepend(str(file.parent))
    monkeypatch.delitem(sys.modules, "own_tools", raising=False)
    assert [one.name for one in ts.module("own_tools")] == ["add", "name"]
    assert [one.name for one in ts.module(sys.modules["own_tools"])] == ["add", "name"]


@pytest.mark.parametrize(
    ("source", "names", "said"),
    [
        ("no_such_module_anywhere", (), "there is no module no_such_module_anywhere"),
        ("not a name", (), "neither the name of a module nor the path"),
        ("missing.py", (), "missing.py cannot be read"),
        (types.ModuleType("empty"), (), "empty has no public function"),
        ("json", ("dump_s",), "json has no dump_s. Did you mean dump"),
    ],
)
def test_what_is_wrong_is_told(source: str, names: tuple[str, ...], said: str) -> None:
    with pytest.raises(ts.UsageError) as caught:
        ts.module(source, *names)
    assert said in str(caught.value)


def test_a_module_that_breaks_is_told_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("x = 1\nraise ValueError('no')\n", "utf-8")
    with pytest.raises(ts.UsageError, match="line 2: ValueError: no"):
        ts.module(path)
