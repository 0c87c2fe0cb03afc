"""What people complain of in other parsers of tool calls, a test each: twenty-five, in the order of how often."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import pytest
from grows import MOST, growth
from hard_cases import HARD, TOOLS, Hard, find, note
from spoken import TALKING, calls_of, typed_by_schema, wire, words
from wire_cases import DIALECTS, cuts, merged, one_of, rules, stream

import toolspeak as ts
from properties import rotated
from toolspeak.events import ArgumentsDelta
from toolspeak.types import Reply, Tool
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.dialect import Dialect, JsonCall, NumberedName, Tagged
from toolspeak.wire.prompt.calls import write_calls
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.render import render

EVERY = pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
TAGGED = [d for d in TALKING if any(isinstance(p, Tagged) for p in d.call)]
THINKING = [d for d in TALKING if d.thinking and d.thinking.close.strip() and not d.header]
TWO = (note(text="a b, c", count=3, flag=True), find("two words"))
PING = ("ping", {})


def told(reply: Reply) -> list[tuple[str, dict[str, object]]]:
    return [(call.name, call.arguments) for call in reply.calls]


def prompt(d: Dialect) -> str:
    """What goes before a text where the dialect's messages have heads."""
    return d.header.start + d.header.text + d.header.stop if d.header else ""


def spoken(d: Dialect, text: str, *calls: tuple[str, dict[str, object]]) -> str:
    """A text and then calls, as the dialect writes them."""
    between = (d.header.ends[0] if d.header.ends else "") if d.header else d.before
    return text + (between if text else "") + wire(d, *calls)


@EVERY
def test_01_more_than_one_event_in_a_chunk(d: Dialect) -> None:
    text = spoken(d, "I look. ", *TWO)
    whole = stream(d, [text], TOOLS, prompt(d))
    assert told(collect(whole)) == list(TWO)
    for size in (1, 2, 3, 5, 7, 13, 64):
        chunks = [text[i : i + size] for i in range(0, len(text), size)]
        assert merged(stream(d, chunks, TOOLS, prompt(d))) == merged(whole)


@pytest.mark.parametrize("case", HARD, ids=lambda case: f"{case.dialects}: {case.what}")
def test_02_streaming_says_what_parsing_says(case: Hard) -> None:
    d = one_of(*case.dialects.split())
    for chunks in cuts(case.wire, random.Random(case.wire)):
        assert collect(stream(d, chunks, TOOLS)) == parse(case.wire, d, TOOLS)


@EVERY
def test_03_a_marker_in_two_chunks_leaks_nowhere(d: Dialect) -> None:
    text = wire(d, *TWO)
    whole = merged(stream(d, [text], TOOLS))
    assert not collect(stream(d, [text], TOOLS)).text.strip()
    for i in rotated(range(1, len(text)), 5):
        assert merged(stream(d, [text[:i], text[i:]], TOOLS)) == whole


@EVERY
def test_04_a_long_string_is_not_held_back(d: Dialect) -> None:
    value = "plain words without any mark and " * 20
    text = wire(d, find(value))
    start = text.index(value)
    decoder, out = Decoder(d, TOOLS), 0
    for i in range(0, start + len(value), 4):
        sent = decoder.feed(text[i : i + 4])
        out += sum(len(e.json) for e in sent if isinstance(e, ArgumentsDelta))
        assert out >= i + 4 - start - max(map(len, words(d)), default=0) - 8


