"""What plans ask of models: nothing in it that others wrote is a marker; and which reply counts after tools were dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest

from toolspeak.errors import LimitReached
from toolspeak.events import Event, Noted, TextDelta
from toolspeak.plan.conclude import conclude
from toolspeak.plan.effects import Ask, Score, Tell, ask, score
from toolspeak.types import Note, Reply, Request, Tool, ToolCall, Usage
from toolspeak.wire.reading.collect import add_usage

MARK = "<|im_start|>"


def test_prompts_of_likelihoods_hold_no_marker() -> None:
    plan = score([(f"# Request: {MARK} </s> f(a=[", f"{MARK}\n")])
    effect = plan.send(None)
    assert isinstance(effect, Score)
    assert effect.pairs == [("# Request: <\u200b|im_start|> <\u200b/s> f(a=[", "<\u200b|im_start|>\n")]


def test_a_result_is_stated_with_its_markers_whole_and_told_with_them_broken() -> None:
    plan = conclude("What is in the file?", f"{MARK}user")
    effect = plan.send(None)
    assert isinstance(effect, Ask)
    assert MARK not in str(effect.request.messages)
    effect = plan.send(Reply("I do not know."))
    assert isinstance(effect, Ask)
    assert MARK not in str(effect.request.messages)
    with pytest.raises(StopIteration) as ended:
        plan.send(Reply("It holds <\u200b|im_start|>user."))
    assert ended.value.value.text == f"It holds {MARK}user."


DROPPED = Note("tools-in-prompt", "it drops them")
FIRST = Reply("I cannot look that up.", usage=Usage(7, 5), notes=(DROPPED,))
CALLED = Reply(calls=(ToolCall("c", "weather", {"city": "Rome"}),), finish="tool_calls", usage=Usage(90, 9))
AGAIN = {
    "an answer in words stays": ("auto", FIRST, Reply("Which city?", usage=Usage(90, 9)), False),
    "a call counts": ("auto", FIRST, CALLED, True),
    "half a call counts": ("auto", FIRST, Reply("I look. <tool", notes=(Note("cut-opener", "<tool_call>"),)), True),
    "where a call must come, words are no answer": ("required", FIRST, Reply("Sunny."), True),
    "an empty reply is no answer": ("auto", replace(FIRST, text=""), Reply("Sunny."), True),
}


@pytest.mark.parametrize(("choice", "first", "second", "counts"), AGAIN.values(), ids=AGAIN)
def test_which_reply_counts_after_tools_were_dropped(choice: str, first: Reply, second: Reply, counts: bool) -> None:
    """The text of the first reply was passed on, so that of the second one is passed on only if it counts."""
    request = Request([{"role": "user", "content": "Weather?"}], (Tool("weather"),), choice=choice)
    plan = ask(request, live=True)
    assert plan.send(None) == Ask(request, live=True)
    effect, told, passed = plan.send(first), list[Event](), False
    try:
        while True:
            if isinstance(effect, Ask):
                passed = effect.live
                list(effect.read(TextDelta(second.text)) if effect.read else ())
                effect = plan.send(second)
            else:
                told += effect.events if isinstance(effect, Tell) else ()
                effect = plan.send(None)
    except StopIteration as end:
        reply: Reply = end.value
    assert (reply.text, reply.calls) == ((second.text, second.calls) if counts else (first.text, ()))
    assert reply.usage == add_usage(first.usage, second.usage)
    assert (passed or TextDelta(second.text) in told) is counts
    assert (Noted(Note("re-asked", "the server dropped the tools")) in told) is counts


def test_a_limit_leaves_the_answer_that_was_passed_on() -> None:
    plan = ask(Request([{"role": "user", "content": "Weather?"}], (Tool("weather"),)), live=True)
    plan.send(None)
    plan.send(FIRST)
    with pytest.raises(LimitReached) as raised:
        plan.throw(LimitReached("the time limit is used up", limit="seconds", reply=Reply("Which")))
    assert raised.value.reply == FIRST
