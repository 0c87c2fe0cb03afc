"""Choosing by levels: into a group, into several, back up, and to a search where no branch fits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

import toolspeak as ts
from replies import calls, native
from toolspeak import drive
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.models.base import Capability, Model
from toolspeak.search.descent import levels
from toolspeak.search.group_tree import Group
from toolspeak.types import Note, Reply, Request, Tool
from toolspeak.wire.reading.collect import collect

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
NOW, LATER = Tool("weather_now", "The weather in a city now.", CITY), Tool("forecast", "The weather to come.", CITY)
SEND, READ = Tool("send_mail", "Send a mail."), Tool("read_mail", "Read the mails.")
MUL = Tool("multiply", "Multiply numbers.")
WEATHER = Group("weather", (NOW, LATER), "Weather anywhere")
MAIL = Group("mail", (SEND, READ))
ROOT = Group("", (WEATHER, MAIL, MUL))
PARIS = {"city": "Paris"}


def answered(model: Model, root: Group = ROOT, search: Model | None = None, **given: Any) -> Reply:
    request = Request([{"role": "user", "content": "Weather in Paris?"}], (NOW, LATER, SEND, READ, MUL), **given)

    async def played() -> list[Event]:
        plan = levels(request, root, can=model.capabilities)
        events = drive.play(plan, model, others={"search": search or native()})
        return [event async for event in events if not isinstance(event, drive.Done)]

    heard = asyncio.run(played())
    assert isinstance(heard[-1], Finished)
    assert sum(isinstance(event, Finished) for event in heard) == 1
    return collect(heard)


def shown(model: ts.Scripted, turn: int) -> list[str]:
    return [tool.name for tool in model.requests[turn].tools or ()]


def test_a_group_is_opened_and_its_tool_called() -> None:
    model = native(calls(("weather_tools", {})), calls(("weather_now", PARIS)))
    reply = answered(model)
    assert [(call.name, call.arguments) for call in reply.calls] == [("weather_now", PARIS)]
    assert shown(model, 0) == ["weather_tools", "mail_tools", "multiply", "none_of_these"]
    assert shown(model, 1) == ["weather_now", "forecast", "none_of_these"]
    assert reply.notes == (Note("group-opened", "weather: 2 tools"),)
    assert reply.finish == "tool_calls"


def test_a_group_is_told_by_what_is_in_it() -> None:
    model = native("Hello.")
    answered(model)
    weather, mail, *_ = model.requests[0].tools or ()
    assert weather.description == "Weather anywhere. Opens 2 tools: weather_now, forecast"
    assert mail.description == "Opens 2 tools: send_mail, read_mail"
    assert not weather.parameters.get("properties")


def test_small_talk_costs_one_question() -> None:
    model = native([TextDelta("Hello"), TextDelta("!"), Finished("stop")])
    reply = answered(model)
    assert (reply.text, reply.calls, reply.notes) == ("Hello!", (), ())
    assert len(model.requests) == 1


def test_back_up_and_into_another_group() -> None:
    model = native(calls(("mail_tools", {})), calls(("none_of_these", {})), calls(("weather_tools", {})),
                   calls(("forecast", PARIS)))  # fmt: skip
    reply = answered(model)
    assert [call.name for call in reply.calls] == ["forecast"]
    assert shown(model, 2) == ["weather_tools", "multiply", "none_of_these"]  # what did not fit is not offered again
    assert [note.rule for note in reply.notes] == ["group-opened", "group-left", "group-opened"]


@pytest.mark.parametrize(
    "replies",
    [
        [calls(("none_of_these", {}))],
        [calls(("mail_tools", {})), calls(("none_of_these", {})), calls(("none_of_these", {}))],
    ],
)
def test_where_no_group_fits_all_tools_are_searched(replies: list[list[Event]]) -> None:
    model, search = native(*replies), native(calls(("forecast", PARIS)))
    reply = answered(model, search=search)
    assert [call.name for call in reply.calls] == ["forecast"]
    assert len(search.requests[0].tools or ()) == 5
    assert reply.notes[-1].rule == "groups-left"


def test_a_model_that_goes_round_in_circles_ends_in_a_search() -> None:
    groups = tuple(Group(f"part{i}", (MAIL, WEATHER)) for i in range(9))
    replies = [one for i in range(9) for one in (calls((f"part{i}_tools", {})), calls(("none_of_these", {})))]
    model, search = native(*replies), native("I cannot.")
    assert answered(model, Group("", groups), search).text == "I cannot."
    assert len(model.requests) == 6


def test_several_groups_are_opened_at_once() -> None:
    model = native(calls(("weather_tools", {}), ("mail_tools", {})), calls(("forecast", PARIS)))
    answered(model)
    assert shown(model, 1) == ["weather_now", "forecast", "mail_tools", "none_of_these"]


def test_of_several_groups_the_one_that_was_left_is_not_offered_again() -> None:
    model = native(calls(("weather_tools", {}), ("mail_tools", {})), calls(("none_of_these", {})),
                   calls(("mail_tools", {})), calls(("send_mail", {})))  # fmt: skip
    answered(model)
    assert shown(model, 2) == ["mail_tools", "multiply", "none_of_these"]


def test_a_tool_that_a_group_only_named_is_shown_before_it_is_called() -> None:
    model = native(calls(("forecast", {"place": "Paris"})), calls(("forecast", PARIS)))
    reply = answered(model)
    assert [call.arguments for call in reply.calls] == [PARIS]
    assert shown(model, 1) == ["weather_now", "forecast", "none_of_these"]


def test_a_name_that_is_not_in_the_list_is_answered_with_those_that_are() -> None:
    model = native(calls(("mails", {"to": "Ann"})), calls(("mail_tools", {})), calls(("send_mail", {})))
    reply = answered(model)
    assert [call.name for call in reply.calls] == ["send_mail"]
    assert shown(model, 1) == shown(model, 0)
    question, call, result = model.requests[1].messages
    assert (question["role"], call["tool_calls"][0]["function"]["name"]) == ("user", "mails")
    assert "Did you mean 'mail_tools'" in result["content"]
    assert "The tools are: weather_tools, mail_tools, multiply, none_of_these." in result["content"]
    assert len(model.requests[2].messages) == 1  # the next list is asked about without the mistake


def test_a_second_unknown_name_ends_in_a_search() -> None:
    model, search = native(calls(("mails", {})), calls(("posts", {}))), native(calls(("forecast", PARIS)))
    reply = answered(model, search=search)
    assert [call.name for call in reply.calls] == ["forecast"]
    assert len(model.requests) == 2
    assert search.requests[0].messages == model.requests[0].messages


def test_an_unknown_name_beside_a_call_is_passed_on() -> None:
    reply = answered(native(calls(("mails", {"to": "Ann"}), ("multiply", {}))))
    assert [(call.name, call.arguments) for call in reply.calls] == [("multiply", {}), ("mails", {"to": "Ann"})]


def test_a_tool_beside_the_groups_is_called_at_once() -> None:
    reply = answered(model := native(calls(("multiply", {}))))
    assert [call.name for call in reply.calls] == ["multiply"]
    assert len(model.requests) == 1


def test_a_groups_name_never_hides_a_tool() -> None:
    tool = Tool("mail_tools", "Tools to mend mail boxes.")
    model = native("Hello.")
    answered(model, Group("", (MAIL, tool)))
    assert shown(model, 0) == ["mail_tools_2", "mail_tools", "none_of_these"]


def test_a_name_that_no_server_takes_is_told_in_the_description() -> None:
    model = native("Hello.")
    answered(model, Group("", (Group("天气", (NOW, LATER)), MAIL)))
    tool, *_ = model.requests[0].tools or ()
    assert (tool.name, tool.description) == ("more_tools", "天气. Opens 2 tools: weather_now, forecast")


def test_what_was_spent_is_told_in_all() -> None:
    used = ts.Usage(prompt_tokens=10, completion_tokens=2)
    opening = [*calls(("weather_tools", {}))[:-1], Finished("tool_calls", used)]
    call = [*calls(("weather_now", PARIS))[:-1], Finished("tool_calls", used)]
    assert answered(native(opening, call)).usage.prompt_tokens == 20


class Channel:
    """Finds a request as likely as it is told for the tool that stands before it."""

    name = "channel"

    def __init__(self, **likely: float) -> None:
        self.capabilities: frozenset[Capability] = frozenset({"score", "scored", "tools"})
        self.likely = likely
        self.weighed: list[str] = []
        self.offered: list[list[str]] = []

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        self.offered.append([tool.name for tool in request.tools or ()])
        yield Finished()

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        name = prompt.rpartition("def ")[2].partition("(")[0]
        self.weighed.append(name)
        return [self.likely.get(name, -50.0) for _ in continuations]


def test_likelihoods_choose_the_group_then_the_tool() -> None:
    model = Channel(weather_tools=-5.0, forecast=-4.0)
    reply = answered(model)
    assert model.offered == [["forecast"]]
    assert "send_mail" not in model.weighed
    assert [note.detail for note in reply.notes] == ["weather: 2 tools"]


def test_likelihoods_go_back_up_where_a_branch_fits_badly() -> None:
    model = Channel(mail_tools=-3.0, weather_tools=-25.0, forecast=-4.0)
    reply = answered(model)
    assert model.offered == [["forecast"]]
    assert [note.detail for note in reply.notes] == ["mail: 2 tools", "weather: 2 tools"]


def test_likelihoods_that_fit_nothing_end_in_a_search() -> None:
    model, search = Channel(reply=-5.0), native("No tool does that.")
    assert answered(model, search=search).text == "No tool does that."
    assert model.offered == []
