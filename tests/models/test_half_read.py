"""Servers that half-read the calls of their model, through the library: every call once, and nothing of one in the text."""

from __future__ import annotations

import asyncio
import json
from itertools import product

import pytest

import toolspeak as ts
from half_read import CASES, ORDERS, READINGS, ROME, Case, Order, half_reading, left_in_text, served
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta
from toolspeak.plan import call_readings
from toolspeak.plan.doubled_calls import DoubledCalls
from toolspeak.types import Note

KNOWN, UNKNOWN = "Qwen2.5-7B-Instruct", "mine"
NAMED = [
    pytest.param(case, name, id=f"{kind}, {name}")
    for kind, case in CASES.items()
    for name in ((KNOWN, UNKNOWN) if case.unknown else (KNOWN,))
]


def weather(city: str) -> str:
    """The weather in a city, now."""
    return f"rain in {city}"


TOOLS = (ts.tool(weather),)
REQUEST = ts.Request([{"role": "user", "content": "Weather?"}], TOOLS)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize(("case", "name"), NAMED)
def test_every_call_is_read_once(case: Case, name: str, order: Order) -> None:
    async def main() -> None:
        async with half_reading(case, order) as url:
            model = ts.model(f"{url}#{name}")
            events = [
                event async for event in model.stream(ts.Request([{"role": "user", "content": "Weather?"}], TOOLS))
            ]
            reply = ts.collect(events)
            assert sorted(call.arguments["city"] for call in reply.calls) == sorted(case.cities)
            assert (reply.text.strip(), reply.finish) == (case.text, "tool_calls" if case.cities else "stop")
            assert len({call.id for call in reply.calls}) == len(case.cities)
            assert sum(isinstance(event, CallStart) for event in events) == len(case.cities)
            assert "".join(event.text for event in events if isinstance(event, TextDelta)) == reply.text
            for event in events:
                assert not isinstance(event, ArgumentsDelta) or json.loads(event.json)["city"] in case.cities

    asyncio.run(main())


def test_a_note_says_that_a_call_was_told_twice() -> None:
    async def main() -> None:
        async with half_reading(CASES["a call is read and left"], "content first") as url:
            reply = await ts.adecide("Weather?", tools=[weather], model=f"{url}#{KNOWN}")
            (note,) = [note.detail for note in reply.notes if note.rule == "call-in-text"]
            assert note.startswith(
                "the server left a call in the text (1 sent as a call as well, counted once); read as"
            )

    asyncio.run(main())


def test_so_it_is_if_the_tools_are_in_the_prompt() -> None:
    """The server got no tools, and reads calls all the same: its calls come while the dialect's reader has one open."""

    async def main() -> None:
        for (kind, case), order in product(CASES.items(), ORDERS):
            async with half_reading(case, order) as url:
                model = ts.model(f"{url}#{UNKNOWN}", dialect="hermes")
                reply = ts.collect([event async for event in model.stream(REQUEST)])
                cities = sorted(call.arguments["city"] for call in reply.calls)
                assert (cities, all(call.whole for call in reply.calls)) == (sorted(case.cities), True), (kind, order)
                finish = "tool_calls" if case.cities else "stop"
                assert (reply.text.strip(), reply.finish) == (case.text, finish), (kind, order)
                told = [note.detail for note in reply.notes if note.rule == "call-in-text"]
                assert bool(told) == ("Rome" in (case.message["content"] or "") and bool(case.message["tool_calls"]))

    asyncio.run(main())


def forecast(city: str, unit: str = "celsius", day: str | None = None) -> str:
    """The forecast for a city."""
    return f"rain in {city}"


FORECAST = ts.Request([{"role": "user", "content": "Weather?"}], (ts.tool(forecast),))


def test_of_two_readings_of_one_call_the_better_one_runs_once() -> None:
    async def main() -> None:
        for (kind, (text, own, counts)), order in product(READINGS.items(), ORDERS):
            case = Case({"content": left_in_text(text), "tool_calls": [served(own)]}, "", ())
            async with half_reading(case, order) as url:
                for model in (ts.model(f"{url}#{KNOWN}"), ts.model(f"{url}#{UNKNOWN}", dialect="hermes")):
                    reply = ts.collect([event async for event in model.stream(FORECAST)])
                    (one,) = reply.calls
                    arguments = {name: value for name, value in one.arguments.items() if value != "celsius"}
                    assert (one.whole, arguments, reply.text.strip()) == (True, counts, ""), (kind, order)
                    (note,) = [note.detail for note in reply.notes if note.rule == "call-in-text"]
                    assert "(1 sent as a call as well, counted once)" in note, (kind, order)

    asyncio.run(main())


