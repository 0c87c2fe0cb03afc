"""Calls before the closer of a thought that nothing in the reply opened: drafts, since the prompt opened the thought."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from hard_cases import TOOLS, find
from spoken import TALKING, wire
from test_invented_results import answering
from wire_cases import called, read_at_cuts, rules, stream

import toolspeak as ts
from cost import LINEAR, growth
from listening import listening
from toolspeak.dialects import get
from toolspeak.models.speaker import Speaker
from toolspeak.wire.dialect import Dialect
from toolspeak.wire.reading.collect import collect
from toolspeak.wire.reading.lexicon import program
from toolspeak.wire.thought_tags import THOUGHT_TAGS

DRAFTS = {
    "in words": "I could call it:\n{call}\nHmm, no.\n{close}\n\nNo call is needed.",
    "before all words": "{call}\nHmm, no.\n{close}\n\nNo call is needed.",
    "right before the closer": "I could call it:\n{call}\n{close}\n\nNo call is needed.",
    "the closer ends a line": "I could call it:\n{call}\nHmm no{close}\nNo call is needed.",
    "the closer is glued": "I could call it:\n{call}\nHmm, no.{close}No call is needed.",
    "a space before the closer": "I could call it:\n{call}\nHmm, no. {close}\nNo call is needed.",
    "nothing after the thought": "I could call it:\n{call}\nHmm, no.\n{close}",
    "two drafts": "Either\n{call}\nor\n{call}\n\nHmm, no.\n{close}\nNo call is needed.",
}
"""None of these calls counts."""
CALLS = {
    "at the end of the thought": "I call it:\n{call}\n{close}",
    "at the end of the thought, and marks": "I call it:\n{call}\n{close}<|im_end|>\n",
    "behind the thought": "Hm.\n{close}\n\n{call}",
    "behind the thought, and a closer too many": "Hm.\n{close}\n\n{call}\nI wait.\n{close}\nFor it.",
    "before inline code": "I call it:\n{call}\nThe mark `{close}` ends a thought.",
    "before a quotation": 'I call it:\n{call}\nThe mark "{close}" ends a thought.',
    "before a sentence": "I call it:\n{call}\nThe mark {close} ends a thought.",
    "before a fence": "I call it:\n{call}\nSo:\n```\n{close}\n```\nends a thought.",
    "before a pair in a line": "I call it:\n{call}\nThe marks are {open}Hm.{close}\nThat is all.",
}
"""One call counts in each."""
SHOWN = (
    *(
        "```json\n{call}\n```",
        "```\n{call}\n```",
        "```{call}```",
        "~~~\n{call}\n~~~",
        "`{call}`",
        '"{call}"',
        "- {call}",
    ),
    *(
        "<code>{call}</code>",
        "<pre>\n{call}\n</pre>",
        "> {call}",
        "# {call}",
        "<example>\n{call}\n</example>",
        "**{call}**",
    ),
)
"""What may be around a draft."""
INLINE = [d for d in TALKING if not d.header and d.name != "llama3-builtin"]
"""Without dialects in which nothing but marks may stand behind a call."""

read = partial(read_at_cuts, tools=TOOLS, every=3)


def pairs(d: Dialect) -> dict[str, str]:
    """Closers of thoughts with their openers: the dialect's own, and two of other families."""
    lone = program(d, True).lone_closers
    own = d.thinking.close.strip() if d.thinking else ""
    written = wire(d, find("two words"))
    return {close: lone[close] for close in (own, "</think>", "</thinking>") if close and close not in written}


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_a_call_before_a_lone_closer_does_not_run(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for close in pairs(d):
        for what, form in DRAFTS.items():
            reply = read(d, form.format(call=call, close=close))
            assert called(reply) == [], (what, close)
            assert d not in INLINE or "drafted-call" in rules(reply), (what, close)


@pytest.mark.parametrize("d", TALKING, ids=lambda d: d.name)
def test_what_is_around_a_draft_hides_no_closer(d: Dialect) -> None:
    """A mark behind the call may look like the opener of a quotation that has the closer in it."""
    for draft in dict.fromkeys((wire(d, find("two words")).strip(), wire(get("hermes"), find("two words")))):
        for form in SHOWN:
            for before in ("", "I could:\n", "I could call "):
                text = f"{before}{form.format(call=draft)}\nHmm, no.\n</think>\n\nNo call."
                assert called(ts.parse(text, d, tools=TOOLS)) == [], text


@pytest.mark.parametrize("name", ["granite3", "granite3.2", "hermes", "pythonic"])
def test_the_closer_of_surroundings_at_every_cut(name: str) -> None:
    draft = wire(get("hermes"), find("two words"))
    for form in SHOWN[:4]:
        for before in ("", "I could call "):
            text = f"{before}{form.format(call=draft)}\nHmm, no.\n</think>\n\nNo call."
            assert called(read_at_cuts(get(name), text, TOOLS)) == [], text


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_call_that_is_no_draft_counts(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for close, opener in pairs(d).items():
        for what, form in CALLS.items():
            reply = read(d, form.format(call=call, close=close, open=opener))
            assert called(reply) == ["find"], (what, close)
            assert "drafted-call" not in rules(reply), (what, close)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_a_thought_behind_calls_is_no_end_of_one(d: Dialect) -> None:
    """Its opener may be a part of the text behind them."""
    calls = wire(d, find("one"), find("two")).strip()
    reply = read(d, f"{calls}\n\n<analysis>\nok\n</analysis>")
    assert "drafted-call" not in rules(reply)
    assert reply.calls[0].whole


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_the_call_behind_a_draft_counts(d: Dialect) -> None:
    draft, call = (wire(d, find(query)).strip() for query in ("no words", "two words"))
    for close in pairs(d):
        for form in ("{draft}\nYes.\n{close}\n\n{call}", "{draft}\n{close}\n\n{call}"):
            reply = read(d, form.format(draft=draft, close=close, call=call))
            assert [(one.arguments["query"], one.whole) for one in reply.calls] == [
                ("no words", False),
                ("two words", True),
            ], (form, close)


@pytest.mark.parametrize("d", INLINE, ids=lambda d: d.name)
def test_thoughts_that_stay_in_the_text(d: Dialect) -> None:
    call = wire(d, find("two words")).strip()
    for close in pairs(d):
        text = DRAFTS["in words"].format(call=call, close=close)
        assert called(collect(stream(d, [text], TOOLS, thoughts="keep"))) == []


@pytest.mark.parametrize("close", THOUGHT_TAGS.values())
def test_every_closer(close: str) -> None:
    for name in ("hermes", "llama3-json", "kimi-k2"):
        text = DRAFTS["in words"].format(call=wire(get(name), find("two words")).strip(), close=close)
        assert called(read(get(name), text)) == [], name


@pytest.mark.parametrize("form", ["Hm.\n</think>\n", "{call}\n</think>\n", "Hm </thinking> so.\n"])
def test_many_closers_take_linear_time(form: str) -> None:
    hermes = get("hermes")
    unit = form.format(call=wire(hermes, find("two words")).strip())
    assert growth(lambda n: lambda: stream(hermes, ["So:\n" + unit * n], TOOLS), 50) <= LINEAR


def delete(path: str) -> str:
    """Delete it."""
    raise AssertionError(path)


DRAFT = '<tool_call>\n{"name": "delete", "arguments": {"path": "/data"}}\n</tool_call>\nHmm, no.\n</think>\n\nShall I?'


@pytest.mark.parametrize(
    "text", [DRAFT, f"I could:\n{DRAFT}", f"I could:\n{DRAFT.replace('</think>', '</reasoning>')}"]
)
def test_the_model_is_asked_again(text: str) -> None:
    model = ts.Scripted([text, "Shall I delete it?"])
    reply = ts.run("Go", tools=[delete], model=Speaker(model, "hermes"))
    assert (reply.text, len(model.requests)) == ("Shall I delete it?", 2)
    assert "ends a thought, so it was a draft. If you need the call" in str(model.requests[1])
    assert ts.decide("Go", tools=[delete], model=Speaker(ts.Scripted([text, "No."]), "hermes")).text == "No."


@pytest.mark.parametrize("name", ["qwen2.5-7b", "mine"])
@pytest.mark.parametrize("text", [DRAFT, DRAFT.replace("Hmm, no.", "Hmm.\n" * 99), f"I could:\n{DRAFT}"])
def test_a_draft_that_a_server_leaves_in_the_text(name: str, text: str) -> None:
    """For a model of no known dialect, too."""

    async def main() -> None:
        async with listening(answering(text)) as url:
            try:
                reply = await ts.adecide("Go", tools=[delete], model=f"{url}/v1#{name}")
            except ts.GenerationError as error:  # asked again, it writes the same
                reply = error.attempts[-1].reply
            assert called(reply) == []
            assert {"drafted-call", "like-a-call"} & {*rules(reply)}

    asyncio.run(main())
