"""What real models wrote, and what it meant; the data stands beside the checkout, or the tests are skipped.

Each output is read from the prompt that its own template gives, whole and cut, and has to mean what the
data say. `DELIBERATE` are the rows whose expected value contradicts a rule of the house, `OPEN` those that
are read otherwise for no such reason; both can only shrink, since a row that is read as expected may stand in neither.
"""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from wire_cases import cuts, merged, stream

from toolspeak.errors import ToolspeakError
from toolspeak.events import Event
from toolspeak.types import Reply, Tool
from toolspeak.wire.detect import detect
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.render import render

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
CASES = SHARED / "cases" / "dialects.jsonl"
pytestmark = pytest.mark.skipif(not CASES.is_file(), reason="the folder shared/cases is not beside the checkout")

NOT_IN_THE_OUTPUT = "rule 3: the reply is what the model wrote, and the opener stands in the prompt"
UNCHANGED = "rule 3: what was not a call comes back byte for byte, fence and all"
DELIBERATE = {
    "llamacpp-0037": NOT_IN_THE_OUTPUT,
    "llamacpp-0053": NOT_IN_THE_OUTPUT,
    "llamacpp-0391": NOT_IN_THE_OUTPUT,
    "llamacpp-0392": NOT_IN_THE_OUTPUT,
    "llamacpp-0403": UNCHANGED,
}
OPEN = {
    "llamacpp-0332": "a value that may be a string or an object and holds an element is read as the object",
}
MOST_WRONG = 0.02


@cache
def speaker(template: str) -> Dialect:
    """The dialect that the template's model speaks, by the template; by its name where that tells no dialect."""
    text = (SHARED / "templates" / f"{template}.jinja").read_text("utf-8")
    found = detect(template=text)
    return found if "default" not in found.origin else detect(template=text, model=template)


@dataclass(frozen=True)
class Row:
    """One real output, with what is needed to read it."""

    data: dict[str, Any] = field(repr=False)

    def __getattr__(self, key: str) -> Any:
        return self.data[key]

    @property
    def split(self) -> bool:
        return self.reasoning_format not in (None, "none")

    @property
    def tools(self) -> list[Tool]:
        functions = [tool.get("function", tool) for tool in self.data["tools"] or ()]
        return [Tool(f["name"], f.get("description", ""), _object(f.get("parameters") or {})) for f in functions]

    @property
    def messages(self) -> list[dict[str, Any]]:
        said = self.data["messages"] or [{"role": "user", "content": "Hey there!"}]
        return [{**message, **_wrapped(message)} for message in said]


def _wrapped(message: dict[str, Any]) -> dict[str, Any]:
    """The message's calls as OpenAI writes them."""
    calls = message.get("tool_calls") or ()
    rows = [c if "function" in c else {"id": c.get("id"), "type": "function", "function": c} for c in calls]
    return {"tool_calls": rows} if rows else {}


def _object(value: Any) -> dict[str, Any]:
    return json.loads(value) if isinstance(value, str) else value


def rows() -> list[Row]:
    return [Row(json.loads(line)) for line in CASES.read_text("utf-8").splitlines()] if CASES.is_file() else []


ROWS = pytest.mark.parametrize("row", rows(), ids=lambda row: row.id)


def prompt_of(row: Row, d: Dialect) -> str:
    """What the model had before it when it wrote the output."""
    thinking = True if row.enable_thinking is None else row.enable_thinking
    template = (SHARED / "templates" / f"{row.template}.jinja").read_text("utf-8")
    goes_on = bool(row.continue_final_message)
    messages = row.messages[:-1] if goes_on else row.messages
    now = datetime(2026, 1, 1, tzinfo=UTC)
    try:
        variables = {"enable_thinking": thinking}  # the only switch that the engine sets
        prompt = render(messages, row.tools, d, template=template, variables=variables, now=now).prompt
    except ToolspeakError:
        prompt = by_jinja(template, messages, row, thinking)
    return begun(prompt, row.messages[-1], d, row.continue_final_message) if goes_on else prompt


def begun(prompt: str, last: dict[str, Any], d: Dialect, part: str) -> str:
    """The prompt, and after it what the assistant has said of its last message, whose `part` goes on."""
    opener, closer = (d.thinking.open, d.thinking.close) if d.thinking else ("", "")
    thought, text = last.get("reasoning_content") or "", last.get("content") or ""
    inside = bool(opener) and prompt.rstrip().endswith(opener.strip())
    if d.header:
        starts = prompt.rstrip().endswith(d.header.start.strip() or "\0")
        head = d.header.text if text else d.header.thought
        return prompt + ("" if starts else d.header.start) + head + d.header.stop + (text or thought)
    if thought and d.thinking:
        prompt, inside = prompt + ("" if inside else opener) + thought, True
    if inside and (text or part == "content"):
        prompt += closer
    return prompt + text