DOUBTS = {
    "white space in a value": ('{"city": "New York"}', '{"city": "NewYork"}'),
    "an argument more, and white space": ('{"city": " Rome "}', '{"city": "Rome", "day": "today"}'),
    "a repair of a cut value": ('{"city": "Ro', '{"city": "Ro"}'),
    "a repair without the cut argument": ('{"city": "Rome", "day": "to', ROME),
    "a repair with a default": ('{"city": "Rome"', '{"city": "Rome", "unit": "celsius"}'),
    "a key twice": ('{"city": "Rome", "city": "Rome"}', ROME),
    "two that were cut": ('{"city": "Rome', '{"city": "Ro'),
}
"""Arguments in the text and of the server of which it is not known which ones the model wrote."""


def test_two_readings_of_which_none_is_known_to_be_right_run_neither() -> None:
    async def main() -> None:
        for (kind, (text, own)), order in product(DOUBTS.items(), ORDERS):
            case = Case({"content": left_in_text(text), "tool_calls": [served(own)]}, "", ())
            async with half_reading(case, order) as url:
                for model in (ts.model(f"{url}#{KNOWN}"), ts.model(f"{url}#{UNKNOWN}", dialect="hermes")):
                    reply = ts.collect([event async for event in model.stream(FORECAST)])
                    assert [one.whole for one in reply.calls] == [False] * len(reply.calls), (kind, order)
                    assert "two-readings" in [note.rule for note in reply.notes], (kind, order)

    asyncio.run(main())


def test_a_reading_of_two_calls_runs_none() -> None:
    """It is not known of which call the server lost an argument, or whether it made one of two."""
    text = left_in_text('{"city": "Rome", "day": "today"}') + left_in_text('{"city": "Rome", "unit": "kelvin"}')
    case = Case({"content": text, "tool_calls": [served(ROME)]}, "", ())

    async def main() -> None:
        for order in ORDERS:
            async with half_reading(case, order) as url:
                reply = ts.collect([event async for event in ts.model(f"{url}#{KNOWN}").stream(FORECAST)])
                assert {one.whole for one in reply.calls} == {False}

    asyncio.run(main())


def test_two_calls_of_one_tool_both_run_one_of_them_read_by_the_server() -> None:
    """A value differs, so the model wrote two calls: a note says that one stood in the text."""
    ran: list[str] = []

    def delete_note(number: int) -> str:
        """Deletes a note."""
        ran.append(str(number))
        return "deleted"

    text = '<tool_call>\n{"name": "delete_note", "arguments": {"number": 2}}\n</tool_call>'
    own = {"index": 0, "id": "a", "function": {"name": "delete_note", "arguments": '{"number": 1}'}}
    case = Case({"content": text, "tool_calls": [own]}, "", ())

    async def main() -> None:
        for order in ORDERS:
            ran.clear()
            async with half_reading(case, order) as url:
                limits = {"steps": 2}
                reply = await ts.arun("Clean up!", tools=[delete_note], model=ts.model(f"{url}#{KNOWN}"), limits=limits)
            assert sorted(ran) == ["1", "2"]
            assert "call-in-text" in [note.rule for note in reply.notes]

    asyncio.run(main())


def test_a_number_that_one_reading_has_as_a_text_makes_no_second_call() -> None:
    def wait(seconds: int, quietly: bool = False) -> str:
        """Waits."""
        return f"waited {seconds}"

    written = '<tool_call>\n{"name": "wait", "arguments": {"seconds": 5, "quietly": true}}\n</tool_call>'
    own = {"index": 0, "id": "a", "function": {"name": "wait", "arguments": '{"quietly": "true", "seconds": "5"}'}}
    case = Case({"content": written, "tool_calls": [own]}, "", ())

    async def main() -> None:
        for order in ORDERS:
            async with half_reading(case, order) as url:
                for model in (ts.model(f"{url}#{KNOWN}"), ts.model(f"{url}#{UNKNOWN}", dialect="hermes")):
                    reply = await ts.adecide("Wait!", tools=[wait], model=model)
                    assert [call.arguments for call in reply.calls] == [{"seconds": 5, "quietly": True}]

    asyncio.run(main())


