"""What is told of runs: tables, a page that stands alone, comparisons."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import toolspeak as ts
from toolspeak import evals
from toolspeak.evals import report
from toolspeak.evals.results import Manifest, opened

EVIL = '<script>alert("x")</script>&amp;\x00 {{ 7*7 }}'


def record(case: str, right: bool, contender: str = "one", group: str = "sums", **more: object) -> evals.Record:
    kind = "" if right else "wrong value"
    return evals.Record(
        case, group, contender, right, **{"kind": kind, "seconds": 0.5, "question": f"q {case}", **more}
    )


def run(contender: str, right: str, group: str = "sums") -> list[evals.Record]:
    """Records of cases named by their place; `+` is right."""
    return [record(f"{group}{i}", mark == "+", contender, group) for i, mark in enumerate(right)]


def kept(folder: Path, records: list[evals.Record]) -> str:
    with opened(folder, Manifest(["cases.jsonl"], 4, "d", {"temperature": 0.0, "seed": None}, "1")) as there:
        for one in records:
            there.add(one)
    return str(folder)


# ------------------------------------------------------------------ tables


def test_the_table() -> None:
    records = [*run("one", "++--"), *run("one", "++++", "greetings"), *run("a|b", "+---")]
    titles, rows = evals.table(evals.summarise(records))
    assert titles == ["", "one", "a|b"]
    assert rows[:5] == [
        ["sums", "50 % (15–85) 2/4", "25 % (5–70) 1/4"],
        ["greetings", "100 % (51–100) 4/4", "–"],
        ["mean of groups", "75 % (45–92)", "25 % (5–70)"],
        ["all cases", "75 % (41–93) 6/8", "25 % (5–70) 1/4"],
        ["wrong value", "2", "3"],
    ]
    lines = evals.markdown(evals.summarise(records)).splitlines()
    assert lines[0] == "|  | one | a\\|b |"
    assert all(len(re.findall(r"(?<!\\)\|", line)) == 4 for line in lines)


def test_a_summary_for_programs() -> None:
    (summary,) = evals.summarise(run("one", "+-"))
    told = json.loads(json.dumps(evals.as_json(summary), allow_nan=False))
    assert told["groups"]["sums"]["right"] == 1
    assert told["kinds"] == {"wrong value": 1}
    assert told["cost"] is None


# ------------------------------------------------------------------ the page


class Reader(HTMLParser):
    """Reads a page strictly: what is opened is closed, nothing is loaded, nothing is run."""

    VOID = ("meta", "br", "hr", "img", "input", "link", "rect", "line", "path")

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.text = ""
        self.tags: list[str] = []
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [
            f"{name}={value}" for name, value in attrs if name in ("src", "href", "action", "xlink:href", "srcset")
        ]
        assert not [name for name, _ in attrs if name.startswith("on")]
        if tag == "rect" or tag not in self.VOID:
            self.stack.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def read_page(text: str) -> Reader:
    reader = Reader()
    reader.feed(text)
    reader.close()
    assert reader.stack == []
    assert reader.links == []
    assert not {"script", "iframe", "object", "embed", "link", "img", "form"} & set(reader.tags)
    assert not re.search(r"url\(|@import|https?://", text)
    return reader


def test_the_page_stands_alone_and_escapes_everything(tmp_path: Path) -> None:
    score = {"prompt": f"def add(a): {EVIL}", "texts": [EVIL], "scores": [-12.345]}
    bad = record(
        EVIL, False, EVIL, EVIL, question=EVIL, tools=[EVIL], expected=[{"name": EVIL}], text=EVIL, detail=EVIL, notes=[EVIL],
        messages=[{"role": "user", "content": EVIL}] * 2,
        steps=[{"score": score}, {"ask": {"prompt": EVIL, "grammar": EVIL}, "came": {"text": EVIL, "finish": "stop"}}],
    )  # fmt: skip
    kept(tmp_path, [bad, *run("other", "++-")])
    path = report.write(tmp_path)
    page = read_page(path.read_text("utf-8"))
    assert page.text.count('<script>alert("x")</script>&amp;') >= 14
    assert "49" not in page.text
    assert "-12.35" in page.text or "-12.34" in page.text
    assert page.tags.count("svg") == 3


def test_the_page_compares_contenders_and_shows_what_failed(tmp_path: Path) -> None:
    kept(tmp_path, [*run("one", "+-+-"), *run("two", "++++")])
    page = read_page(report.write(tmp_path).read_text("utf-8"))
    assert "one → two" in page.text
    assert "2 cases won, 0 lost of 4, p = 0.5" in page.text
    assert "one: 2 of 4" in page.text
    assert "two: 0 of 4" in page.text
    assert "q sums1" in page.text
    assert "q sums0" not in page.text, "what was right is not shown"


def test_the_title_tells_the_page_from_others(tmp_path: Path) -> None:
    kept(tmp_path, [one for name in ("a<b", "two", "three", "four", "five") for one in run(name, "+")])
    text = report.write(tmp_path).read_text("utf-8")
    assert "<title>How well a&lt;b, two, three and 2 more did on " in text


def test_many_failures_are_cut_and_said_so(tmp_path: Path) -> None:
    kept(tmp_path, run("one", "-" * (report.MOST_FAILURES + 3)))
    assert "and 3 more, in the JSON lines" in read_page(report.write(tmp_path).read_text("utf-8")).text


def test_no_page_on_nothing(tmp_path: Path) -> None:
    kept(tmp_path, [])
    with pytest.raises(ts.UsageError, match="has no results yet"):
        report.write(tmp_path)


# ------------------------------------------------------------------ comparisons


def test_what_changed() -> None:
    found = evals.compare(run("one", "++--+-"), run("two", "+-++++"))
    assert (found.overall.both, found.overall.won, found.overall.lost, found.overall.neither) == (2, 3, 1, 0)
    assert [(after.case, after.right) for _, after in found.changes] == [
        ("sums1", False), ("sums2", True), ("sums3", True), ("sums5", True),
    ]  # fmt: skip
    assert found.overall.difference.value == pytest.approx(2 / 6)
    assert found.verdict == "No more than noise: 3 cases won, 1 lost of 6, p = 0.62."


def test_more_than_noise_says_who_is_better() -> None:
    worse, better = run("one", "-" * 10), run("two", "+" * 10)
    assert evals.compare(worse, better).verdict.startswith("More than noise, two is better than one: 10 cases won")
    assert evals.compare(better, worse).verdict.startswith("More than noise, two is better than one: 0 cases won")


def test_groups_count_the_same_in_their_mean() -> None:
    before = [*run("one", "----"), *run("one", "+" * 12, "other")]
    after = [*run("two", "++++"), *run("two", "+" * 12, "other")]
    found = evals.compare(before, after)
    assert found.overall.difference.value == 0.25
    assert found.macro.value == 0.5
    assert [row[0] for row in report.compared_rows(found)] == ["sums", "other", "mean of groups", "all cases"]


def test_cases_that_are_not_the_same_are_left_out() -> None:
    before, after = run("one", "+++"), run("two", "++++")
    after[0] = record("sums0", False, "two", expected=["else"])
    assert evals.compare(before, after).left_out == 2
    with pytest.raises(ts.UsageError, match="no case in common"):
        evals.compare(before[:1], after[1:])


def test_folders_by_name(tmp_path: Path) -> None:
    one = kept(tmp_path / "a", run("local", "+-"))
    other = kept(tmp_path / "b", run("local", "++"))
    (found,) = evals.compare_folders(one, other)
    assert (found.first, found.second) == (one, other)
    both = kept(tmp_path / "c", [*run("x", "+-"), *run("y", "++")])
    (inside,) = evals.compare_folders(both)
    assert (inside.first, inside.second) == ("x", "y")
    (named,) = evals.compare_folders(f"{both}#x", one)
    assert (named.first, named.second) == ("x", "local")
    assert len(evals.compare_folders(both, both)) == 2
    for wrong, said in [
        ((one,), "expected two contenders to compare, and .* holds local"),
        ((both, one), "say which, as in"),
        ((f"{both}#z", one), "holds no 'z'.*There are: x, y"),
        ((str(tmp_path / "none"), one), "holds no results of an evaluation"),
    ]:
        with pytest.raises(ts.UsageError, match=said):
            evals.compare_folders(*wrong)