def by_jinja(template: str, messages: list[dict[str, Any]], row: Row, thinking: bool) -> str:
    """The prompt by the original template engine, set up as model servers do."""
    jinja2 = pytest.importorskip("jinja2")
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def refuse(message: str) -> None:
        raise jinja2.TemplateError(message)

    env = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"])
    env.filters["tojson"] = lambda value, indent=None, **_: json.dumps(value, ensure_ascii=False, indent=indent)
    env.globals["strftime_now"] = datetime(2026, 1, 1, tzinfo=UTC).strftime
    env.globals["raise_exception"] = refuse
    source = re.sub(r"\{%-?\s*(end)?generation\s*-?%\}", "", template)
    tools = row.data["tools"] or None
    for offered in (tools, None):
        try:
            return env.from_string(source).render(
                messages=messages, tools=offered, add_generation_prompt=True, enable_thinking=thinking, bos_token=""
            )
        except (jinja2.TemplateError, TypeError):
            continue
    return ""


@cache
def read(case: str) -> tuple[Dialect, str, list[Event]]:
    """The dialect, the prompt, and the events of the output read whole."""
    row = next(row for row in rows() if row.id == case)
    d = speaker(row.template)
    prompt = prompt_of(row, d)
    return d, prompt, stream(d, [row.input], row.tools or None, prompt, "split" if row.split else "keep")


def value(text: str) -> Any:
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def sent(row: Row, arguments: str) -> Any:
    """Arguments as JSON; of a text that is cut, what was sent of them."""
    if row.is_partial:
        return "" if arguments == "{}" else arguments.strip()
    return value(arguments)


Meaning = tuple[str, str, list[tuple[str, Any]]]


def meant(row: Row) -> Meaning:
    """What the data say: text, thought, calls. A call that is cut counts by what was sent of it."""
    told = [(c["name"], sent(row, c["arguments"])) for c in row.expect.get("tool_calls") or ()]
    return (row.expect.get("content") or "").strip(), (row.expect.get("reasoning_content") or "").strip(), told


def got(row: Row, reply: Reply) -> Meaning:
    """What was read, with what a message that goes on had said before."""
    told = [(c.name, sent(row, c.json)) for c in reply.calls]
    last = row.messages[-1] if row.continue_final_message else {}
    thought = ((last.get("reasoning_content") or "") if row.split else "") + reply.thought
    return ((last.get("content") or "") + reply.text).strip(), thought.strip(), told


def right(row: Row, reply: Reply) -> bool:
    ids = [c.get("id") for c in row.expect.get("tool_calls") or ()]
    return got(row, reply) == meant(row) and all(
        not wanted or call.id == wanted for wanted, call in zip(ids, reply.calls, strict=True)
    )


@ROWS
def test_it_means_what_it_was_meant_to(row: Row) -> None:
    d, prompt, events = read(row.id)
    reply = collect(events)
    if row.id in DELIBERATE or row.id in OPEN:
        assert not right(row, reply), "read as expected now: take it out of the table"
        return
    seen = f"{row.template} as {d.name}\nprompt ..{prompt[-80:]!r}\ninput {row.input!r}\nnotes {reply.notes}"
    assert got(row, reply) == meant(row), seen
    assert right(row, reply), f"{seen}\nids {[c.id for c in reply.calls]}"


@ROWS
def test_it_means_the_same_at_every_cut(row: Row) -> None:
    d, prompt, events = read(row.id)
    for chunks in [*cuts(row.input, random.Random(row.id)), *cuts(row.input, random.Random(row.id[::-1]))]:
        assert merged(stream(d, chunks, row.tools or None, prompt, "split" if row.split else "keep")) == merged(
            events
        ), chunks


@ROWS
def test_nothing_is_invented(row: Row) -> None:
    """Each name that is called, and each word of its arguments, stands in the output."""
    _, _, events = read(row.id)
    for call in collect(events).calls:
        assert call.name in row.input
        assert all(key in row.input for key in call.arguments)


def test_at_least_98_of_100_are_read_as_expected(capsys: pytest.CaptureFixture[str]) -> None:
    tally: Counter[str] = Counter()
    for row in rows():
        reply = collect(read(row.id)[2])
        tally[
            "as expected" if right(row, reply)
            else "deliberate" if row.id in DELIBERATE
            else "otherwise"
        ] += 1  # fmt: skip
    with capsys.disabled():
        print(f"\nreal outputs: {', '.join(f'{n} {what}' for what, n in tally.most_common())}")
    asked = sum(tally.values()) - tally["deliberate"]
    assert tally["otherwise"] <= MOST_WRONG * asked


def test_the_tables_name_rows_and_rules() -> None:
    known = {row.id for row in rows()}
    assert known >= {*DELIBERATE, *OPEN}
    assert all(re.match(r"rule \d+: ", why) for why in DELIBERATE.values())
    assert len(OPEN) <= MOST_WRONG * len(known)