SAME = {
    "a whole number with a fraction": ('{"a": 5}', '{"a": 5.0}'),
    "the same as a text": ('{"a": "5"}', '{"a": 5.0}'),
    "a list as a text": ('{"a": ["x", 1]}', '{"a": "[\\"x\\", 1]"}'),
    "an object with an object as a text": ('{"a": {"b": {"c": 1.0}}}', '{"a": {"b": "{\\"c\\": \\"1\\"}"}}'),
    "a null more": ('{"a": 1}', '{"a": 1, "b": null}'),
    "no arguments, and nulls": ("{}", '{"a": null}'),
    "a null as a text": ('{"a": null}', '{"a": "null"}'),
}
OTHERS = {
    "another number": ('{"a": 5}', '{"a": 5.5}'),
    "two texts": ('{"a": "5"}', '{"a": "5.0"}'),
    "a shorter list": ('{"a": [1, 2]}', '{"a": [1]}'),
    "another name": ('{"a": 1}', '{"b": 1}'),
    "another list as a text": ('{"a": ["x"]}', '{"a": "[\\"y\\"]"}'),
}


def test_two_spellings_of_the_same_arguments_are_one_call() -> None:
    for table, count in ((SAME, 1), (OTHERS, 2)):
        for kind, pair in table.items():
            for text, own in (pair, pair[::-1]):
                calls = DoubledCalls()
                events: list[Event] = []
                for arguments, in_text in ((text, True), (own, False)):
                    one = [CallStart("f", ""), ArgumentsDelta(arguments), CallEnd()]
                    events += calls.feed(one, in_text=in_text)
                assert [sum(isinstance(event, CallStart) for event in events), calls.settled()] == [count, []], kind


INVENTED = ("\n<tool_response>\nsunny\n</tool_response>\nIt is sunny.", "\n<|im_start|>user\nThanks.")


def test_a_better_reading_behind_an_invented_result_is_no_reason_to_lose_the_call() -> None:
    """The server's own call is left out behind that, so it cannot take the place of the one in the text."""
    full = '{"city": "Rome", "day": "today"}'

    async def main() -> None:
        for invented, order, (text, own) in product(INVENTED, ORDERS, ((ROME, full), (full, ROME))):
            case = Case({"content": left_in_text(text) + invented, "tool_calls": [served(own)]}, "", ())
            async with half_reading(case, order) as url:
                reply = ts.collect([event async for event in ts.model(f"{url}#{KNOWN}").stream(FORECAST)])
            if text == full or order == "calls first":
                assert [(one.whole, one.json) for one in reply.calls] == [(True, full)], (invented, order)
            else:
                assert [one.whole for one in reply.calls] == [False], (invented, order)
                assert "two-readings" in [note.rule for note in reply.notes]

    asyncio.run(main())


def test_a_call_of_an_earlier_turn_with_the_same_id_is_not_taken_back() -> None:
    def one(arguments: str) -> list[Event]:
        return [CallStart("forecast", "a"), ArgumentsDelta(arguments), CallEnd(), Noted(Note("x"))]

    reply = ts.collect([*one(ROME), Finished("tool_calls"), *one("{}"), Noted(Note("superseded-call", "a"))])
    assert [call.json for call in reply.calls] == [ROME]


def test_each_of_many_readings_is_parsed_and_written_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each is compared with all of the other kind: 32 with 32 took seconds for lists of 30,000 numbers."""
    written: list[object] = []

    def without_space(arguments: dict[str, object]) -> set[tuple[str, str]]:
        written.append(arguments)
        return {(name, str(value)) for name, value in arguments.items()}

    monkeypatch.setattr(call_readings, "_without_space", without_space)
    doubled = DoubledCalls()
    for number in range(8):
        for in_text, more in ((True, ""), (False, ', "more": 1')):
            arguments = f'{{"a": {number}{more}}}'
            doubled.feed([CallStart("f", f"{in_text}{number}"), ArgumentsDelta(arguments), CallEnd()], in_text=in_text)
    assert len(doubled.settled()) == 8
    assert len(written) == 16
