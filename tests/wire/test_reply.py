"""A reply as a whole: what only talks of calls, what is cut, the ids of its calls, names among thousands."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hard_cases import TOOLS, find, note
from spoken import TALKING, wire
from wire_cases import DIALECTS, cuts, merged, one_of, rules, stream, told

from cost import costs_at_most
from toolspeak.events import ArgumentsDelta, TextDelta, ThoughtDelta
from toolspeak.types import Reply, Tool
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.dialect import Dialect, Tagged, Tree
from toolspeak.wire.reading.source import literal_words

BODY = '{"name": "note", "arguments": {"count": 1}}'
BARE = ["generic-json", "tool-json", "llama3-json", "pythonic"]
PLAIN = [d for d in TALKING if not d.header]


def read(d: Dialect, text: str, prompt: str = "") -> Reply:
    """The reply, which is the same at every cut."""
    whole = merged(stream(d, [text], TOOLS, prompt))
    for chunks in cuts(text, random.Random(text)):
        assert merged(stream(d, chunks, TOOLS, prompt)) == whole, chunks
    return parse(text, d, TOOLS, prompt)


# Talk about calls


@pytest.mark.parametrize("d", PLAIN, ids=lambda d: d.name)
def test_a_call_in_inline_code_is_talk(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    if "`" in call or "\n\n" in call or d.name == "react":
        pytest.skip("a call has backticks or paragraphs in it, or is a line that begins with a word")
    text = f"You write `{call}` to call it, and `find` is a tool."
    reply = read(d, text)
    assert (reply.text, reply.calls, reply.finish) == (text, (), "stop")
    after = read(d, f"{text}\n{call}")
    assert [c.name for c in after.calls] == ["find"]


@pytest.mark.parametrize("d", PLAIN, ids=lambda d: d.name)
def test_a_call_behind_inline_code_is_one(d: Dialect) -> None:
    for text in ("I use `find`:\n", "A lone ` is no code.\n", "Now ``this``\n\n"):
        assert [c.name for c in read(d, text + wire(d, find("x")).lstrip()).calls] == ["find"]


@pytest.mark.parametrize("name", BARE)
def test_a_call_within_a_block_of_code_is_code(name: str) -> None:
    d = one_of(name)
    call = wire(d, note(count=1))
    text = f"So:\n\n```python\nx = 1\ny = {call}\n```\nThat is it.\n"
    assert (read(d, text).text, read(d, text).calls) == (text, ())
    after = read(d, f"{text}\n{call}")
    assert [c.name for c in after.calls] == ["note"]


@pytest.mark.parametrize("name", BARE)
def test_a_block_that_is_a_call_is_one_whatever_its_language(name: str) -> None:
    d = one_of(name)
    for language in ("", "json", "python", "tool_call"):
        reply = read(d, f"```{language}\n{wire(d, note(count=1))}\n```")
        assert ([c.name for c in reply.calls], reply.text) == (["note"], "")
        assert "fence" in rules(reply)


def test_nothing_within_a_block_of_code_is_a_call() -> None:
    text = f"```python\nx = {BODY}\n<tool_call>{BODY}</tool_call>\n```\nDone."
    reply = read(one_of("hermes"), text)
    assert (reply.text, reply.calls) == (text, ())


LONG = "with words and words that go on for a while, and more of them after that"
TEXTS = [
    f"A text {LONG}",
    f"`code {LONG}` and then ` a text",
    f"```python\n[x for x in {LONG}]\n```\n{LONG}",
    f"| {{a}} | [b] {LONG} |\n|---|---|\n",
    f"[A text in brackets {LONG}]",
    f"<b>{LONG}</b>\n\n- {LONG}\n",
    f"Action: we must act {LONG}",
    f"note is a word {LONG}",
    '{"title": "' + LONG + '", "items": [1, {"name": "note"}]}',
    '```json\n{"title": "' + LONG + '"}\n```\n' + LONG,
]


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_text_is_not_held_back_longer_than_a_marker(d: Dialect) -> None:
    for text in TEXTS:
        decoder, out = Decoder(d, TOOLS), 0
        for i, c in enumerate(text):
            out += sum(len(e.text) for e in decoder.feed(c) if isinstance(e, TextDelta | ThoughtDelta))
            assert i + 1 - out <= 24, text[: i + 1]


# What is cut


@pytest.mark.parametrize(
    "d",
    [d for d in TALKING if any(isinstance(p, Tagged | Tree) for p in d.call) and not d.header],
    ids=lambda d: d.name,
)
def test_a_call_cut_between_its_parameters_is_not_whole(d: Dialect) -> None:
    text = wire(d, note(text="some words", count=3, flag=True))
    full = {"text": "some words", "count": 3, "flag": True}
    seen = 0
    for i in range(1, len(text)):
        reply = parse(text[:i], d, TOOLS)
        assert [c.arguments for c in reply.calls if c.whole] in ([], [full]), text[:i]
        if reply.calls and not reply.calls[0].whole:
            seen += 1
            assert reply.finish == "length"
    assert seen > 20


@pytest.mark.parametrize(
    "d",
    [d for d in TALKING if any(isinstance(p, Tagged | Tree) for p in d.call) and not d.header],
    ids=lambda d: d.name,
)
def test_a_call_that_ends_between_parameters_is_whole_where_there_are_no_more(d: Dialect) -> None:
    """All that the tool has were written: only closers can be missing. Of a tool that is not known that well, more may
    have been meant."""
    pair = Tool("note", "", {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}}})
    bare = Tool("note", "", {"type": "object"})
    text = wire(d, note(a="one", b="two"))
    value = text.index("two") + len("two")
    for i in range(value, len(text)):
        whole = [c.arguments for c in parse(text[:i], d, [pair]).calls if c.whole]
        assert whole in ([], [{"a": "one", "b": "two"}]), text[:i]
    hole = next(hole for hole in d.call if isinstance(hole, Tagged | Tree))
    close = hole.close.strip() if isinstance(hole, Tagged) else "one"
    first = text.index(close, text.index("one")) + len(close)
    for tools in (None, [bare], [pair]):
        reply = parse(text[:first], d, tools)
        assert [c.whole for c in reply.calls if c.whole] == [], (tools, text[:first])
    if isinstance(hole, Tagged):
        done = text.index(close, value) + len(close)
        assert told(parse(text[:done], d, [pair])) == [("note", {"a": "one", "b": "two"}, True)]


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_name_that_is_cut_is_no_other_tools(d: Dialect) -> None:
    tools = [Tool("get"), Tool("get_weather")]
    text = wire(d, ("get_weather", {}))
    end = text.index("get_weather") + len("get")
    assert [c for c in parse(text[:end], d, tools).calls if c.whole] == []


def test_an_opener_that_is_cut_ends_by_length() -> None:
    for name, text in (("hermes", '<tool_call>{"na'), ("glm47", "<tool_call>no"), ("harmony", "<|channel|>comm")):
        reply = read(one_of(name), text)
        assert (reply.text, reply.calls, reply.finish) == (text, (), "length")
    two = read(one_of("glm47"), wire(one_of("glm47"), note(count=1)) + "<tool_call>no")
    assert ([c.whole for c in two.calls], two.finish) == ([True], "length")


def test_a_tool_without_parameters_needs_no_arguments() -> None:
    tools = (Tool("ping", "", {"type": "object", "properties": {}, "additionalProperties": False}),)
    for name, text in (("functionary-v3", ">>>ping\n"), ("deepseek-v31", "<｜tool▁call▁begin｜>ping<｜tool▁sep｜>")):
        assert told(parse(text, one_of(name), tools)) == [("ping", {}, True)]


@pytest.mark.parametrize(
    ("name", "prompt", "text", "kept"),
    [
        ("jamba", "<tool_calls>", '{"name": "note"{"a": 1} and so on', '{"a": 1} and so on'),
        ("cohere2-moe", "<|START_ACTION|>", '{"a": 1} {"a": 1} and', '{"a": 1} {"a": 1} and'),
        ("mistral-nemo", "[TOOL_CALLS]", '{"a": 1}Sorry<[find(text ', '{"a": 1}Sorry<[find(text '),
        ("hermes", "<tool_call>\n", "Sorry, no. {", "Sorry, no. {"),
    ],
)
def test_an_opener_in_the_prompt_is_no_text_and_costs_none(name: str, prompt: str, text: str, kept: str) -> None:
    assert read(one_of(name), text, prompt).text == kept


@pytest.mark.parametrize("d", [d for d in DIALECTS if d.header], ids=lambda d: d.name)
def test_what_passes_unchanged_has_no_heads(d: Dialect) -> None:
    assert d.header
    for end in d.header.ends:
        text = f" to=x{d.header.stop}{{}}{end}"
        assert parse(text, d, (), d.header.start, "keep").text == text, end


# Several calls


@pytest.mark.parametrize("d", DIALECTS, ids=lambda d: d.name)
def test_ids_are_unique_though_the_model_repeats_them(d: Dialect) -> None:
    text = wire(d, ("code_interpreter", {"code": "1"}), ("code_interpreter", {"code": "1"}))
    reply = parse(f"{text}\n{text}", d)
    assert len({c.id for c in reply.calls}) == len(reply.calls)


def test_the_id_that_is_repeated_is_told() -> None:
    text = wire(one_of("kimi-k2"), find("x"))
    reply = read(one_of("kimi-k2"), text + text)
    assert [c.id for c in reply.calls] == ["functions.find:0", "call_2"]
    assert [(n.rule, n.detail) for n in reply.notes] == [("doubled-id", "functions.find:0")]


@pytest.mark.parametrize("d", [d for d in TALKING if not d.header], ids=lambda d: d.name)
def test_the_next_section_may_come_at_once(d: Dialect) -> None:
    for between in ("", " ", "\n", "\n\n"):
        reply = read(d, wire(d, note(count=1)) + between + wire(d, find("x")))
        assert [(c.name, c.whole) for c in reply.calls] == [("note", True), ("find", True)]


@pytest.mark.parametrize("name", ["qwen3-coder", "nemotron-3", "step-3.5", "hermes", "glm47", "minimax-m3"])
def test_lines_may_end_as_on_windows(name: str) -> None:
    d = one_of(name)
    text = wire(d, note(text="a b", count=3)).replace("\n", "\r\n")
    assert told(read(d, text)) == [("note", {"text": "a b", "count": 3}, True)]


# Time


@pytest.mark.parametrize(
    ("name", "unit"),
    [("pythonic", "[t"), ("pythonic", "[tool_9"), ("functionary-v3", ">>>tool_9\n"), ("llama3-json", '{"name": "t')],
)
def test_thousands_of_tools_cost_no_time(name: str, unit: str) -> None:
    text = unit * (40_000 // len(unit))

    def reading(count: int) -> Callable[[], None]:
        tools = [Tool(f"tool_{i}") for i in range(count)]
        Decoder(one_of(name), tools)  # what is prepared once for these tools

        def read() -> None:
            decoder = Decoder(one_of(name), tools)
            for i in range(0, len(text), 4):
                decoder.feed(text[i : i + 4])
            decoder.close()

        return read

    assert costs_at_most(4, reading(5_000), reading(5))


def test_arguments_still_come_as_they_arrive() -> None:
    decoder = Decoder(one_of("qwen3-coder"), TOOLS)
    decoder.feed("<tool_call>\n<function=find>\n<parameter=query>\r\n")
    assert decoder.feed("some words") == [ArgumentsDelta("some words")]


def test_a_blank_in_a_tag_is_a_part_of_its_name() -> None:
    assert literal_words("\n</a b>\n<c>\n") == ("</a b>", "<c>")
    assert literal_words(' <x name="') == ("<x", 'name="')
    call = find("x")
    text = wire(one_of("deepseek-v4.1"), call).replace("</｜DSML｜ invoke>", "")
    reply = read(one_of("deepseek-v4.1"), text)
    assert (told(reply), rules(reply)) == ([(*call, True)], ["missing-closer"])
