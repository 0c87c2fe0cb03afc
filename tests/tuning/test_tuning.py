"""Tuning finds the form that a model is good in, goes on after an end of any kind, and keeps what it found."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from one_dialect import MARKS, OneDialect
from tuned_tools import FILE, TOOLS

import preloaded
import toolspeak as ts
from preloaded import Started
from toolspeak import evals, tuning
from toolspeak.errors import KeyRefused, ModelUnreachable
from toolspeak.models.fallback import Adaptive
from toolspeak.models.strategy import Known, Preferences, Strategy, strategy
from toolspeak.models.tool_calling import as_tuned
from toolspeak.plan.effects import Ask
from toolspeak.tuning.candidate_strategies import candidates
from toolspeak.tuning.outcome import Measured, Outcome
from toolspeak.tuning.run import VALIDATION, schedule, survivors

Speaks = Callable[[str], OneDialect]


@pytest.mark.parametrize("dialect", [name for name in MARKS if name != "tool-json"])
def test_the_one_dialect_that_a_model_speaks_is_found(speaks: Speaks, dialect: str, tmp_path: Path) -> None:
    server = speaks(dialect)
    outcome = tuning.tune(server.name, TOOLS, tmp_path / "out", count=24)
    assert (outcome.chosen.strategy.way, outcome.chosen.strategy.label) == ("prompted", dialect)
    assert outcome.usual.strategy.label == "tool-json"
    assert outcome.chosen.accuracy.value == 1
    assert "more than noise" in outcome.verdict
    assert "tool-json, the usual strategy" in outcome.verdict
    outcome.save()
    model = ts.model(server.name)
    assert isinstance(model, Adaptive)
    assert model.strategy.line.startswith(f"prompted in {dialect} ")
    reply = ts.decide("Get the current weather in Lisbon.", tools=TOOLS, model=server.name, tries=1)
    assert [call.arguments for call in reply.calls] == [{"city": "Lisbon"}]


def test_the_usual_form_stays_where_nothing_is_better(speaks: Speaks, tmp_path: Path) -> None:
    outcome = tuning.tune(speaks("tool-json").name, TOOLS, tmp_path / "out", count=24)
    assert outcome.chosen.usual
    assert outcome.verdict.endswith("It is the usual strategy: nothing changes.")


def test_a_model_that_calls_nothing_right_gets_no_profile(speaks: Speaks, tmp_path: Path, kept: Path) -> None:
    """That its silence is right for the questions that want no call tells nothing of how it is asked best."""
    outcome = tuning.tune(speaks("none").name, TOOLS, tmp_path / "out", count=24)
    assert outcome.chosen.usual, "all are equally bad"
    assert outcome.verdict.startswith("No strategy got a question right that needs a call")
    with pytest.raises(ts.ModelError, match="no profile is stored"):
        outcome.save()
    assert not kept.exists()


def test_a_form_that_stays_silent_is_not_better_than_one_that_calls() -> None:
    """A form that gets one call and no other question right, against one that gets all but the calls right."""
    calling = [evals.Record(f"c{i}", "add", "x", i == 0, expected=[{"name": "add", "arguments": {}}]) for i in range(9)]
    silent = [replace(one, right=False) for one in calling]
    plain = [evals.Record(f"n{i}", "no call", "x", False, expected=[]) for i in range(9)]
    quiet = [replace(one, right=True) for one in plain]
    one, other, usual = (
        Measured(Strategy("prompted", "", dialect=ts.dialect(name)), name == "hermes", tuple(records), tuple(records))
        for name, records in (
            ("pythonic", calling + plain), ("react", silent + quiet), ("hermes", silent + plain)
        )
    )  # fmt: skip
    outcome = Outcome("m", "k", (other, one, usual), "", (), "", Path())
    assert outcome.best is outcome.chosen is one
    talk = Outcome(
        "m", "k", tuple(replace(each, tuning=(), holdout=tuple(quiet)) for each in (one, usual)), "", (), "", Path()
    )
    assert talk.chosen.usual, "where no question wants a call, silence is right"
    assert talk.chosen.calls


def test_a_server_that_takes_tools_and_makes_nothing_of_them(speaks: Speaks, tmp_path: Path) -> None:
    server = speaks("hermes")
    server.natively = True
    outcome = tuning.tune(server.name, TOOLS, tmp_path / "out", count=24)
    assert outcome.chosen.strategy.label == "hermes"


def test_each_question_is_put_once_and_few_to_forms_that_are_bad(speaks: Speaks, tmp_path: Path) -> None:
    server = speaks("hermes")
    heard: list[tuple[int, int]] = []
    outcome = tuning.tune(
        server.name, TOOLS, tmp_path / "out", on_record=lambda _, done, total: heard.append((done, total))
    )
    assert max(Counter(server.asked).values()) == 1
    times = Counter(dialect for dialect, _ in server.asked)
    assert times["hermes"] == 44
    assert times["tool-json"] == 44
    assert {times[name] for name in ("function-name", "functools", "pythonic")} == {6}
    assert heard[-1] == (len(heard), len(heard)), "what was foretold is what was done"
    back = {record.case for record in outcome.chosen.holdout}
    assert not back & {record.case for record in outcome.chosen.tuning}
    again = tuning.tune(server.name, TOOLS, tmp_path / "out")
    assert len(server.asked) == sum(times.values()), "all stands there"
    assert without_time(again) == without_time(outcome)


def without_time(outcome: Outcome) -> Any:
    told = outcome.profile().measured
    return [told["verdict"], told["forms"], told["digest"]]


def test_from_the_same_answers_comes_the_same_choice(speaks: Speaks, tmp_path: Path) -> None:
    server = speaks("pythonic")
    one = tuning.tune(server.name, TOOLS, tmp_path / "one", count=24)
    first, server.asked = server.asked, []
    two = tuning.tune(server.name, TOOLS, tmp_path / "two", count=24)
    assert server.asked == first
    assert [t.strategy.label for t in two.tried] == [t.strategy.label for t in one.tried]
    assert two.chosen.strategy == one.chosen.strategy


def test_a_refused_key_stops_it_and_it_goes_on(speaks: Speaks, tmp_path: Path) -> None:
    server = speaks("hermes")
    server.stop_after = 20
    with pytest.raises(KeyRefused):
        tuning.tune(server.name, TOOLS, tmp_path / "out", count=24)
    assert len(server.asked) == 20
    server.stop_after = 10**9
    outcome = tuning.tune(server.name, TOOLS, tmp_path / "out", count=24)
    assert outcome.chosen.strategy.label == "hermes"
    assert max(Counter(server.asked).values()) == 1


def test_killed_in_the_middle_it_goes_on(speaks: Speaks, tmp_path: Path) -> None:
    server = speaks("functools")
    server.hold_at = 25
    (tmp_path / "tools.py").write_text(FILE, "utf-8")
    command = ["tune", server.name, "-t", "tools.py", "-n", "24", "--json"]
    process = Started(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert server.holding.wait(120)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    server.go_on.set()
    before = server.asked[:24]
    done = preloaded.run(command, b"", os.environ, 800, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["chosen"] == "functools"
    assert Counter(server.asked[25:]).keys().isdisjoint(before), "what was answered is not put again"
    assert server.asked[25] == server.asked[24], "what was being answered is"
    shown = preloaded.run(["tune", "--show"], b"", os.environ, 800, cwd=tmp_path)
    assert b"asked" not in shown.stderr
    assert f"{server.name}: functools (tuned" in shown.stdout.decode()


def test_a_dialect_of_ones_own_choice(speaks: Speaks, tmp_path: Path) -> None:
    outcome = tuning.tune(speaks("hermes").name, TOOLS, tmp_path / "out", dialects=["hermes", "react"], count=24)
    assert {one.strategy.label for one in outcome.tried} == {"tool-json", "hermes", "react"}
    with pytest.raises(ts.UnknownDialect, match="hermes"):
        tuning.tune(speaks("hermes").name, TOOLS, tmp_path / "other", dialects=["hermse"])


def test_what_cannot_be_tuned(speaks: Speaks, tmp_path: Path) -> None:
    deaf = speaks("hermes")
    deaf.deaf = True
    with pytest.raises(ts.ModelError, match="refused the request"):
        tuning.tune(deaf.name, TOOLS, tmp_path)
    with pytest.raises(ModelUnreachable, match=r"127\.0\.0\.1:9"):
        tuning.tune("http://127.0.0.1:9/v1#m", TOOLS, tmp_path)
    with pytest.raises(ts.UsageError, match="no tools"):
        tuning.tune("http://127.0.0.1:9/v1#m", [], tmp_path)
    with pytest.raises(ts.UnknownModel, match="no model is called 'locale'"):
        tuning.tune("locale", TOOLS, tmp_path)
    with pytest.raises(ts.UsageError, match="there is no file"):
        tuning.tune("scripted:x", TOOLS, tmp_path, cases=[tmp_path / "none.jsonl"])
    one = tmp_path / "one.jsonl"
    one.write_text('{"question": "Hi", "calls": []}', "utf-8")
    with pytest.raises(ts.UsageError, match="too few questions"):
        tuning.tune("scripted:x", TOOLS, tmp_path, cases=[one])


# ------------------------------------------------------------------ what is put to whom


def cases(count: int, group: str = "", split: Callable[[int], str] = lambda _: "") -> list[evals.Case]:
    made: list[evals.Case] = []
    for i in range(count):
        name = group or f"group{i % 3}"
        made.append(evals.Case(f"{name}-{i}", name, (), (), [], lambda _: evals.Verdict(True), split(i)))
    return made


def test_rounds_double_and_half_of_each_group_is_held_back() -> None:
    plan = schedule(cases(60))
    assert [len(put) for put in plan.rounds] == [6, 6, 12, 6]
    assert len(plan.back) == 30
    assert Counter(case.group for case in plan.back) == {"group0": 10, "group1": 10, "group2": 10}
    put = [case.id for part in (*plan.rounds, plan.back) for case in part]
    assert len(set(put)) == 60
    assert {case.group for case in plan.rounds[0]} == {"group0", "group1", "group2"}
    assert [survivors(n) for n in (13, 5, 3, 2, 1)] == [5, 2, 2, 2, 1]
    assert plan.total(13) == 13 * 6 + 5 * 6 + 2 * 18 + 3 * 30


def test_cases_may_say_themselves_what_is_held_back() -> None:
    plan = schedule(cases(10, split=lambda i: VALIDATION if i < 3 else ""))
    assert {case.id for case in plan.back} == {"group0-0", "group1-1", "group2-2"}
    one_each = schedule([case for k in range(6) for case in cases(1, f"tool{k}")])
    assert len(one_each.back) == 3, "tools with one question each are in either part"


def tried(label: str, right: Sequence[bool], *, usual: bool = False, tokens: int = 100) -> Measured:
    def record(i: int, ok: bool) -> evals.Record:
        return evals.Record(f"c{i}", "g", label, ok, prompt_tokens=tokens, expected=[])

    records = tuple(record(i, ok) for i, ok in enumerate(right))
    return Measured(strategy(Known(), Preferences(dialect=label)), usual, records, records)


def outcome(*forms: Measured) -> Outcome:
    return Outcome("m", "k", forms, "some", (), "d", Path())


def test_a_simpler_form_is_taken_where_the_difference_is_noise() -> None:
    usual = tried("tool-json", [True] * 12 + [False] * 12, usual=True)
    little = tried("hermes", [True] * 13 + [False] * 11)
    found = outcome(usual, little)
    assert (found.best, found.chosen) == (little, usual)
    assert found.verdict.endswith("hermes got 1 more right, which is no more than noise: nothing changes.")
    much = tried("hermes", [True] * 16 + [False] * 8)
    found = outcome(usual, much)
    assert found.chosen is much
    assert "4 more right than tool-json, the usual strategy: it may be luck, p = 0.12" in found.verdict
    cheap = tried("pythonic", [True] * 15 + [False] * 9, tokens=40)
    found = outcome(usual, much, cheap)
    assert found.chosen is cheap
    assert found.verdict.endswith("hermes got 1 more right, which is no more than noise: the cheaper one is taken.")


# ------------------------------------------------------------------ models that can be held, in process


class Held:
    """A text model that can be held; free it breaks off in the middle of a call."""

    name = "held"
    capabilities: frozenset[Any] = frozenset({"grammar", "free"})

    async def stream(self, request: ts.Request) -> AsyncIterator[ts.Event]:
        yield ts.TextDelta("held" if request.grammar else "free")
        yield ts.Finished()


def test_a_form_says_whether_a_reply_is_held() -> None:
    request = ts.Request([{"role": "user", "content": "Hi"}], tools=TOOLS)
    free = Strategy("prompted", dialect=ts.dialect("hermes"), constrained=False)
    model = as_tuned(Held(), free)
    assert isinstance(model, ts.Speaker)
    assert not model.strategy.constrained
    assert model.dialect.name == "hermes"
    assert free.label == "hermes, free"
    assert grammar_of(model, request) is None
    found = asyncio.run(candidates(Held(), ["hermes", "react"]))
    assert [(one.strategy.label, one.usual) for one in found] == [
        ("tool-json", True),
        ("tool-json, free", False),
        ("hermes", False),
        ("hermes, free", False),
        ("react", False),
        ("react, free", False),
    ]
    pytest.importorskip("toolspeak.plan.constrain", reason="nothing holds a reply that may be words yet")
    held = grammar_of(as_tuned(Held(), replace(free, constrained=True)), request)
    assert held is not None
    assert "<tool_call>" in held


def grammar_of(model: ts.Model, request: ts.Request) -> str | None:
    assert isinstance(model, ts.Speaker)
    effect = model.plan(request).send(None)
    assert isinstance(effect, Ask)
    return effect.request.grammar


@pytest.mark.costly
def test_with_the_embedded_model(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    lines = [
        {"question": "What is 3 plus 4?", "calls": [{"name": "add", "arguments": {"a": 3, "b": 4}}]},
        {"question": "What is 5 plus 9?", "calls": [{"name": "add", "arguments": {"a": 5, "b": 9}}]},
    ]
    path = tmp_path / "two.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    outcome = tuning.tune(
        "local", TOOLS, tmp_path, cases=[path], dialects=["function-name"], settings=evals.Settings(max_tokens=24)
    )
    assert outcome.usual.strategy.way == "scored"
    assert outcome.chosen.strategy.way == "scored"
    assert outcome.chosen.accuracy.value == 1
    assert os.path.dirname(outcome.save()) == os.environ["TOOLSPEAK_PROFILES"]
    assert isinstance(ts.model("local"), ts.Speaker)
