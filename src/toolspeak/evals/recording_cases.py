"""Makes cases from recordings, and pytest tests from cases.

A case made from a recording expects the calls that the model made; the user corrects it where they are wrong. A test
gets one case through the fixture `toolspeak_replay` and comes with a recording of the answer, so it reproduces the
verdict at once without a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta
from ..files import read_text
from ..models.exchange import Exchange, canonical, write_line
from ..models.recording import path_of_test
from ..models.replay import read as read_recording
from ..types import Request
from ..wire.reading.collect import collect
from .case import Case, calls_of
from .jsonl_cases import line_of, load, read as read_cases
from .results import Record, read as read_results

TEST = '''"""Cases of {source}: each must get the calls that it expects. Made by `toolspeak cases`."""

from pathlib import Path

import pytest

import toolspeak as ts
from toolspeak import evals

CASES = evals.load(str(Path(__file__).with_suffix(".jsonl")))


@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_case(case, toolspeak_replay):
    model = toolspeak_replay({model!r})
    reply = ts.decide(case.messages, tools=case.tools, model=model, tries=1)
    verdict = case.judge(reply)
    assert verdict.right, verdict.detail
'''


@dataclass(frozen=True, slots=True)
class Answered:
    """A case and the exchange with the model that answered it; None if that is not known."""

    case: Case
    exchange: Exchange | None = None


def is_recording(path: Path) -> bool:
    """Whether a file holds recorded exchanges rather than cases."""
    lines = (line for line in read_text(path).split("\n") if line.strip())
    first = next(lines, "")
    try:
        return "version" in line_of(first)
    except UsageError:
        return False


def of_recording(path: Path) -> tuple[list[Answered], list[str]]:
    """A case for each exchange that offered tools, and for every other exchange the reason why there is none."""
    cases: list[Answered] = []
    others: list[str] = []
    for number, exchange in enumerate(read_recording(path), 1):
        name = f"{path.stem}-{number}"
        try:
            line = json.dumps({"id": name, "group": path.stem, **_line(exchange)})
            (case,) = read_cases(line, path)
        except UsageError as error:
            others.append(f"{name}: {str(error).removeprefix(f'{path}, line 1: ')}")
        else:
            cases.append(Answered(case, exchange))
    return cases, others


def _line(exchange: Exchange) -> dict[str, Any]:
    """The fields of the case in an exchange. Raises UsageError if it has none."""
    request = exchange.request
    if exchange.counted or not {"tools", "messages"} <= request.keys():
        raise UsageError("no tools were offered")
    if exchange.error is not None:
        raise UsageError(f"it has no whole reply: {exchange.error}")
    if exchange.cut:
        raise UsageError("it has no whole reply")
    reply = collect(exchange.events)
    if not all(call.whole for call in reply.calls):
        raise UsageError("a call was cut off")
    return {"messages": request["messages"], "tools": request["tools"], "calls": calls_of(reply)}


def of_failures(path: Path, records: Sequence[Record]) -> list[Answered]:
    """The cases of a file that failed in an evaluation, each with the model's answer. Raises UsageError."""
    failures = {record.case: record for record in reversed(records) if not record.right}
    # Lines must define their tools: one that only names them needs the functions, which a test does not have.
    return [Answered(case, _exchange(failures[case.id], case)) for case in load(path) if case.id in failures]


def _exchange(record: Record, case: Case) -> Exchange:
    """The model's answer as an exchange, as far as the evaluation recorded it."""
    events: list[Event] = [TextDelta(record.text)] if record.text else []
    for number, call in enumerate(record.calls, 1):
        arguments = json.dumps(call["arguments"], ensure_ascii=False)
        events += [CallStart(call["name"], f"call_{number}"), ArgumentsDelta(arguments), CallEnd()]
    events.append(Finished("tool_calls" if record.calls else "stop"))
    about = {"name": record.contender, "capabilities": ["required", "tools"]}
    return Exchange(about, datetime.now().astimezone(), {}, events)


def case_line(case: Case) -> str:
    """A case as a line of a case file. Raises UsageError if it is judged by custom code."""
    if ":" in case.match:
        raise UsageError(f"the case {case.id} is judged by {case.match}, which is code: write its test by hand")
    tools = [{"name": one.name, "description": one.description, "parameters": one.parameters} for one in case.tools]
    row: Mapping[str, Any] = {
        "id": case.id, "messages": case.messages, "tools": tools, "calls": case.expected, "match": case.match,
        "group": case.group, "split": case.split,
    }  # fmt: skip
    usual = {"match": "exact", "split": ""}
    return json.dumps({name: value for name, value in row.items() if value != usual.get(name)}, ensure_ascii=False)


def write_test(path: Path, cases: Sequence[Answered], source: str, model: str) -> Iterator[Path]:
    """Writes a test file with its cases and their recordings, and yields the path of each file.

    Raises UsageError if the file exists, or if pytest would not collect a file of that name.
    """
    if path.suffix != ".py" or not path.stem.startswith("test_"):
        raise UsageError(f"{path}: expected the name of a file that pytest finds, such as tests/test_weather.py")
    if path.exists():
        raise UsageError(f"{path} is there already: give another name, or remove it")
    lines = "".join(case_line(one.case) + "\n" for one in cases)
    path.parent.mkdir(parents=True, exist_ok=True)
    yield _written(path, TEST.format(source=source, model=model).encode())
    yield _written(path.with_suffix(".jsonl"), lines.encode("utf-8", "backslashreplace"))
    for one in cases:
        if one.exchange is not None:
            request = canonical(Request(one.case.messages, one.case.tools))  # as the test sends it, without settings
            exchange = replace(one.exchange, request=request)
            yield _written(path_of_test(path, f"test_case[{one.case.id}]"), write_line(exchange))


def _written(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def cases_of(path: Path, failed: Path | None = None) -> tuple[list[Answered], list[str]]:
    """The cases of a recording or of a case file, and for each exchange without a case the reason. With `failed`, only
    those that failed in the results of that evaluation. Raises UsageError."""
    if failed is not None:
        return of_failures(path, read_results(failed)), []
    if is_recording(path):
        return of_recording(path)
    return [Answered(case) for case in load(path)], []


def chosen(cases: Iterable[Answered], names: Sequence[str]) -> list[Answered]:
    """The cases with these ids, in their own order; all if `names` is empty. Raises UsageError for an unknown id."""
    by_id = {one.case.id: one for one in cases}
    if absent := [name for name in names if name not in by_id]:
        raise UsageError(f"there is no case {absent[0]!r}. There are: {', '.join(by_id) or 'none'}")
    return [one for name, one in by_id.items() if not names or name in names]
