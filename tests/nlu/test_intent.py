"""Which tool a request wants: the one that makes it likeliest; words where that is no tool."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from toolspeak import drive
from toolspeak.events import Event, Finished
from toolspeak.models.base import Capability
from toolspeak.nlu.intent import SHORT_LIST, Choice, choose
from toolspeak.types import Note, Request, Tool

WEATHER = Tool("weather", "Weather in a city.")
TIMER = Tool("timer", "Start a timer.")


class Channel:
    """Finds a request as likely as the tool shown last before it tells."""

    name = "channel"
    capabilities: frozenset[Capability] = frozenset({"score"})

    def __init__(self, **likely: float):
        self.likely = likely
        self.shown: list[str] = []

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        yield Finished()

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        shown = prompt.rpartition("def ")[2].partition("(")[0]
        self.shown.append(shown)
        return [self.likely.get(shown, -50.0) for _ in continuations]


def chosen(
    tools: list[Tool[..., Any]], model: Channel, text: str = "Is it raining?", *, may_reply: bool
) -> Tool[..., Any] | None:
    choice = asyncio.run(drive.arun(choose(tools, text, may_reply=may_reply), model))
    return choice.tool if choice and choice.surplus > 0 else None


@pytest.mark.parametrize(
    ("likely", "best"),
    [
        ({"weather": -5.0, "timer": -9.0, "reply": -12.0}, WEATHER),
        ({"weather": -9.0, "timer": -5.0, "reply": -12.0}, TIMER),
        ({"weather": -9.0, "timer": -9.5, "reply": -5.0}, None),
    ],
)
def test_the_likeliest_channel_wins(likely: dict[str, float], best: Tool[..., Any] | None) -> None:
    assert chosen([WEATHER, TIMER], Channel(**likely), may_reply=True) is best


@pytest.mark.parametrize("rival", ["reply", "look_up"])
def test_no_tool_wins_a_close_call(rival: str) -> None:
    model = Channel(weather=-5.0, **{rival: -5.5})
    assert chosen([WEATHER], model, may_reply=True) is None


def test_a_longer_request_must_speak_louder_for_a_tool() -> None:
    model = Channel(weather=-5.0, reply=-12.0)
    assert chosen([WEATHER], model, "Rain?", may_reply=True) is WEATHER
    assert chosen([WEATHER], model, "Rain, hail, snow, storms, floods?", may_reply=True) is None


def test_the_words_of_a_tool_speak_for_it() -> None:
    model = Channel(weather=-5.0, reply=-9.0)
    assert chosen([WEATHER], model, "Weather beside Berlin?", may_reply=True) is WEATHER
    assert chosen([WEATHER], model, "Opera beside Berlin?", may_reply=True) is None


ADD = Tool(
    "add",
    "Plus.",
    {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}, "required": ["a", "b"]},
)


@pytest.mark.parametrize(("text", "best"), [("4 + 6 = ?", ADD), ("4 of what?", None), ("Plus what?", None)])
def test_a_tool_that_needs_two_numbers_is_called_where_there_are_two(text: str, best: Tool[..., Any] | None) -> None:
    assert chosen([ADD], Channel(add=-5.0, reply=-7.0), text, may_reply=True) is best


@pytest.mark.parametrize(
    ("surplus", "copied", "stands"), [(-3, False, True), (-5, False, False), (1, True, False), (3, True, True)]
)
def test_a_tool_stands_by_how_well_its_arguments_were_filled(surplus: float, copied: bool, stands: bool) -> None:
    notes = [Note("copied", "x")] if copied else []
    assert Choice(WEATHER, surplus).stands(notes) is stands


def test_a_text_is_not_cut_out_of_a_request_without_blanks() -> None:
    find = Tool("find", "Find it.", {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]})
    model = Channel(find=-1.0, reply=-90.0, look_up=-90.0)
    assert chosen([find], model, "很高兴认识你", may_reply=True) is None
    assert chosen([find], model, "Very nice", may_reply=True) is find


def test_of_many_tools_those_that_share_words_with_the_request_are_weighed() -> None:
    others = [Tool(f"other_{name}", f"Do {name}.") for name in ("paint", "cook", "sing", "dance")]
    model = Channel(weather=-5.0, other_paint=-1.0, reply=-90.0)
    chosen([*others, WEATHER], model, "The weather for a dance?", may_reply=False)
    assert "weather" in model.shown
    assert "other_dance" in model.shown
    assert len(model.shown) == SHORT_LIST


@pytest.mark.parametrize(
    ("ranked", "weighed"),
    [
        (["plain", "weather"], {"plain", "weather", "other_dance"}),
        (["plain", "unknown", "weather", "timer", "other_dance"], {"plain", "weather", "timer"}),
    ],
)
def test_tools_that_are_ranked_are_weighed_before_those_that_share_words(ranked: list[str], weighed: set[str]) -> None:
    tools: list[Tool[..., Any]] = [Tool("nothing"), Tool("other_dance"), WEATHER, TIMER, Tool("plain")]
    model = Channel()
    scores = dict.fromkeys(ranked, 0.5)
    asyncio.run(drive.arun(choose(tools, "The weather for a dance?", may_reply=False, ranked=scores), model))
    assert set(model.shown) == weighed


@pytest.mark.parametrize(("other", "chosen"), [(1.0, "plain"), (0.5, "timer")])
def test_the_better_found_is_chosen_where_two_are_as_likely(other: float, chosen: str) -> None:
    tools: list[Tool[..., Any]] = [Tool("plain"), Tool("timer")]
    model = Channel(plain=-9.0, timer=-7.0)
    choice = asyncio.run(
        drive.arun(choose(tools, "Do it", may_reply=False, ranked={"plain": other, "timer": 0.6}), model)
    )
    assert choice
    assert choice.tool.name == chosen


def test_a_tool_is_chosen_where_one_must_be() -> None:
    model = Channel(weather=-9.0, timer=-8.0, reply=0.0)
    assert chosen([WEATHER, TIMER], model, may_reply=False) is TIMER


def test_the_only_tool_that_must_be_called_is_not_scored() -> None:
    assert chosen([WEATHER], Channel(), may_reply=False) is WEATHER


@pytest.mark.parametrize(
    ("text", "best"),
    [("Stop the timer of the oven", "oven.stop_timer"), ("Stop the music of the oven", "oven.start_timer")],
)
def test_among_tools_about_as_likely_words_in_common_decide(text: str, best: str) -> None:
    tools: list[Tool[..., Any]] = [Tool("oven.start_timer", "Begin."), Tool("oven.stop_timer", "End.")]
    model = Channel(**{"oven.start_timer": -5.0, "oven.stop_timer": -6.5 if "timer" in text else -9.5})
    tool = chosen(tools, model, text, may_reply=False)
    assert tool is not None
    assert tool.name == best


def test_a_tool_for_more_numbers_than_there_are_gives_way_to_one_for_fewer() -> None:
    count = Tool("count", "Plus.", {"type": "object", "properties": {"a": {"type": "number"}}, "required": ["a"]})
    model = Channel(add=-5.0, count=-8.0)
    assert chosen([ADD, count], model, "Up by 4", may_reply=False) is count
    assert chosen([ADD, count], model, "Up by 4 and 6", may_reply=False) is ADD


@pytest.mark.parametrize(("text", "best"), [("Which birds sing?", None), ("When do birds sing?", WEATHER)])
def test_what_may_ask_for_a_fact_must_speak_louder_for_a_tool(text: str, best: Tool[..., Any] | None) -> None:
    assert chosen([WEATHER], Channel(weather=-5.0, reply=-13.5), text, may_reply=True) is best


def test_a_number_asked_for_is_no_fact_to_look_up() -> None:
    model = Channel(add=-5.0, reply=-6.0)
    assert chosen([ADD], model, "What is 4 and 6?", may_reply=True) is ADD


def test_an_option_that_a_request_names_speaks_for_its_tool() -> None:
    size = {"type": "object", "properties": {"size": {"enum": ["small", "large"]}}}
    brew = Tool("brew", "Coffee.", size)
    model = Channel(brew=-5.0, reply=-8.0)
    assert chosen([brew], model, "Make mine large", may_reply=True) is brew
    assert chosen([Tool("brew", "Coffee, small or large.")], model, "Make mine large", may_reply=True) is None


def test_the_group_in_front_of_a_name_speaks_for_none_of_its_tools() -> None:
    model = Channel(**{"garden.dig": -5.0, "dig": -5.0, "reply": -10.0})
    text = "Dig beside those old trees"
    assert chosen([Tool("garden.dig", "Spade.")], model, text, may_reply=True) is not None
    assert (
        chosen([Tool("garden.hoe", "Spade.")], Channel(**{"garden.hoe": -5.0, "reply": -10.0}), text, may_reply=True)
        is None
    )


def test_however_likely_a_long_request_is_its_words_must_fit() -> None:
    text = "Paint four old doors and eleven windows blue before winter comes again"
    assert chosen([WEATHER], Channel(weather=-5.0, reply=-17.0), text, may_reply=True) is None
    assert chosen([WEATHER], Channel(weather=-5.0, reply=-90.0), text, may_reply=True) is WEATHER
    assert (
        chosen([ADD], Channel(add=-5.0, reply=-90.0), "Paint old doors blue before winter comes", may_reply=True)
        is None
    )


@pytest.mark.parametrize(
    ("text", "best"),
    [
        ("Could you show me the tents?", "camp.find_tent"),
        ("Please remove my tent", "camp.drop_tent"),
        ("Is there a tent to be removed?", "camp.find_tent"),
        ("A tent, if you will", "camp.drop_tent"),
    ],
)
def test_a_tool_that_does_another_thing_than_is_asked_gives_way(text: str, best: str) -> None:
    tools: list[Tool[..., Any]] = [Tool("camp.find_tent", ""), Tool("camp.drop_tent", "")]
    likely = {"camp.find_tent": -5.0, "camp.drop_tent": -9.0} if "remove my" in text else {"camp.find_tent": -9.0}
    tool = chosen(tools, Channel(**{"camp.drop_tent": -5.0, **likely}), text, may_reply=False)
    assert tool is not None
    assert tool.name == best


def test_no_model_is_asked_where_it_could_not_change_the_answer() -> None:
    tool = Tool("weather", "The weather of a place on any day, with wind and clouds.")
    model = Channel(weather=0.0)
    assert chosen([tool], model, "Who is the author of the book on courts and trials?", may_reply=True) is None
    assert model.shown == []
    assert chosen([tool], model, "What is the weather in the city?", may_reply=True) is tool


def test_what_a_terse_tool_lacks_says_little() -> None:
    """A tool for the weather that says no more of itself may well know the temperature."""
    question, model = "Could you find out the temperature for my garden?", Channel(weather=-40.0)
    assert chosen([Tool("weather", "The weather.")], model, question, may_reply=True)
    telling = Tool("weather", "The weather of a place on any day, with wind and clouds.")
    assert not chosen([telling], model, question, may_reply=True)
