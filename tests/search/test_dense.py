"""What a tool means beside its words, with an embedder whose vectors are known."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toolspeak as ts

SUBJECTS = ("rain umbrella weather", "pay money bank")


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(tmp_path))


class Subjects:
    """A direction for each subject, and one for everything else."""

    name = "subjects-1"

    def __init__(self) -> None:
        self.seen: list[str] = []

    def embed(self, texts: Sequence[str]) -> Any:
        self.seen += texts
        rows = np.array([[sum(word in text for word in said.split()) for said in SUBJECTS] + [0.1] for text in texts])
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


TOOLS = [
    ts.Tool("forecast", "The weather of tomorrow."),
    ts.Tool("transfer", "Send money to another account."),
    ts.Tool("find_files", "Look for files by their names."),
]


def named(found: list[tuple[Any, float]]) -> list[str]:
    return [tool.name for tool, _ in found]


def test_what_shares_no_word_is_found_by_what_it_means() -> None:
    index = ts.ToolIndex(TOOLS, embed=Subjects())
    assert named(index.search("Do I take an umbrella?", 1)) == ["forecast"]
    assert ts.ToolIndex(TOOLS).search("Do I take an umbrella?") == []


def test_words_count_beside_what_is_meant() -> None:
    index = ts.ToolIndex([*TOOLS, ts.Tool("bank_holidays", "Days on which a bank is closed.")], embed=Subjects())
    found = index.search("closed days of the bank")
    assert found[0][0].name == "bank_holidays"
    assert found[0][1] == pytest.approx(1.0)
    assert all(0 <= score <= 1 for _, score in found)


def test_only_what_is_new_is_embedded_and_what_is_gone_is_not_found() -> None:
    embedder = Subjects()
    index = ts.ToolIndex(TOOLS[:2], embed=embedder)
    index.add(TOOLS[2])
    assert len(embedder.seen) == 3
    index.remove("forecast")
    assert "forecast" not in named(index.search("umbrella"))
    many = [ts.Tool(f"other{number}", "Nothing.") for number in range(100)]
    index.add(*many)
    index.remove(*[one.name for one in many])
    index.add(TOOLS[0])
    again = ts.ToolIndex([TOOLS[1], TOOLS[2], TOOLS[0]], embed=Subjects())
    for question in ("umbrella", "files", "money in the bank"):
        assert index.search(question) == again.search(question)


def test_vectors_of_tools_are_kept_and_those_of_questions_are_not() -> None:
    tools = [ts.Tool(f"tool{number}", "") for number in range(40)]
    index = ts.ToolIndex(tools, embed=Subjects())
    for number in range(40):
        index.search(f"question {number}")
    again = Subjects()
    ts.ToolIndex(tools, embed=again).search("question 1")
    assert again.seen == ["tool: question 1"]


def test_what_a_tool_is_for_counts_beside_its_many_parameters() -> None:
    told = {"type": "object", "properties": {name: {"description": "money to pay"} for name in ("one", "two", "three")}}
    embedder = Subjects()
    index = ts.ToolIndex([ts.Tool("forecast", "The weather of tomorrow.", told), TOOLS[1]], embed=embedder)
    assert sorted(text.count("money") for text in embedder.seen) == [0, 1, 3]  # the second tool's texts are one
    assert named(index.search("Do I take an umbrella?", 1)) == ["forecast"]


def test_a_loaded_index_is_given_what_embeds(tmp_path: Path) -> None:
    index = ts.ToolIndex(TOOLS, embed=Subjects())
    index.save(tmp_path / "i")
    loaded = ts.ToolIndex.load(tmp_path / "i", embed=Subjects())
    assert loaded.search("umbrella") == index.search("umbrella")


def test_nothing_is_added_where_the_embedder_fails() -> None:
    class Failing(Subjects):
        def embed(self, texts: Sequence[str]) -> Any:
            if any("file" in text for text in texts):
                return np.zeros((1, 1))
            return super().embed(texts)

    index = ts.ToolIndex(TOOLS[:2], embed=Failing())
    with pytest.raises(ts.ServerFailed, match="subjects-1 gave no vectors"):
        index.add(TOOLS[2], ts.Tool("more"))
    assert len(index) == 2
    assert named(index.search("umbrella", 1)) == ["forecast"]


@pytest.mark.parametrize("came", ["rows of text", [["a"]] * 2, [[1.0], [1.0, 2.0]], None])
def test_what_is_no_vectors_is_told(came: Any) -> None:
    class Odd(Subjects):
        name = "odd-1"

        def embed(self, texts: Sequence[str]) -> Any:
            return came

    with pytest.raises(ts.ServerFailed, match="odd-1 gave no vectors"):
        ts.ToolIndex(TOOLS[:1], embed=Odd())


def test_vectors_of_another_width_leave_the_index_as_it_was() -> None:
    class Growing(Subjects):
        width = 3

        def embed(self, texts: Sequence[str]) -> Any:
            return np.pad(super().embed(texts), ((0, 0), (0, self.width - 3)))

    index = ts.ToolIndex(TOOLS[:2], embed=(embedder := Growing()))
    embedder.width = 4
    with pytest.raises(ts.ServerFailed):
        index.add(TOOLS[2])
    embedder.width = 3
    assert named(index.search("umbrella", 1)) == ["forecast"]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_the_farthest_tool_comes_last_and_is_not_left_out(count: int) -> None:
    found = ts.ToolIndex(TOOLS[:count], embed=Subjects()).search("Do I take an umbrella?")
    assert len(found) == count
    assert all(0 < score <= 1 for _, score in found)


def test_others_search_while_tools_are_embedded() -> None:
    begun, goes_on = threading.Event(), threading.Event()

    class Slow(Subjects):
        def embed(self, texts: Sequence[str]) -> Any:
            if any("file" in text for text in texts):
                begun.set()
                assert goes_on.wait(30)
            return super().embed(texts)

    index = ts.ToolIndex(TOOLS[:2], embed=Slow())
    adding = threading.Thread(target=index.add, args=(TOOLS[2],))
    adding.start()
    assert begun.wait(30)
    searching = threading.Thread(target=lambda: (index.search("umbrella"), goes_on.set()), daemon=True)
    searching.start()
    searching.join(10)
    waited = searching.is_alive()
    goes_on.set()
    adding.join()
    assert not waited
    assert "find_files" in index


def test_equals_come_in_the_order_of_adding() -> None:
    class Wide(Subjects):
        name = "wide-1"

        def embed(self, texts: Sequence[str]) -> Any:
            rows = np.array([np.random.default_rng(list(text.split()[0].encode())).normal(size=384) for text in texts])
            return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    kinds = ["red", "blue", "green", "grey", "pink", "black", "white", "brown", "gold"]
    index = ts.ToolIndex([ts.Tool(f"{kind}_{'abc'[number]}") for number in range(3) for kind in kinds], embed=Wide())
    found = index.search("umbrella", 100)
    for kind in kinds:
        alike = [(tool.name, score) for tool, score in found if tool.name.startswith(kind)]
        assert [name for name, _ in alike] == sorted(name for name, _ in alike)
        assert len({score for _, score in alike}) == 1


@pytest.mark.parametrize("question", ["", "  \n", "\u200b"])
def test_nothing_asked_finds_nothing(question: str) -> None:
    assert ts.ToolIndex(TOOLS, embed=Subjects()).search(question) == []


def test_an_unknown_embedder_is_told() -> None:
    with pytest.raises(ts.UsageError, match="minilm"):
        ts.ToolIndex(TOOLS, embed="minilmm")