@pytest.mark.parametrize(
    "name", ["hermes", "empower", "qwen3-coder", "glm47", "minimax-m3", "lfm2", "gemma4", "harmony"]
)
def test_05_the_text_is_not_read_again_for_every_chunk(name: str) -> None:
    d = one_of(name)
    head, _, tail = wire(d, find("@")).rpartition("@")
    assert growth(d, lambda n: head + "x = 1\n" * (n // 6) + tail, 1, TOOLS) < MOST


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("dots", '<dots_function_call>\n<invoke name="'),
        ("glm47", "<tool_call>note<arg_key>text</arg_key>"),
        ("deepseek-v3", "<｜tool▁call▁begin｜>function<｜tool▁sep｜>note\n```json\n"),
        ("pythonic", "[note(text="),
        ("react", "Thought: a\nAction: "),
        ("hermes", '<tool_call>{"name"'),
    ],
)
def test_06_no_text_makes_time_explode(name: str, unit: str) -> None:
    assert growth(one_of(name), lambda n: unit * (n // len(unit)), 0, TOOLS) < MOST


@EVERY
def test_07_a_value_may_hold_the_dialects_own_closers(d: Dialect) -> None:
    for word in words(d):
        call = note(text=f"see {word} here", count=1)
        reply = parse(wire(d, call), d, TOOLS)
        assert told(reply) == [call], (word, reply)


@pytest.mark.parametrize("d", TAGGED, ids=lambda d: d.name)
def test_08_the_next_parameter_opens_before_the_last_is_closed(d: Dialect) -> None:
    hole = next(p for p in d.call if isinstance(p, Tagged))
    text = wire(d, note(count=1, text="x"))
    damaged = text.replace(hole.close.strip(), "", 1)
    reply = parse(damaged, d, TOOLS)
    assert told(reply) == [note(count=1, text="x")]
    assert reply.notes


@pytest.mark.parametrize(
    "name", ["hermes", "qwen3-coder", "mimo-v2", "seed-oss", "minimax-m2", "glm47", "deepseek-v31"]
)
def test_09_the_opener_is_missing_or_stands_alone(name: str) -> None:
    d = one_of(name)
    opener = next(words(d)).split()[0]
    text = wire(d, note(count=1))
    talk = f"The tag {opener} opens a call."
    assert parse(talk, d, TOOLS).text == talk
    assert told(parse(f"{talk}\n{text}", d, TOOLS)) == [note(count=1)]
    if name in ("hermes", "qwen3-coder", "seed-oss", "minimax-m2", "deepseek-v31"):
        reply = parse(text.replace(opener, "", 1).lstrip(), d, TOOLS)
        assert told(reply) == [note(count=1)]
        assert reply.notes


@EVERY
def test_10_types_come_from_the_schema(d: Dialect) -> None:
    call = note(text="00123", count=12, flag=True, tags=["1", "true", "null"])
    assert told(parse(wire(d, call), d, TOOLS)) == [call]
    assert told(parse(wire(d, note(text="true")), d, TOOLS)) == [note(text="true")]


@EVERY
def test_11_what_does_not_fit_stays_and_is_told(d: Dialect) -> None:
    reply = parse(wire(d, note(count="2026-01-15")), d, TOOLS)
    assert told(reply) == [note(count="2026-01-15")]
    assert reply.calls[0].whole
    assert reply.notes or not typed_by_schema(d)


@EVERY
def test_12_null_is_null_where_the_schema_allows_it(d: Dialect) -> None:
    for call in (note(maybe=None), note(text="null"), note(maybe="nul"), note(place={"floor": 3})):
        assert told(parse(wire(d, call), d, TOOLS)) == [call]


@EVERY
def test_13_entities_are_no_markup(d: Dialect) -> None:
    call = note(text="if (a &lt; b &amp;&amp; c) &#39;x&#39; &quot;", count=1)
    assert told(parse(wire(d, call), d, TOOLS)) == [call]


@EVERY
def test_14_a_call_that_was_required_is_one_of_the_dialect(d: Dialect) -> None:
    reply = parse(wire(d, PING), d, TOOLS)
    assert (told(reply), reply.finish) == ([PING], "tool_calls")
    assert parse("No.", d, TOOLS, prompt(d)).finish == "stop"


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_15_without_tools_nothing_is_a_call(d: Dialect) -> None:
    for text in [wire(d, ("code_interpreter", {"code": "1"}))] + [
        case.wire for case in HARD if d.name in case.dialects.split()
    ]:
        kept, split = (parse(text, d, (), thoughts=thoughts) for thoughts in ("keep", "split"))
        assert (kept.calls, split.calls, kept.thought) == ((), (), "")
        if not d.header and "Thought:" not in text:
            assert unframed(d, kept.text) == unframed(d, text)
        assert split.text in kept.text
        assert split.thought.strip() in kept.text


def unframed(d: Dialect, text: str) -> str:
    """The text without the words that frame texts: they may go."""
    for word in (*d.frame, *d.stop):
        text = text.replace(word.strip(), "")
    return text.strip()


@pytest.mark.parametrize("tools", [None, (), TOOLS], ids=["any", "none", "some"])
@pytest.mark.parametrize(
    ("name", "text", "kept"),
    [
        ("command-r7b", "<|START_THINKING|>hm<|END_THINKING|><|START_RESPONSE|>Hi<|END_RESPONSE|>", "<|START_THINKING|>hm<|END_THINKING|>Hi"),
        ("functionary-v3", ">>>all\nHi", "Hi"),
        ("functionary-v3", "all\nHi", "Hi"),
        ("harmony", "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi<|return|>", "<|channel|>analysis<|message|>hm<|end|>Hi"),
        ("gemma4", "<|channel>thought\nhm<channel|>Hi<turn|>", "<|channel>thought\nhm<channel|>Hi"),
        ("empower", "<thinking>hm</thinking><c>Hi", "<thinking>hm</thinking>Hi"),
        ("hermes", "<think>\nhm\n</think>\n\nHi<|im_end|>", "<think>\nhm\n</think>\n\nHi"),
    ],
)  # fmt: skip
def test_15_a_thought_that_is_kept_keeps_its_marks_and_no_frames(name: str, text: str, kept: str, tools: Any) -> None:
    reply = parse(text, ts.dialect(name), tools, prompt="", thoughts="keep")
    assert (reply.text, reply.thought, reply.notes) == (kept, "", ())


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_15_of_a_kept_thought_and_a_framed_text_only_the_frames_go(d: Dialect) -> None:
    """In every dialect: the thought stays with its marks, the text without what frames it."""
    opener = d.thinking.open if d.thinking else ""
    texts = [(word, "") for word in ("", *d.frame) if not word or not opener.startswith(word)]
    if d.header and d.header.text:
        texts = [(d.header.start + d.header.text + d.header.stop, end) for end in (*d.header.ends, "")]
    thoughts = [""]
    if d.thinking:
        thoughts.append(f"{d.thinking.open}why{d.thinking.close}")
    for thought, (begin, end) in itertools.product(thoughts, texts):
        kept, split = (
            parse(f"{thought}{begin}done.{end}", d, (), prompt="", thoughts=how) for how in ("keep", "split")
        )
        assert kept.text.startswith(thought.rstrip()), begin
        assert kept.text.removeprefix(thought.rstrip()).strip() == split.text.strip(), begin  # no more than the text
        assert split.text.strip() == "done.", begin


def draft_of(d: Dialect) -> str:
    """Two calls that a thought of the dialect may hold."""
    draft = wire(d, *TWO)
    if d.thinking and d.thinking.close.strip() in draft:
        pytest.skip("a call ends as a thought does: which of both nobody can tell")
    return draft


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_16_a_call_in_a_thought_that_closes_is_thought(d: Dialect) -> None:
    assert d.thinking
    draft = draft_of(d)
    for said in (f"maybe {draft} or not", f"maybe\n{draft}"):
        text = f"{d.thinking.open}{said}{d.thinking.close}No."
        events = stream(d, [text], TOOLS)
        reply = collect(events)
        assert (reply.text, reply.thought.strip(), reply.calls) == ("No.", said.strip(), ())
        for chunks in cuts(text, random.Random(text)):
            assert merged(stream(d, chunks, TOOLS)) == merged(events)


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_17_calls_at_the_end_of_a_thought_that_never_closes_are_calls(d: Dialect) -> None:
    assert d.thinking
    draft = draft_of(d)
    text = f"{d.thinking.open}I look.\n{draft}"
    events = stream(d, [text], TOOLS)
    reply = collect(events)
    assert (told(reply), reply.thought.strip(), reply.text.strip()) == (list(TWO), "I look.", "")
    for chunks in cuts(text, random.Random(text)):
        assert merged(stream(d, chunks, TOOLS)) == merged(events)
    late = collect(stream(d, [f"{text} I wonder."], TOOLS))
    assert (late.calls, late.text.strip(), late.thought.endswith("I wonder.")) == ((), "", True)
    last = collect(stream(d, [f"{d.thinking.open}I could write {draft} or rather\n{draft}"], TOOLS))
    assert (told(last), last.thought.strip()) == (list(TWO), f"I could write {draft} or rather")


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_17_calls_at_the_end_of_a_closed_thought_are_calls_if_it_ends_the_reply(d: Dialect) -> None:
    assert d.thinking
    draft = draft_of(d)
    text = f"{d.thinking.open}I look.\n{draft}{d.thinking.close}"
    events = stream(d, [text], TOOLS)
    reply = collect(events)
    assert (told(reply), reply.thought.strip(), reply.text.strip()) == (list(TWO), "I look.", "")
    assert "call-in-thought" in {note.rule for note in reply.notes}
    for chunks in cuts(text, random.Random(text)):
        assert merged(stream(d, chunks, TOOLS)) == merged(events)
    for more in ("Rome.", f"{draft} or not"):
        late = collect(stream(d, [f"{d.thinking.open}I look.\n{draft} I wonder.{d.thinking.close}{more}"], TOOLS))
        assert draft.strip() in late.thought


@pytest.mark.parametrize("d", THINKING, ids=lambda d: d.name)
def test_18_a_thought_that_the_prompt_opened(d: Dialect) -> None:
    assert d.thinking
    text = f"hm{d.thinking.close}{wire(d, *TWO)}"
    for begun in (d.thinking.open, f"{d.thinking.open}I"):
        reply = parse(text, d, TOOLS, f"user\nHi\nassistant\n{begun}")
        assert (reply.thought, told(reply)) == ("hm", list(TWO))
    if d.stop:
        closed = f"user\nHi\nassistant\n{d.thinking.open}{d.thinking.close}"
        assert parse(f"hm {wire(d, *TWO)}", d, TOOLS, closed).text.strip() == "hm"


def test_18_a_thought_that_the_prompt_opened_in_a_message() -> None:
    prompt = "[gMASK]<sop><|user|>\nHi<|assistant|>\n<think>\nI"
    reply = parse(" wonder.\n</think>\n\nHello.", ts.dialect("glm4"), TOOLS, prompt)
    assert (reply.thought.strip(), reply.text) == ("wonder.", "Hello.")


@EVERY
def test_19_a_call_that_is_cut_is_not_whole(d: Dialect) -> None:
    value = "some words that go on"
    text = wire(d, find(value))
    start = text.index(value)
    for i in range(start + 1, start + len(value)):
        reply = parse(text[:i], d, TOOLS)
        assert [call.whole for call in reply.calls] == [False]
        assert reply.finish == "length"
        assert not reply.messages[0].get("tool_calls")
    assert parse(text, d, TOOLS).finish == "tool_calls"


@EVERY
def test_20_no_arguments_are_an_empty_object(d: Dialect) -> None:
    reply = parse(wire(d, PING, PING), d, TOOLS)
    assert told(reply)[0] == PING
    assert {call.json.replace(" ", "") for call in reply.calls} == {"{}"}
    assert {json.loads(row["function"]["arguments"]) == {} for row in reply.messages[0]["tool_calls"]} == {True}


@pytest.mark.parametrize(
    "d", [d for d in TALKING if any(isinstance(p, NumberedName) for p in d.call)], ids=lambda d: d.name
)
def test_21_ids_that_hold_the_name_are_made_anew(d: Dialect) -> None:
    hole = next(p for p in d.call if isinstance(p, NumberedName))
    ids = [f"{hole.prefix}{name}{hole.mid}{3 + i}" for i, (name, _) in enumerate(TWO)]
    text = write_calls(calls_of(*TWO), d, first=3)
    assert all(made in text for made in ids)
    assert [call.id for call in parse(text, d, TOOLS).calls] == ids


def test_21_ids_are_unique_in_a_reply() -> None:
    for d in TALKING:
        ids = [call.id for call in parse(wire(d, *TWO), d, TOOLS).calls]
        assert len(set(ids)) == len(ids)


@EVERY
def test_22_arguments_as_a_text_or_an_object_are_the_same(d: Dialect) -> None:
    if any(isinstance(part, JsonCall) and part.encoded == "text" for part in d.call):
        pytest.skip("the dialect tells them apart: a text stays one")
    prompts = []
    for arguments in ({"text": 'a "b"', "count": 1}, '{"text": "a \\"b\\"", "count": 1}'):
        call = {"id": "call_1", "type": "function", "function": {"name": "note", "arguments": arguments}}
        talk = [
            {"role": "user", "content": "Hi"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        ]
        prompts.append(render(talk, TOOLS, d).prompt)
    assert prompts[0] == prompts[1]


@EVERY
def test_23_a_reply_that_leaves_the_format_is_not_lost(d: Dialect) -> None:
    text = wire(d, find("words"))
    for i in range(1, len(text)):
        damaged = text[:i] + " Sorry, I was lost." + text[i + 3 :]
        reply = parse(damaged, d, TOOLS)
        said = reply.text + reply.thought + "".join(call.id + call.name + call.json for call in reply.calls)
        assert "Sorry" in said or reply.notes


ANSWERS = [
    '{"title": "A", "items": [1, 2, {"name": "note"}]}',
    '```json\n{"name": "Ann", "arguments": ["x"]}\n```',
    '[{"name": "Ann", "age": 3}]',
    "Use `note(text='x')` or [note](http://x.example).",
    "| a | b |\n|---|---|\n| {x} | [y] |",
    "```python\nnote(text='x')\n```",
    "<note>an element</note> & <b>bold</b>",
]


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_24_an_answer_in_json_or_markdown_is_no_call(d: Dialect) -> None:
    for text in ANSWERS:
        reply = parse(text, d, TOOLS, prompt(d))
        assert (reply.text, reply.calls) == (text, ())


@EVERY
def test_25_an_unknown_tool_is_told_and_the_rest_is_read(d: Dialect) -> None:
    strange = Tool("zz", "", {"type": "object", "properties": {"a": {"type": "string"}}})
    text = wire(d, ("zz", {"a": "b"}), find("x"))
    assert told(parse(text, d, [*TOOLS, strange])) == [("zz", {"a": "b"}), find("x")]
    reply = parse(text, d, TOOLS)
    begun = d.header is not None and text.lstrip().startswith(d.header.start)  # certainly a message
    if d.guard and not begun:
        assert "zz" in reply.text or "unknown-tool" in rules(reply)
        behind = parse(f"See {text}", d, TOOLS)
        assert "zz" in behind.text
        assert "zz" not in [call.name for call in behind.calls]
    else:
        assert told(reply) == [("zz", {"a": "b"}), find("x")]
        assert "unknown-tool" in rules(reply)


HEADS = [
    "<|channel|>commentary to=functions.note <|constrain|>json<|message|>",
    "<|channel|>commentary to=functions.note<|constrain|>json<|message|>",
    "<|channel|>analysis to=functions.note <|constrain|>json<|message|>",
    "<|channel|>commentary to=functions.note code<|message|>",
    " to=functions.note<|channel|>commentary <|constrain|>json<|message|>",
    " to=functions.note<|channel|>analysis code<|message|>",
    "<|start|>assistant to=functions.note<|channel|>commentary json<|message|>",
    "<|start|>assistant<|channel|>commentary to=functions.note <|constrain|>json<|message|>",
]


@pytest.mark.parametrize("head", HEADS)
def test_25_harmonys_heads_come_in_every_order(head: str) -> None:
    d = one_of("harmony")
    reply = parse(
        f'{head}{{"count": 1}}<|call|>', d, TOOLS, "" if head.startswith("<|start|>") else "<|start|>assistant"
    )
    assert (told(reply), reply.text) == ([note(count=1)], "")
