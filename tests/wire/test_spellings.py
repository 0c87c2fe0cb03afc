"""Parameters in tags of another spelling: read where exactly one reading fits the tool's schema, refused elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from toolspeak.dialects import get, names
from toolspeak.types import Reply, Tool, ToolCall
from toolspeak.wire.decode import Decoder, parse
from toolspeak.wire.dialect import Dialect, Tagged
from toolspeak.wire.prompt.calls import write_calls
from toolspeak.wire.reading.collect import collect

TOOLS: list[Tool[..., Any]] = [
    Tool(
        "weather",
        "",
        {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
    ),
    Tool("now"),
]
SPELLINGS = {
    "param": "<param={key}>{value}</param>",
    "name": '<parameter name="{key}">{value}</parameter>',
    "single": "<param name='{key}'>{value}</param>",
    "equals": "<parameter={key}>{value}</parameter>",
    "quoted": '<param="{key}">{value}</param>',
    "key": "<{key}>{value}</{key}>",
    "argument": '<argument name="{key}" type="{kind}">{value}</argument>',
}


def hole(d: Dialect) -> Tagged | None:
    return next((part for part in d.call if isinstance(part, Tagged)), None)


TAGGED = [d for d in map(get, names()) if hole(d)]


def at_every_cut(wire: str, d: Dialect, tools: list[Tool[..., Any]] | None = TOOLS) -> Reply:
    whole = parse(wire, d, tools)
    for size in (1, 2, 3, 7, 31):
        decoder = Decoder(d, tools)
        pieces = (wire[i : i + size] for i in range(0, len(wire), size))
        other = collect([*(event for piece in pieces for event in decoder.feed(piece)), *decoder.close()])
        assert (other.text, other.calls, other.finish) == (whole.text, whole.calls, whole.finish)
    return whole


def spelled(d: Dialect, *bodies: str) -> str:
    """A call whose parameters are these texts."""
    first, *_ = write_calls([ToolCall("1", "weather", {"city": "Rome"})], d).split(hole_text(d, "city", "Rome"))
    last = write_calls([ToolCall("1", "weather", {"city": "Rome"})], d).removeprefix(first)
    return first + "\n".join(bodies) + "\n" + last.removeprefix(hole_text(d, "city", "Rome"))


def hole_text(d: Dialect, key: str, value: str) -> str:
    tags = hole(d)
    assert tags
    kind = (tags.typed.before + tags.typed.string) if tags.typed else ""
    return f"{tags.open}{key}{kind}{tags.mid}{value}{tags.close}"


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("d", TAGGED, ids=lambda d: d.name)
def test_a_parameter_in_other_tags_is_read(d: Dialect, spelling: str) -> None:
    how = SPELLINGS[spelling]
    days = how.format(key="days", value="3", kind="number")
    wire = spelled(d, how.format(key="city", value="Rome", kind="string"), days)
    reply = at_every_cut(wire, d)
    assert [(call.name, call.arguments, call.whole) for call in reply.calls] == [
        ("weather", {"city": "Rome", "days": 3}, True)
    ]
    assert reply.text.strip() == ""


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("d", TAGGED, ids=lambda d: d.name)
def test_other_tags_behind_the_dialects_own_are_no_part_of_the_value(d: Dialect, spelling: str) -> None:
    days = SPELLINGS[spelling].format(key="days", value="3", kind="number")
    wire = spelled(d, hole_text(d, "city", "Rome"), days)
    (call,) = at_every_cut(wire, d).calls
    assert (call.arguments, call.whole) == ({"city": "Rome", "days": 3}, True)


@pytest.mark.parametrize("closer", ["</param>", "</parameter>", "</city>", "</parameter=city>"])
@pytest.mark.parametrize("d", TAGGED, ids=lambda d: d.name)
def test_a_closer_of_another_spelling_closes(d: Dialect, closer: str) -> None:
    tags = hole(d)
    assert tags
    body = hole_text(d, "city", "Rome").replace(tags.close.strip(), closer)
    for bodies in ([body], [body, hole_text(d, "days", "3")]):
        (call,) = at_every_cut(spelled(d, *bodies), d).calls
        assert call.arguments["city"] == "Rome"
        assert call.whole


REFUSED = {
    "an unknown key": "<param=town>Rome</param>",
    "a key without a word": "<town>Rome</town>",
    "a text": '"Rome"',
    "a key twice": "<city>Rome</city>\n<param=city>Oslo</param>",
    "no closer": "<param=city>Rome",
    "two closers": "<param=city>Rome</param> and more</param>",
    "another's closer": "<city>Rome</town>",
}


@pytest.mark.parametrize("case", REFUSED)
@pytest.mark.parametrize("d", TAGGED, ids=lambda d: d.name)
def test_what_is_not_sure_is_no_whole_call(d: Dialect, case: str) -> None:
    reply = at_every_cut(spelled(d, REFUSED[case]), d)
    assert [call.name for call in reply.calls if call.whole] == []
    assert [call.name for call in reply.calls] in (["weather"], [])


@pytest.mark.parametrize("d", TAGGED, ids=lambda d: d.name)
def test_without_a_schema_other_tags_are_not_guessed_at(d: Dialect) -> None:
    wire = spelled(d, "<param=city>Rome</param>")
    for tools in (None, [Tool("weather")]):
        assert not any(call.whole for call in at_every_cut(wire, d, tools).calls)


@pytest.mark.parametrize("d", TAGGED, ids=lambda d: d.name)
def test_values_may_hold_tags(d: Dialect) -> None:
    for value in ("<city>Oslo</city>", "<param=days>3</param>", '<a><parameter name="days">3</parameter></a>'):
        (call,) = at_every_cut(spelled(d, hole_text(d, "city", value)), d).calls
        assert (call.arguments, call.whole) == ({"city": value}, True)


@pytest.mark.parametrize("d", [d for d in TAGGED if not (tags := hole(d)) or not tags.typed], ids=lambda d: d.name)
def test_an_opener_in_a_value_that_nothing_closes_may_be_a_parameter(d: Dialect) -> None:
    """Unless the parameter comes, too: the value only speaks of it then."""
    tags = hole(d)
    assert tags
    opens, three = hole_text(d, "days", "3").split("3")[0], hole_text(d, "days", "3")
    for value in (f"Rome{opens}3", f"Rome {opens}3{tags.close.strip()} and {opens}4"):
        (call,) = at_every_cut(spelled(d, hole_text(d, "city", value)), d).calls
        assert (call.arguments, call.whole) == ({"city": value}, False)
        (call,) = at_every_cut(spelled(d, hole_text(d, "city", value), three), d).calls
        assert (call.arguments, call.whole) == ({"city": value, "days": 3}, True)
    for value in (f"Rome{three.strip()}.", f"Rome{opens.replace('days', 'other')}3"):
        (call,) = at_every_cut(spelled(d, hole_text(d, "city", value)), d).calls
        assert (call.arguments, call.whole) == ({"city": value}, True)


@pytest.mark.parametrize("d", TAGGED, ids=lambda d: d.name)
def test_a_quoted_key_is_its_key(d: Dialect) -> None:
    tags = hole(d)
    assert tags
    if tags.open.endswith('"'):
        return
    (call,) = at_every_cut(spelled(d, hole_text(d, '"city"', "Rome")), d).calls
    assert (call.arguments, call.whole) == ({"city": "Rome"}, True)


@pytest.mark.parametrize("key", ["arguments", "input", "parameters", "properties"])
@pytest.mark.parametrize("d", TAGGED, ids=lambda d: d.name)
def test_one_parameter_may_hold_all_arguments(d: Dialect, key: str) -> None:
    (call,) = at_every_cut(spelled(d, hole_text(d, key, '{"city": "Rome", "days": 3}')), d).calls
    assert (call.arguments, call.whole) == ({"city": "Rome", "days": 3}, True)
    for value in ('{"town": "Rome"}', '{"city": 1, "city": 2}', "Rome", "[1]"):
        (call,) = at_every_cut(spelled(d, hole_text(d, key, value)), d).calls
        assert list(call.arguments) == [key]
    (call,) = at_every_cut(spelled(d, hole_text(d, key, "{}"), hole_text(d, "city", "Rome")), d).calls
    assert list(call.arguments) == [key, "city"]


def self_closing(d: Dialect) -> tuple[str, str] | None:
    """The end of the tag that holds the name, and all that a call without arguments has behind it."""
    wire = write_calls([ToolCall("1", "now", {})], d)
    i = wire.index("now") + 3
    end = '">' if wire.startswith('">', i) else ">" if wire[i] == ">" else ""
    return (wire[:i] + end[:-1], wire[i + len(end) :]) if end else None


@pytest.mark.parametrize("slash", ["/>", " />"])
@pytest.mark.parametrize("d", [d for d in TAGGED if self_closing(d) and not d.header], ids=lambda d: d.name)
def test_a_tag_may_close_itself(d: Dialect, slash: str) -> None:
    ends = self_closing(d)
    assert ends
    closed = ends[1].partition(">")[2]
    for rest in (ends[1], closed):
        reply = at_every_cut(ends[0] + slash + rest, d)
        assert [(call.name, call.arguments, call.whole) for call in reply.calls] == [("now", {}, True)]
        assert reply.text.strip() == ""


QUOTED = {
    "gemma4": ("<|tool_call>", "<tool_call|>", '<|"|>'),
    "functiongemma": ("<start_function_call>", "<end_function_call>", "<escape>"),
}


@pytest.mark.parametrize("name", QUOTED)
@pytest.mark.parametrize(
    ("frame", "whole"),
    [
        ("{opener}\n{call}\n{closer}", True),
        (" {call}{closer}", True),
        ("{opener}{call}{opener}", True),  # in place of the closer
        ("{call}", True),
        ("{call}\n\nDone.", False),
        ("{opener}{call}</tool_call>", False),
        ("{opener}{call}\n\nDone.", False),
    ],
)
def test_a_mark_of_several_characters_ends_its_text_whatever_follows_the_call(
    name: str, frame: str, whole: bool
) -> None:
    opener, closer, quote = QUOTED[name]
    wire = frame.format(opener=opener, closer=closer, call=f"call:weather{{city:{quote}Rome{quote}}}")
    reply = at_every_cut(wire, get(name))
    assert [(call.name, call.arguments, call.whole) for call in reply.calls] == [("weather", {"city": "Rome"}, whole)]
    assert reply.finish == "tool_calls"


@pytest.mark.parametrize("name", QUOTED)
@pytest.mark.parametrize("behind", ["y", " y", "\ny", "\n\ny"])
def test_a_text_with_its_own_mark_and_a_bracket_is_not_cut_there(name: str, behind: str) -> None:
    opener, closer, quote = QUOTED[name]
    for begin, end in ((opener, closer), ("", closer), ("", "")):
        reply = at_every_cut(f"{begin}call:weather{{city:{quote}x{quote}}}{behind}{quote}}}{end}", get(name))
        assert not any(call.whole for call in reply.calls)


@pytest.mark.parametrize("between", ["", ",", ", ", "\n", ";\n"])
@pytest.mark.parametrize("name", QUOTED)
def test_calls_between_the_marks_of_one(name: str, between: str) -> None:
    opener, closer, quote = QUOTED[name]
    first = f"call:weather{{city:{quote}Rome{quote}}}"
    wire = opener + between.join([first, "call:now{}", first, "call:weather{days:3}"]) + closer
    reply = at_every_cut(wire + "Done.", get(name))
    assert [(call.name, call.arguments, call.whole) for call in reply.calls] == [
        ("weather", {"city": "Rome"}, True),
        ("now", {}, True),
        ("weather", {"city": "Rome"}, True),
        ("weather", {"days": 3}, True),
    ]
    assert reply.text.strip() == "Done."
    (call,) = at_every_cut(f"{opener}call:weather{{city:{quote}a }}call:b{{}}{quote}}}{closer}", get(name)).calls
    assert call.arguments == {"city": "a }call:b{}"}


JSON_IN_TAGS = [
    "glm45",
    "glm47",
    "spark-2.5",
    "laguna",
    "laguna-xs",
    "iquest-q1",
    "iquest-coder-v2",
    "hyperclovax",
    "ling-3",
    "hy-v3",
    "hy-v4",
]


@pytest.mark.parametrize("name", JSON_IN_TAGS)
def test_a_call_as_json_between_the_marks(name: str) -> None:
    d = get(name)
    for space in ("", "\n"):
        body = '{"name": "weather", "arguments": {"city": "Rome"}}'
        opener, closer = str(d.call[0]), str(d.call[-1]).strip()
        reply = at_every_cut(f"{opener}{space}{body}{space}{closer}", d)
        assert [(call.name, call.arguments, call.whole) for call in reply.calls] == [
            ("weather", {"city": "Rome"}, True)
        ]
        assert reply.text == ""
        assert not at_every_cut(f'{opener}{space}{{"name": "nothing", "city": "Rome"}}{space}{closer}', d).calls
        if name.startswith("hy-"):
            continue  # more than a line's end stands behind its names
        (call,) = at_every_cut(f'{opener}weather{space}{{"city": "Rome"}}{space}{closer}', d).calls
        assert (call.name, call.arguments, call.whole) == ("weather", {"city": "Rome"}, True)
        assert not at_every_cut(f'{opener}nothing{space}{{"city": "Rome"}}{space}{closer}', d).calls


BARE = [d for d in TAGGED if (tags := hole(d)) and not tags.open.rstrip().endswith('"')]
GLM = [d for d in BARE if (tags := hole(d)) and tags.open == "<arg_key>" and "<tool_sep>\n" not in d.call]


@pytest.mark.parametrize("d", BARE, ids=lambda d: d.name)
def test_the_opener_of_a_parameter_that_is_repeated(d: Dialect) -> None:
    tags = hole(d)
    assert tags is not None
    wire = write_calls([ToolCall("1", "weather", {"city": "Rome"})], d)
    reply = at_every_cut(wire.replace(tags.open + "city", tags.open.rstrip() * 2 + "city"), d)
    assert [(call.name, call.arguments, call.whole) for call in reply.calls] == [("weather", {"city": "Rome"}, True)]
    assert "repeated-tag" in [note.rule for note in reply.notes]


@pytest.mark.parametrize("d", GLM, ids=lambda d: d.name)
def test_a_closer_too_many_around_a_key_and_behind_a_name(d: Dialect) -> None:
    wire = write_calls([ToolCall("1", "weather", {"city": "Rome"})], d)
    reply = at_every_cut(wire.replace("</arg_key>", "</arg_key></arg_key>"), d)
    assert [(call.arguments, call.whole) for call in reply.calls] == [({"city": "Rome"}, True)]
    assert "repeated-tag" in [note.rule for note in reply.notes]
    start, end = str(d.call[0]), str(d.call[-1])
    reply = at_every_cut(f"{start}now</arg_value>{end}", d)
    assert [(call.name, call.arguments, call.whole) for call in reply.calls] == [("now", {}, True)]
    assert "stray-closer" in [note.rule for note in reply.notes]
    assert not any(call.whole for call in at_every_cut(f"{start}weather</arg_value>Rome{end}", d).calls)
    assert not any(call.whole for call in at_every_cut(f"{start}weather<arg_key>city</arg_value>{end}", d).calls)


@pytest.mark.parametrize("bar", ["｜｜", "||", "|", "‖"])
@pytest.mark.parametrize("name", ["deepseek-dsml", "deepseek-v4", "deepseek-v4.1"])
def test_other_bars_around_the_mark_of_deepseek(name: str, bar: str) -> None:
    d = get(name)
    calls = [ToolCall("1", "weather", {"city": "Rome", "days": 2}), ToolCall("2", "now", {})]
    wire = write_calls(calls, d).replace("｜DSML｜", f"{bar}DSML{bar}")
    reply = at_every_cut(f"I look.\n\n{wire}", d)
    assert [(call.name, call.arguments, call.whole) for call in reply.calls] == [
        ("weather", {"city": "Rome", "days": 2}, True),
        ("now", {}, True),
    ]
    assert reply.text.strip() == "I look."
    assert not at_every_cut(f"You write `{wire}` for that.", d).calls
    assert not at_every_cut(wire.replace("weather", "seek").replace('"now"', '"seek"'), d).calls


def own_closers(d: Dialect, value: object) -> int:
    """The closing tags of a parameter in a value, less its opening tags."""
    tags = hole(d)
    assert tags
    text = value if isinstance(value, str) else ""
    return text.count(tags.close.strip()) - text.count(tags.open.strip())


@pytest.mark.parametrize("d", TAGGED, ids=lambda d: d.name)
def test_a_parameter_with_a_damaged_tag_is_not_part_of_the_value_before_it(d: Dialect) -> None:
    written = write_calls([ToolCall("1", "weather", {"city": "Rome", "days": 3})], d)
    start = written.index("Rome")
    damaged = [written[:at] + written[at + size :] for size in (1, 2, 5) for at in range(start, len(written) - size)]
    closer = written[start + 4 : written.index("days")].strip()[: len(hole(d).close.strip())]  # type: ignore[union-attr]
    damaged += [written.replace("Rome" + closer, "Rome" + closer + between + closer) for between in ("", "\n")]
    for wire in damaged:
        for call in parse(wire, d, TOOLS).calls:
            assert not (call.whole and own_closers(d, call.arguments.get("city")) > 0), wire
