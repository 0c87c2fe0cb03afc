"""Results that are too large are cut where they always are, and all of them can be read."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, strategies as st

from toolspeak.plan.result_pages import NAME, PageSize, ResultPages, page, page_text, read_tool, too_large
from toolspeak.plan.token_estimate import about

SIZE = PageSize(100)
TEXT = "".join(f"line {i}\n" for i in range(1_000))
LEFT_OUT = re.compile(r'characters (\d+) to (\d+) of (\d+) are not shown; read_more\(result="(\w+)", start=(\d+)\)')
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=3_000)


def result(content: Any) -> Any:
    return {"role": "tool", "tool_call_id": "c", "content": content}


@given(texts, st.integers(1, 300), st.integers(1, 2_000))
def test_a_cut_result_and_its_pages_hold_every_character(text: str, tokens: int, characters: int) -> None:
    size = PageSize(tokens, characters)
    pages = ResultPages(size, NAME)
    [row] = pages.cut([result(text)])
    if size.fits(text):
        assert row.message == result(text)
        assert not pages.texts
        return
    assert too_large([result(text)], size)
    shown = str(row.message.get("content"))
    found = LEFT_OUT.search(shown)
    assert found
    start, _, length, name, again = found.groups()
    assert (start, int(length), pages.texts[name]) == (again, len(text), text)
    read, at = "", 0
    while at < len(text):
        one = page(pages.texts, {"result": name, "start": at}, size)
        assert one.start == at < one.end
        part = text[one.start : one.end]
        assert len(part) == 1 or (about(part) <= tokens and len(part) <= characters)
        read, at = read + part, one.end
    assert read == text


def test_what_is_shown_is_its_beginning_and_its_end() -> None:
    pages = ResultPages(SIZE, NAME)
    shown = str(pages.cut([result(TEXT)])[0].message.get("content"))
    start, end, length, name, _ = LEFT_OUT.search(shown).groups()  # type: ignore[union-attr]
    assert shown.startswith(TEXT[: int(start)])
    assert shown.endswith(TEXT[int(end) :])
    assert int(length) == len(TEXT)
    assert ResultPages(SIZE, NAME).cut([result(TEXT)]) == pages.cut([result(TEXT)])
    assert page_text(pages.texts, page(pages.texts, {"result": name, "start": "8700"}, SIZE), NAME).endswith(
        "; this is the end …]"
    )


def test_parts_are_cut_each_and_what_is_no_text_stays() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:"}}
    pages = ResultPages(SIZE, NAME)
    parts = [{"type": "text", "text": TEXT}, image, {"type": "text", "text": "short"}]
    content: Any = pages.cut([result(parts)])[0].message["content"]
    assert content[1:] == [image, {"type": "text", "text": "short"}]
    assert list(pages.texts.values()) == [TEXT]
    assert len(content[0]["text"]) < 600


def test_without_the_tool_nothing_speaks_of_it() -> None:
    pages = ResultPages(SIZE, "")
    assert "read_more" not in str(pages.cut([result(TEXT)]))
    assert pages.texts == {}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"result": "r0", "start": 0}, "There is no result 'r0' to read"),
        ({}, "line 0\n"),
        ({"result": "NAME", "start": 10**9}, "nothing follows character"),
        ({"result": "NAME", "find": "nowhere"}, "'nowhere' does not stand in"),
        ({"result": "NAME", "start": "a", "find": "line 500"}, "line 500\n"),
        ({"result": "NAM", "start": -5}, "line 0\n"),
        ({"result": " NAME ", "start": 2.0}, "ne 0\n"),
    ],
)
def test_calls_are_forgiven_or_answered(arguments: dict[str, Any], told: str) -> None:
    pages = ResultPages(SIZE, NAME)
    pages.cut([result(TEXT)])
    [name] = pages.texts
    if "result" in arguments:
        arguments["result"] = str(arguments["result"]).replace("NAME", name).replace("NAM", name[:4])
    assert told in page_text(pages.texts, page(pages.texts, arguments, SIZE), NAME)


def test_no_other_tool_has_its_name() -> None:
    assert [read_tool(names).name for names in ([], ["read_more"], ["read_more", "read_more_2"])] == [
        "read_more",
        "read_more_2",
        "read_more_3",
    ]


def test_wide_characters_count_as_tokens() -> None:
    text = "结果" * 200
    assert not SIZE.fits(text)
    assert SIZE.fits("result " * 40)
    assert ResultPages(SIZE, NAME).cut([result(text)])[0].message["content"].count("结果") in range(48, 51)  # type: ignore[union-attr]


def test_results_of_one_turn_share_what_they_have_together() -> None:
    """Small ones stay whole; those of another turn have their own share."""
    size = PageSize(100, together=150)
    asked: Any = {"role": "assistant", "content": None}
    small, large = result("a" * 40), result("b" * 360)
    assert not too_large([small, large, asked, large], size)
    turn = [small, large, large]
    assert too_large(turn, size)
    rows = ResultPages(size, NAME).cut([*turn, asked, large])
    assert [bool(row.whole) for row in rows] == [False, True, True, False, False]
    assert rows[1] == rows[2]
    shown = [LEFT_OUT.sub("", str(row.message.get("content"))) for row in rows[:3]]
    assert sum(map(about, shown)) <= 150 + 2 * about("\n[…  reads on …]\n")
