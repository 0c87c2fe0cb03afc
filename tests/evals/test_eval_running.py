"""Runs: every case judged and kept with all that was asked; gone on with after an end of any kind."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from replies import calls, native
from toolspeak import evals
from toolspeak.errors import BadRequest, KeyRefused, ModelUnreachable, ServerFailed
from toolspeak.evals import Contender, Settings
from toolspeak.evals.trace import packed
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.models.base import Capability
from toolspeak.models.speaker import Speaker
from toolspeak.types import Request, Usage


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


TOOLS = tuple(ts.Toolbox(add))
SUM = ("add", {"a": 3, "b": 4})
RIGHT = calls(SUM)
WRITTEN = json.dumps({"tool": "add", "tool_input": {"a": 3, "b": 4}})


@pytest.fixture
def cases(tmp_path: Path) -> list[evals.Case]:
    """Three sums and two greetings."""
    sums = [
        {"id": f"sum{i}", "group": "sums", "question": "3 + 4?", "calls": [{"name": "add", "arguments": SUM[1]}]}
        for i in range(3)
    ]
    greetings = [{"id": f"hi{i}", "group": "greetings", "question": "Hi!", "calls": []} for i in range(2)]
    path = tmp_path / "cases.jsonl"
    path.write_text("\n".join(map(json.dumps, [*sums, *greetings])), "utf-8")
    return evals.load(str(path), tools=TOOLS)


def verdicts(records: Sequence[evals.Record]) -> dict[str, str]:
    return {record.case: record.kind or "right" for record in records}


def test_what_is_kept(cases: list[evals.Case], tmp_path: Path) -> None:
    model = native(RIGHT, "Hello!", calls(("add", {"a": 3, "b": 5})), RIGHT, calls(("sub", {})))
    records = evals.run(cases, [Contender(model)], tmp_path / "out")
    assert verdicts(records) == {
        "sum0": "right",
        "hi0": "right",
        "sum1": "wrong value",
        "hi1": "needless call",
        "sum2": "invalid",
    }
    assert evals.read(tmp_path / "out") == records
    first = records[0]
    assert (first.contender, first.group, first.question, first.tools) == ("scripted", "sums", "3 + 4?", ["add"])
    assert first.calls == first.expected == [{"name": "add", "arguments": {"a": 3, "b": 4}}]
    (step,) = first.steps
    assert step["ask"]["messages"] == [{"role": "user", "content": "3 + 4?"}]
    assert [tool["name"] for tool in step["ask"]["tools"]] == ["add"]
    assert step["ask"]["temperature"] == 0
    assert step["came"]["calls"] == [{"name": "add", "json": '{"a": 3, "b": 4}'}]
    invalid = records[-1]
    assert "no tool 'sub'" in invalid.detail
    assert len(model.requests) == 5, "with one try nothing is asked twice"


def test_the_text_model_is_recorded_below_its_dialect(cases: list[evals.Case], tmp_path: Path) -> None:
    model = ts.Scripted([WRITTEN], repeat=True)
    (record,) = evals.run(cases[:1], [Contender(Speaker(model, "tool-json"))], tmp_path / "out")
    (step,) = record.steps
    assert "You have access to the following tools" in step["ask"]["messages"][0]["content"]
    assert step["came"]["text"] == WRITTEN
    assert record.right


def test_sampling_is_passed_on(cases: list[evals.Case], tmp_path: Path) -> None:
    model = native(RIGHT)
    evals.run(cases[:1], [Contender(model)], tmp_path / "out", Settings(temperature=0.5, seed=7, max_tokens=50))
    (request,) = model.requests
    assert (request.temperature, request.seed, request.max_tokens) == (0.5, 7, 50)
    told = evals.read_manifest(tmp_path / "out")
    assert told.settings["seed"] == 7
    assert (told.cases, told.sources) == (1, ["sums"])


def test_tries(cases: list[evals.Case], tmp_path: Path) -> None:
    model = native(calls(("sub", {})), RIGHT)
    (record,) = evals.run(cases[:1], [Contender(model)], tmp_path / "out", Settings(tries=2))
    assert record.right
    assert len(record.steps) == 2


def test_errors_of_the_model_are_wrong_answers(cases: list[evals.Case], tmp_path: Path) -> None:
    model = native(RIGHT, ServerFailed("it broke"), BadRequest("too long"), "Hello!", RIGHT)
    records = evals.run(cases, [Contender(model)], tmp_path / "out")
    assert verdicts(records) == {"sum0": "right", "hi0": "error", "sum1": "error", "hi1": "right", "sum2": "right"}
    assert records[1].detail == "ServerFailed: it broke"
    again = native("Hello!", RIGHT)
    records = evals.run(cases, [Contender(again)], tmp_path / "out", errors_again=True)
    assert set(verdicts(records).values()) == {"right"}
    assert len(records) == len(evals.read(tmp_path / "out")) == 5


@pytest.mark.parametrize("error", [ModelUnreachable("no server there"), KeyRefused("no such key")])
def test_errors_that_come_for_every_case_stop_the_run(
    cases: list[evals.Case], tmp_path: Path, error: Exception
) -> None:
    with pytest.raises(type(error)):
        evals.run(cases, [Contender(native(RIGHT, "Hello!", error))], tmp_path / "out")
    assert verdicts(evals.read(tmp_path / "out")) == {"sum0": "right", "hi0": "right"}
    rest = native(RIGHT, "Hello!", RIGHT)
    records = evals.run(cases, [Contender(rest)], tmp_path / "out")
    assert len(rest.requests) == 3
    assert set(verdicts(records).values()) == {"right"}


def test_the_same_error_from_the_first_case_on_is_one_of_the_setup(cases: list[evals.Case], tmp_path: Path) -> None:
    refuses = native(*[BadRequest("no model of that name")] * 9)
    with pytest.raises(ts.ModelError, match=r"the first 5 cases of scripted all ended so.*no model of that name"):
        evals.run(cases, [Contender(refuses)], tmp_path / "out")
    assert evals.read(tmp_path / "out") == []
    few = evals.run(cases[:2], [Contender(native(*[BadRequest("no")] * 2))], tmp_path / "few")
    assert verdicts(few) == {"sum0": "error", "sum1": "error"}


def test_several_contenders_in_one_folder(cases: list[evals.Case], tmp_path: Path) -> None:
    one = Contender(native(*[RIGHT] * 5), title="always")
    two = Contender(native(*["Hello!"] * 5), title="never")
    assert len(evals.run(cases, [one, two], tmp_path / "out")) == 10
    three = Contender(native(RIGHT, "Hello!", RIGHT, "Hello!", RIGHT), title="rightly")
    added = evals.run(cases, [three], tmp_path / "out")
    assert {record.contender for record in added} == {"rightly"}
    summaries = evals.summarise(evals.read(tmp_path / "out"))
    assert [(s.contender, s.overall.right) for s in summaries] == [("always", 3), ("never", 2), ("rightly", 5)]
    assert [s.macro.value for s in summaries] == [0.5, 0.5, 1.0]
    with pytest.raises(ts.UsageError, match="two contenders are called 'scripted'"):
        evals.run(cases, [Contender(native("a")), Contender(native("b"))], tmp_path / "other")


def test_no_password_of_an_address_is_kept() -> None:
    assert Contender("http://me:secret@127.0.0.1:9/v1#m", "react").label == "http://127.0.0.1:9/v1#m · react"


def test_other_cases_and_settings_are_refused(cases: list[evals.Case], tmp_path: Path) -> None:
    evals.run(cases[:1], [Contender(native(RIGHT))], tmp_path / "out", sources=["mine"])
    with pytest.raises(
        ts.UsageError, match="holds the results of other cases: 1 of mine there, 2 of sums, greetings now"
    ):
        evals.run([cases[0], cases[3]], [Contender(native(RIGHT))], tmp_path / "out")
    with pytest.raises(ts.UsageError, match="begun with other settings: seed null there, 3 now"):
        evals.run(cases[:1], [Contender(native(RIGHT))], tmp_path / "out", Settings(seed=3))


def test_changed_tools_are_named(cases: list[evals.Case], tmp_path: Path) -> None:
    first, *rest = cases[0].tools
    evals.run(cases[:1], [Contender(native(RIGHT))], tmp_path / "out")

    def refused(case: evals.Case) -> str:
        with pytest.raises(ts.UsageError) as error:
            evals.run([case], [Contender(native(RIGHT))], tmp_path / "out")
        return str(error.value)

    reworded, new = replace(first, description="Other words."), replace(first, name="new")
    start = f"{tmp_path / 'out'} holds the results of other tools: "
    assert (
        refused(replace(cases[0], tools=(reworded, *rest)))
        == f"{start}changed: {first.name}. Give another `out=` (--out)"
    )
    assert refused(replace(cases[0], tools=(*cases[0].tools, new))) == f"{start}added: new. Give another `out=` (--out)"
    assert refused(replace(cases[0], tools=(new, *rest))).startswith(f"{start}added: new; removed: {first.name}.")
    both = refused(replace(cases[0], expected=[], tools=(reworded, *rest)))
    assert f"other cases: 1 of sums there, 1 of sums now; and of other tools: changed: {first.name}" in both
    manifest = json.loads((tmp_path / "out" / "run.json").read_text("utf-8"))
    for name in ("tools", "questions"):  # as folders of older versions
        del manifest[name]
    (tmp_path / "out" / "run.json").write_text(json.dumps(manifest), "utf-8")
    assert "other cases: 1 of sums there" in refused(replace(cases[0], tools=(reworded, *rest)))


def test_a_folder_of_something_else_is_left_alone(cases: list[evals.Case], tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("years of work", "utf-8")
    with pytest.raises(ts.UsageError, match=r"contains other files \(cases.jsonl, thesis.txt\)"):
        evals.run(cases, [Contender(native(RIGHT))], tmp_path)
    with pytest.raises(ts.UsageError, match="cannot be created"):
        evals.run(cases, [Contender(native(RIGHT))], tmp_path / "thesis.txt")
    with pytest.raises(ts.UsageError, match=r"holds no results of an evaluation: there is no run\.json"):
        evals.read(tmp_path)


def test_half_a_line_is_put_again(cases: list[evals.Case], tmp_path: Path) -> None:
    evals.run(cases, [Contender(native(RIGHT, "Hello!", RIGHT, "Hello!", RIGHT))], tmp_path / "out")
    path = tmp_path / "out" / "cases.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    assert len(evals.read(tmp_path / "out")) == 4
    model = native(RIGHT)
    records = evals.run(cases, [Contender(model)], tmp_path / "out")
    assert len(model.requests) == 1
    assert len(records) == 5
    assert len(path.read_bytes().splitlines()) == 5
    path.write_bytes(whole.replace(b'{"case"', b'{"case', 1))
    with pytest.raises(ts.UsageError, match=r"cases.jsonl, line 1: no record of a case"):
        evals.read(tmp_path / "out")


class Slow:
    """Answers after a while, and tells how many questions were open at once."""

    name = "slow"
    capabilities: frozenset[Capability] = frozenset({"tools"})

    def __init__(self) -> None:
        self.open = self.most = 0

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.open += 1
        self.most = max(self.most, self.open)
        await asyncio.sleep(0.02)
        self.open -= 1
        yield TextDelta(str(request.messages[-1].get("content")))
        yield Finished("stop", Usage(100, 10))


def test_cases_under_way_at_once_keep_their_own_records(cases: list[evals.Case], tmp_path: Path) -> None:
    model = Slow()
    settings = Settings(at_once=3, prices={"slow": (1.0, 5.0)})
    heard: list[tuple[int, int]] = []
    records = evals.run(
        cases,
        [Contender(model)],
        tmp_path / "out",
        settings,
        on_record=lambda _, done, total: heard.append((done, total)),
    )
    assert model.most == 3
    assert heard == [(i, 5) for i in range(1, 6)]
    for record in records:
        (step,) = record.steps
        assert step["came"]["text"] == record.text == record.question
        assert (record.prompt_tokens, record.completion_tokens) == (100, 10)
        assert record.cost == pytest.approx(150e-6)
        assert record.seconds > 0.01
    (summary,) = evals.summarise(records)
    assert summary.tokens == (100, 10)
    assert summary.cost == pytest.approx(750e-6)


def test_a_decision_that_takes_too_long_is_an_error(cases: list[evals.Case], tmp_path: Path) -> None:
    (record,) = evals.run(cases[:1], [Contender(Slow())], tmp_path / "out", Settings(seconds=0.001))
    assert (record.kind, record.detail[:12]) == ("error", "LimitReached")


class Likely:
    """A text model that gives likelihoods: the more the text begins like its prompt's last line, the likelier."""

    name = "likely"
    capabilities: frozenset[Capability] = frozenset({"prompt", "score"})
    loaded = 0

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        yield TextDelta("4")
        yield Finished("stop", Usage(5, 1))

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        return [-float(len(text)) for text in continuations]

    async def count(self, request: Request) -> int | None:
        return len(str(request.prompt))

    async def load(self) -> None:
        self.loaded += 1


