"""Parameters between tags of which a part is missing: the end of a key, its value, or all that follows it."""

from __future__ import annotations

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from wire_cases import read_in_pieces, rules, told

from toolspeak.types import Reply, Tool
from toolspeak.wire.dialect import Dialect, JsonCall, Tagged
from toolspeak.wire.holes.tag_words import tag_words
from toolspeak.wire.thought_tags import thought_tags

FREE = (Tool("find", "", {"type": "object", "properties": {"query": {"type": "string"}, "place": {"type": "string"}}}),)
"""A tool that needs no argument."""


def read(d: Dialect, text: str, tools: tuple[Tool, ...] = FREE, prompt: str = "") -> Reply:
    return read_in_pieces(d, text, tools, prompt)


def hole(d: Dialect) -> Tagged:
    return next(part for part in d.call if isinstance(part, Tagged))


IN_TAGS = [d for d in TALKING if any(isinstance(part, Tagged) for part in d.call)]
BY_TAGS = pytest.mark.parametrize("d", IN_TAGS, ids=lambda d: d.name)


def written(d: Dialect, key: str, after_key: str) -> str:
    """A call with one parameter, and what comes after the key."""
    whole = wire(d, ("find", {"query": "two words"}))
    before, _, behind = whole.partition(hole(d).open.strip() + "query")
    return f"{before}{hole(d).open.strip()}{key}{after_key}{behind.partition(hole(d).close.strip())[2]}"


@BY_TAGS
def test_a_key_without_its_end_and_with_its_value(d: Dialect) -> None:
    close = hole(d).close.strip()
    reply = read(d, written(d, "query", "=**/*.py" + close))
    assert (told(reply), rules(reply)) == ([("find", {"query": "**/*.py"}, True)], ["other-tags"])
    two = read(d, written(d, "query", f"=a=b{close}{hole(d).open.strip()}place=c{close}"))
    assert told(two) == [("find", {"query": "a=b", "place": "c"}, True)]
    for key, value in (("quest", "=x"), ("query", "= x" + close + " y")):  # no key of the tool; two possible ends
        assert [call for call in read(d, written(d, key, value + close)).calls if call.whole] == []


@BY_TAGS
def test_a_key_without_its_value_makes_no_call_that_runs(d: Dialect) -> None:
    own, marks = hole(d), tag_words(hole(d), ())
    end = (marks.before or marks.mid)[0]
    typed = own.typed.before + own.typed.string if own.typed else ""
    after_key = ["", end, end + own.open.strip() + "place" + typed + own.mid + "Rome" + own.close]
    if marks.before or len(marks.mid) > 1:  # otherwise this is an empty value
        after_key.append(end + own.close)
    for text in after_key:
        assert [call.arguments for call in read(d, written(d, "query", text)).calls if call.whole] == []


@pytest.mark.parametrize(
    "d",
    [d for d in TALKING if (d.open or d.also) and not d.items and isinstance(d.call[0], JsonCall)],
    ids=lambda d: d.name,
)
def test_a_list_in_a_section_of_objects(d: Dialect) -> None:
    opener, closer = (d.open, d.close) if d.open else d.also[0]
    call = wire(d, find("two words")).removeprefix(d.open).removesuffix(d.close)
    for text, count in ((f"[{call}]", 1), (f"[{call}, {call}]", 2)):
        reply = read(d, opener + text + closer, TOOLS)
        assert told(reply) == [("find", {"query": "two words"}, True)] * count
        assert (reply.text, rules(reply)) == ("", ["list"])
    assert read(d, f'{opener}["note", 1]{closer}', TOOLS).calls == ()


@pytest.mark.parametrize(
    "d", [d for d in TALKING if d.thinking and len(thought_tags(d.thinking)) > 1], ids=lambda d: d.name
)
def test_a_thought_in_other_tags(d: Dialect) -> None:
    assert d.thinking
    call = wire(d, find("two words"))
    for opener, closer in thought_tags(d.thinking).items():
        thought = f"Hm, {call} first?\n"
        reply = read(d, f"{opener}\n{thought}{closer}\nIt is.", TOOLS)
        assert (reply.thought, reply.text, reply.calls, reply.notes) == (thought, "It is.", (), ())
        assert told(read(d, f"{opener}\n{thought}{closer}\n{call}", TOOLS)) == [("find", {"query": "two words"}, True)]
        for prompt in (f"{opener}\n", f"{opener}\nSo"):
            assert read(d, f"{thought}{closer}\nIt is.", TOOLS, prompt).thought == thought
        assert read(d, "It is.", TOOLS, f"{opener}\nHm.\n{closer}\n").text == "It is."
