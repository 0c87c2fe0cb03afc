"""What of a reply is passed on, and when."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from replies import hermes_call
from toolspeak.drive import Done
from toolspeak.errors import GenerationError
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta
from toolspeak.gateway.generation import answer, sure
from toolspeak.models.base import Model
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.types import Note, Request, Tool

WEATHER = Tool("weather", "", {"type": "object", "properties": {"days": {"type": "integer"}}, "required": ["days"]})
NOW = Tool("now")
ASKED = Request(messages=[{"role": "user", "content": "Weather?"}], tools=(WEATHER, NOW))


def native(*replies: Sequence[Event]) -> Model:
    return Scripted(replies, capabilities=["tools"])


def called(name: str, *pieces: str, whole: bool = True, text: str = "") -> list[Event]:
    said: list[Event] = [TextDelta(text)] if text else []
    return [*said, CallStart(name, "c"), *map(ArgumentsDelta, pieces), CallEnd(whole), Finished("tool_calls")]


def told(request: Request, model: Model, **options: Any) -> list[Any]:
    async def go() -> list[Any]:
        events: list[Any] = []
        try:
            async for event in answer(request, model, **options):
                events.append(event)
        except GenerationError as error:
            events.append(error)
        return events

    return asyncio.run(go())


def pieces(events: list[Any]) -> list[str]:
    return [event.json for event in events if isinstance(event, ArgumentsDelta)]


def test_a_call_is_held_back_until_it_is_checked() -> None:
    events = told(ASKED, native(called("weather", '{"da', 'ys": 3}')))
    assert pieces(events) == ['{"days": 3}']
    assert isinstance(events[-1], Done)


def test_calls_of_some_tools_are_told_as_they_are_written() -> None:
    """In the order of the calls: behind one that is held back all are."""
    written = [*called("weather", '{"da', 'ys": 3}')[:-1], *called("now", "{", "}")]
    assert pieces(told(ASKED, native(written), live={"weather"})) == ['{"da', 'ys": 3}', "{}"]
    assert pieces(told(ASKED, native(written), live={"now"})) == ['{"days": 3}', "{}"]


def test_a_wrong_call_is_never_told_and_the_model_is_asked_again() -> None:
    events = told(
        ASKED, native(called("weather", '{"day": 3}', text="So. "), called("weather", '{"days": 3}', text="Now. "))
    )
    assert pieces(events) == ['{"days": 3}']
    assert [event.text for event in events if isinstance(event, TextDelta)] == ["So. ", "\n\nNow. "]  # two attempts


def test_live_pieces_come_as_they_are_written() -> None:
    events = told(ASKED, native(called("weather", '{"da', 'ys": 3}')), live=True)
    assert pieces(events) == ['{"da', 'ys": 3}']
    assert sum(isinstance(event, CallStart) for event in events) == 1


def test_a_live_call_without_arguments_has_an_empty_object() -> None:
    assert pieces(told(ASKED, native(called("now")), live=True)) == ["{}"]


@pytest.mark.parametrize(
    "reply",
    [called("weather", '{"day": 3}'), called("weather", '{"days": "3"}'), called("weather", '{"da', whole=False)],
)
def test_a_live_call_that_ends_badly_is_an_error(reply: list[Event]) -> None:
    events = told(ASKED, native(reply, reply), live=True)
    assert isinstance(events[-1], GenerationError)
    assert not any(isinstance(event, Finished) for event in events)


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize(
    "note", [Note("unbalanced-closers", "</parameter> </function>"), Note("drafted-call", "</think>")]
)
def test_a_live_call_that_is_not_whole_after_all_is_an_error(note: Note, finish: Any) -> None:
    """A later note says so, when its end was passed on: it ended too early, or was a draft."""
    reply = [*called("weather", '{"days": 3}')[:-1], TextDelta("and more"), Noted(note), Finished(finish)]
    events = told(ASKED, native(reply, reply, reply), live=True)
    assert isinstance(events[-1], GenerationError)
    assert not any(isinstance(event, Finished) for event in events)


def test_a_call_behind_the_head_of_another_turn_is_asked_for_again() -> None:
    call = hermes_call("weather", days=3)
    lost = f"A talk:\n\nUser: Hi.\nAssistant: Hello.\n\n{call}"
    events = told(ASKED, Speaker(Scripted([lost, call]), "hermes"))
    assert pieces(events) == ['{"days": 3}']
    assert {"call-in-turn", "invented-turn", "re-asked"} <= {note.rule for note in events[-1].value.notes}


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_an_incomplete_call_in_a_reply_that_the_model_ended_is_asked_again(choice: str) -> None:
    """Its server ended the reply with `stop`, so the call was not cut."""
    wrong, whole = '[TOOL_CALLS]weather[ARGS]{"days": 3', '[TOOL_CALLS]weather[ARGS]{"days": 4}'
    events = told(replace(ASKED, choice=choice), Speaker(Scripted([wrong, whole]), "mistral-v13"))
    assert [call.arguments for call in events[-1].value.calls] == [{"days": 4}]
    assert events[-1].value.finish == "tool_calls"
    never = told(replace(ASKED, choice=choice), Speaker(Scripted([wrong], repeat=True), "mistral-v13"))
    assert isinstance(never[-1], GenerationError)


@pytest.mark.parametrize("finish", ["length", "content_filter"])
@pytest.mark.parametrize("before", [0, 1])
def test_a_live_call_that_is_cut_ends_with_a_finish_that_says_so(before: int, finish: Any) -> None:
    """What came before it stands."""
    cut = [
        *called("weather", '{"days": 3}')[:-1] * before,
        *called("weather", '{"da', whole=False)[:-1],
        Finished(finish),
    ]
    events = told(replace(ASKED, choice="required"), native(cut), live=True)
    assert pieces(events) == ['{"days": 3}'] * before + ['{"da']
    assert [event.whole for event in events if isinstance(event, CallEnd)] == [True] * before + [False]
    assert [event.finish for event in events if isinstance(event, Finished)] == [finish]
    assert [call.arguments for call in events[-1].value.calls] == [{"days": 3}] * before
    assert "cut-call" in {event.note.rule for event in events if isinstance(event, Noted)}


def test_a_tool_that_was_not_offered_is_not_told_even_live() -> None:
    events = told(ASKED, native(called("rm", "{}"), called("weather", '{"days": 3}')), live=True)
    assert [event.name for event in events if isinstance(event, CallStart)] == ["weather"]


def test_what_was_spent_is_what_all_tries_spent() -> None:
    from toolspeak.types import Usage

    bad, good = called("rm", "{}"), called("weather", '{"days": 3}')
    bad[-1] = good[-1] = Finished("tool_calls", Usage(10, 5))
    assert next(e for e in told(ASKED, native(bad, good)) if isinstance(e, Finished)).usage == Usage(20, 10)


def test_a_grammar_that_says_all_of_the_schema_lets_pieces_leave() -> None:
    speaker = Speaker(Scripted("x", capabilities=["prompt", "grammar"]), "hermes")
    required = replace(ASKED, choice="required")
    assert sure(required, speaker)
    assert not sure(ASKED, speaker)
    bounded = Tool("weather", "", {"type": "object", "properties": {"days": {"type": "integer", "minimum": 1}}})
    assert not sure(replace(required, tools=(bounded,)), speaker)
    assert not sure(required, Speaker(Scripted("x"), "hermes"))


def test_where_nothing_is_offered_a_call_is_noted_and_not_told() -> None:
    events = told(Request(messages=ASKED.messages), native(called("rm", "{}", text="Well. ")))
    assert [event.note.rule for event in events if isinstance(event, Noted)] == ["not-offered"]
    assert not any(isinstance(event, (CallStart, ArgumentsDelta, CallEnd)) for event in events)
    done = events[-1]
    assert (done.value.text, done.value.finish, done.value.calls) == ("Well. ", "stop", ())