def test_likelihoods_are_recorded_with_their_texts(cases: list[evals.Case], tmp_path: Path) -> None:
    model = Likely()
    scored = Contender(Speaker(model, way="scored"))
    (record,) = evals.run(cases[:1], [scored], tmp_path / "out")
    assert model.loaded == 1
    steps = evals.unpacked(record.steps)
    scores = [step["score"] for step in steps if "score" in step]
    assert any("def add(" in score["prompt"] for score in scores)
    assert all(score["scores"] == [-float(len(text)) for text in score["texts"]] for score in scores)
    sent = sum(len(score["prompt"] + text) for score in scores for text in score["texts"])
    assert record.prompt_tokens == sent + 5 * sum("came" in step for step in steps)


def test_prompts_that_begin_alike_are_kept_once() -> None:
    steps: list[dict[str, Any]] = [
        {"score": {"prompt": "a long beginning, one", "texts": ["x"], "scores": [-1.0]}},
        {"ask": {"prompt": "else"}, "came": {"text": "y"}},
        {"score": {"prompt": "a long beginning, two", "texts": ["x"], "scores": [-2.0]}},
        {"score": {"prompt": "", "texts": ["x"], "scores": [-3.0]}},
    ]
    kept = packed(steps)
    assert kept[2]["score"] == {"head": 18, "rest": "two", "texts": ["x"], "scores": [-2.0]}
    assert evals.unpacked(kept) == steps
    assert packed([]) == []


def test_with_the_embedded_model(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    path = tmp_path / "two.jsonl"
    lines = [
        {"question": "What is 3 plus 4?", "calls": [{"name": "add", "arguments": SUM[1]}]},
        {"question": "Good morning!", "calls": []},
    ]
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    records = evals.run(evals.load(str(path), tools=TOOLS), evals.contenders(["local"]), tmp_path / "out")
    assert verdicts(records) == {"two:1": "right", "two:2": "right"}
    first = evals.unpacked(records[0].steps)[0]["score"]
    assert first["texts"] == ["What is 3 plus 4?\n"]
    assert first["scores"][0] < 0
    assert records[0].prompt_tokens > 500
