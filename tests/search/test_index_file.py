"""An index in a file: the same answers, functions by name, and a clear word on files that are none."""

from __future__ import annotations

import contextlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sunny in {city}"


def other() -> None:
    """Is not in the index."""


def index() -> ts.ToolIndex:
    schema = {"type": "object", "properties": {"q": {"type": "string", "description": "Was gesucht wird: größer"}}}
    tools = [weather, ts.Tool("find", "Looks something up.", schema, timeout=2.5, strict=True)]
    return ts.ToolIndex(tools, examples={"find": ["Where is it?", "哪里"]})


QUESTIONS = ("weather in a city", "look up", "哪里", "grosser")


def scored(index: ts.ToolIndex) -> list[list[tuple[str, float]]]:
    return [[(tool.name, score) for tool, score in index.search(question)] for question in QUESTIONS]


def test_a_loaded_index_gives_the_same_answers(tmp_path: Path) -> None:
    index().save(tmp_path / "tools.index")
    loaded = ts.ToolIndex.load(str(tmp_path / "tools.index"))
    assert scored(loaded) == scored(index())
    assert list(loaded) == list(index())
    assert loaded["weather"].function is None
    assert all(scored(loaded))


def test_functions_come_back_by_name(tmp_path: Path) -> None:
    index().save(tmp_path / "tools.index")
    loaded = ts.ToolIndex.load(tmp_path / "tools.index", tools=[weather, other])
    assert loaded["weather"]("Xiamen") == "Sunny in Xiamen"
    assert ts.Toolbox(loaded["weather"]).call({"name": "weather", "arguments": {"city": "Oslo"}}) == "Sunny in Oslo"
    assert loaded["find"].function is None
    assert len(loaded) == 2


def test_any_text_can_be_kept(tmp_path: Path) -> None:
    odd = ts.ToolIndex([ts.Tool("odd", "half a pair: \ud800 and \0")])
    odd.save(tmp_path / "i")
    assert list(ts.ToolIndex.load(tmp_path / "i")) == list(odd)


def test_equal_indexes_are_equal_files_and_saving_leaves_nothing_else(tmp_path: Path) -> None:
    index().save(tmp_path / "a")
    index().save(tmp_path / "b")
    index().save(tmp_path / "b")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert len(list(tmp_path.iterdir())) == 2


def zipped(path: Path, said: Any) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("index.json", said if isinstance(said, str) else json.dumps(said))
    return path


HEAD = {"format": "toolspeak-index", "version": 1}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("{", "broken"),
        ([], "no index"),
        ({"format": "other"}, "no index"),
        ({**HEAD, "version": 99}, "version 99"),
        (HEAD, "broken"),
        ({**HEAD, "tools": [{"name": "a"}], "examples": {}}, "broken"),
        ({**HEAD, "tools": 3, "examples": {}}, "broken"),
        ({**HEAD, "tools": [], "examples": []}, "broken"),
        ({**HEAD, "tools": [{"name": "", "description": "", "parameters": 3}], "examples": {}}, "broken"),
    ],
)
def test_a_foreign_or_broken_file_is_told(tmp_path: Path, said: Any, told: str) -> None:
    with pytest.raises(ts.UsageError, match=told):
        ts.ToolIndex.load(zipped(tmp_path / "i", said))


def test_a_damaged_file_is_told(tmp_path: Path) -> None:
    path = tmp_path / "tools.index"
    index().save(path)
    whole = path.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        with contextlib.suppress(ts.UsageError):
            assert list(ts.ToolIndex.load(path)) == list(index())  # a byte that says nothing, such as a date
        path.write_bytes(whole[:at])
        with pytest.raises(ts.UsageError, match="no index"):
            ts.ToolIndex.load(path)


def test_a_path_that_cannot_be_is_told(tmp_path: Path) -> None:
    with pytest.raises(ts.UsageError, match="there is no index"):
        ts.ToolIndex.load(tmp_path / "missing")
    with pytest.raises(ts.UsageError, match="no index"):
        ts.ToolIndex.load(tmp_path)
    with pytest.raises(ts.UsageError, match="cannot be written"):
        index().save(tmp_path / "missing" / "i")
    assert list(tmp_path.iterdir()) == []
