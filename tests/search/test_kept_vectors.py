"""Vectors that are kept: asked for once, shared by processes, harmless when broken."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="the extra dense is not installed")

import toolspeak as ts  # noqa: E402
from toolspeak.search import vector_cache  # noqa: E402
from toolspeak.search.embedders import Embedder  # noqa: E402
from toolspeak.search.vector_cache import TOGETHER, CachingEmbedder  # noqa: E402


class Counting:
    """Gives (length, 1, …) and remembers what it was asked."""

    def __init__(self, name: str = "counting", width: int = 2) -> None:
        self.name, self.width = name, width
        self.asked: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.asked += texts
        return np.array([[len(text), *[1] * (self.width - 1)] for text in texts], np.float32).reshape(-1, self.width)


def many(count: int = TOGETHER, of: str = "x") -> list[str]:
    return [of * n for n in range(1, count + 1)]


def test_it_is_an_embedder_that_asks_once(tmp_path: Path) -> None:
    inner = Counting()
    one = CachingEmbedder(inner, tmp_path)
    assert isinstance(one, Embedder)
    assert one.name == "counting"
    assert one.embed(["a", "bb", "a"]).tolist() == [[1, 1], [2, 1], [1, 1]]
    assert one.embed(["bb", "ccc"]).tolist() == [[2, 1], [3, 1]]
    assert inner.asked == ["a", "bb", "ccc"]
    assert one.embed([]).shape == (0, 2)


def test_the_next_process_finds_them_and_another_model_does_not(tmp_path: Path) -> None:
    CachingEmbedder(Counting(), tmp_path).embed(many())
    again, other = Counting(), Counting("other")
    assert CachingEmbedder(again, tmp_path).embed(many()).tolist() == [[n, 1] for n in range(1, TOGETHER + 1)]
    CachingEmbedder(other, tmp_path).embed(["x"])
    assert again.asked == []
    assert other.asked == ["x"]


def test_a_few_are_written_when_told(tmp_path: Path) -> None:
    one = CachingEmbedder(Counting(), tmp_path)
    one.embed(["a"])
    assert not one.path.exists()
    one.flush()
    again = Counting()
    CachingEmbedder(again, tmp_path).embed(["a"])
    assert again.asked == []


def test_two_that_write_lose_nothing(tmp_path: Path) -> None:
    first, second = CachingEmbedder(Counting(), tmp_path), CachingEmbedder(Counting(), tmp_path)
    first.embed(many(of="a"))
    second.embed(many(of="b"))
    first.embed(many(of="c"))
    third = Counting()
    CachingEmbedder(third, tmp_path).embed([*many(of="a"), *many(of="b"), *many(of="c")])
    assert third.asked == []
    assert [path.name for path in tmp_path.iterdir() if path.name != ".lock"] == [first.path.name]


PROCESS = """
import sys, numpy as np
from pathlib import Path
from toolspeak.search.vector_cache import CachingEmbedder
class One:
    name = "counting"
    def embed(self, texts): return np.array([[len(t), 1] for t in texts], np.float32)
for n in range(8):
    one = CachingEmbedder(One(), Path(sys.argv[1]))
    one.embed([f"{sys.argv[2]} {n} {k}" for k in range(4)])
    one.flush()
"""


def test_processes_at_once_lose_nothing(tmp_path: Path) -> None:
    pytest.importorskip("fcntl", reason="no locks between processes here")
    running = [subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path), name]) for name in "abc"]
    assert [process.wait(120) for process in running] == [0, 0, 0]
    inner = Counting()
    CachingEmbedder(inner, tmp_path).embed([f"{name} {n} {k}" for name in "abc" for n in range(8) for k in range(4)])
    assert inner.asked == []


@pytest.mark.parametrize("content", [b"", b"no array", b"\x93NUMPY\x01\x00", "plain"])
def test_a_broken_file_is_made_anew(tmp_path: Path, content: Any) -> None:
    one = CachingEmbedder(Counting(), tmp_path)
    if content == "plain":
        np.save(one.path, np.ones(3))
    else:
        one.path.write_bytes(content)
    assert one.embed(many()).shape == (TOGETHER, 2)
    again = Counting()
    CachingEmbedder(again, tmp_path).embed(many())
    assert again.asked == []


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    assert CachingEmbedder(Counting(), tmp_path / "file" / "folder").embed(many()).shape == (TOGETHER, 2)


def test_the_oldest_go_when_there_are_too_many(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_cache, "BYTES", 40 * (16 + 2 * 4))
    one = CachingEmbedder(Counting(), tmp_path)
    one.embed(many(of="a"))
    one.embed(many(of="b"))
    assert len(np.load(one.path)) == 40
    inner = Counting()
    CachingEmbedder(inner, tmp_path).embed([*many(of="b"), "a"])
    assert inner.asked == ["a"]


def test_a_server_that_has_another_model_now(tmp_path: Path) -> None:
    CachingEmbedder(Counting(), tmp_path).embed(many())
    with pytest.raises(
        ts.ServerFailed, match=r"vectors of 3 numbers now, and gave 2 before: it is another model. Remove"
    ):
        CachingEmbedder(Counting(width=3), tmp_path).embed(["x", "new"])


def test_where_they_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path))
    assert CachingEmbedder(Counting()).path.parent == tmp_path / "vectors"
