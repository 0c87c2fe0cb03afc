"""The index of tools: what it finds, that the order of adding and removing makes no difference, what it says of wrong use."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from typing import Any, Literal

import pytest

import toolspeak as ts


def get_weather(city: str) -> str:
    """Current weather in a city."""
    return f"Sunny in {city}"


def send_mail(to: str, text: str) -> str:
    """Write to somebody by e-mail."""
    return f"{to}: {text}"


PLAIN: dict[str, Any] = {"name": "findFlights", "description": "Search for flights between two airports."}


def named(found: list[tuple[Any, float]]) -> list[str]:
    return [tool.name for tool, _ in found]


WORDS = [f"w{letter}{other}x" for letter in "abcdefghij" for other in "abcdefghij"]


def made(count: int, seed: int = 0) -> list[ts.Tool[..., Any]]:
    """Tools whose words are drawn by chance, common ones often."""
    chance = random.Random(seed)

    def some(n: int) -> str:
        return " ".join(WORDS[min(99, int(chance.expovariate(0.08)))] for _ in range(n))

    return [ts.Tool(f"tool{number}_{some(1)}", some(chance.randint(1, 20))) for number in range(count)]


def answers(index: ts.ToolIndex) -> list[list[tuple[str, float]]]:
    asked = [f"{a} {b} {c}" for a, b, c in zip(WORDS, WORDS[7:], WORDS[31:], strict=False)]
    return [[(tool.name, score) for tool, score in index.search(question, 7)] for question in asked]


def test_the_tool_that_fits_comes_first() -> None:
    index = ts.ToolIndex([get_weather, send_mail, PLAIN])
    assert named(index.search("What's the weather like in Xiamen?")) == ["get_weather"]
    assert named(index.search("find a flight", 1)) == ["findFlights"]
    tool, score = index.search("current weather")[0]
    assert tool.function is get_weather
    assert 0.5 < score < 1


def test_parameters_and_enums_are_searched() -> None:
    schema = {
        "type": "object",
        "properties": {"unit": {"enum": ["celsius", "kelvin"]}, "where": {"$ref": "#/$defs/Place"}},
        "$defs": {"Place": {"type": "object", "properties": {"latitude": {"description": "degrees north"}}}},
    }
    index = ts.ToolIndex([get_weather, ts.Tool("f", "", schema)])
    for question in ("kelvin", "latitudes", "north", "units"):
        assert named(index.search(question)) == ["f"]


def test_a_value_that_is_the_only_one_is_searched() -> None:
    def file_paper(kind: Literal["invoice"]) -> str:
        """File a paper."""
        return kind

    kinds = {"oneOf": [{"const": "receipt"}, {"const": "contract"}]}
    index = ts.ToolIndex([file_paper, ts.Tool("file_other", "", {"type": "object", "properties": {"kind": kinds}})])
    assert named(index.search("invoice")) == ["file_paper"]
    assert named(index.search("contract")) == ["file_other"]


def test_examples_are_searched() -> None:
    index = ts.ToolIndex([get_weather, send_mail], examples={"get_weather": ["Do I need an umbrella?"]})
    assert named(index.search("umbrellas")) == ["get_weather"]
    index.add(PLAIN, examples={"findFlights": ["How do I reach Oslo?"]})
    assert named(index.search("to Oslo")) == ["findFlights"]


def test_equals_come_in_the_order_of_adding() -> None:
    tools = [ts.Tool(f"t{letter}", "Same words here.") for letter in "qwertyuiop"]
    index = ts.ToolIndex(tools)
    assert named(index.search("same words", 4)) == ["tq", "tw", "te", "tr"]
    index.remove("tw")
    index.add(tools[1])
    assert named(index.search("same words")) == ["tq", "te", "tr", "tt", "ty", "tu", "ti", "to", "tp", "tw"]


def test_a_tool_weighs_the_same_however_it_came_in() -> None:
    tools, others = made(700), made(300, 1)
    others = [ts.Tool(f"other_{one.name}", one.description) for one in others]
    once = ts.ToolIndex(tools)
    grown = ts.ToolIndex(others)
    for one in tools:
        grown.add(one)
    grown.remove(*[one.name for one in others])
    assert [one.name for one in grown] == [one.name for one in once]
    assert answers(grown) == answers(once)
    mixed = ts.ToolIndex(tools[:650])
    mixed.add(*tools[650:])  # still in the overlay
    assert answers(mixed) == answers(once)


def test_the_first_of_many_are_those_of_all() -> None:
    index = ts.ToolIndex(made(300))
    for question in ("wabx", "wabx waax wbcx", "nothing"):
        every = index.search(question, 300)
        assert [index.search(question, k) for k in (1, 7, 299)] == [every[:k] for k in (1, 7, 299)]


def test_a_long_text_hides_no_question_before_or_behind_it() -> None:
    index = ts.ToolIndex([get_weather, *made(300)])
    long = " ".join(f"{word}{number}" for number in range(3) for word in WORDS)
    for question in (f"What is the weather? {long}", f"{long} What is the weather?"):
        assert "get_weather" in named(index.search(question, 300))


def test_what_was_removed_is_not_found() -> None:
    tools = made(500)
    index = ts.ToolIndex(tools)
    gone = {one.name for one in tools[::2]}
    index.remove(*gone)
    assert len(index) == 250
    assert not gone & {name for rows in answers(index) for name, _ in rows}
    assert answers(index) == answers(ts.ToolIndex(tools[1::2]))
    index.remove(*[one.name for one in index])
    assert answers(index) == [[] for _ in answers(index)]


def test_an_empty_index_finds_nothing() -> None:
    index = ts.ToolIndex()
    assert index.search("anything") == []
    assert len(index) == 0
    assert index
    index.add(get_weather)
    assert index.search("") == []
    assert "get_weather" in index
    assert index["get_weather"].function is get_weather
    assert named([(one, 0.0) for one in index]) == ["get_weather"]


def test_adding_is_whole_or_nothing() -> None:
    index = ts.ToolIndex([get_weather])
    with pytest.raises(ts.DuplicateTool, match="get_weather"):
        index.add(send_mail, get_weather)
    with pytest.raises(ts.DuplicateTool, match="send_mail"):
        index.add(send_mail, send_mail)
    with pytest.raises(ts.UsageError, match=r"examples for .send_mial.*'send_mail'"):
        index.add(send_mail, examples={"send_mial": ["hello"]})
    with pytest.raises(ts.UsageError, match="a list of questions"):
        index.add(send_mail, examples={"send_mail": "hello"})
    assert len(index) == 1
    assert index.search("mail") == []


def test_removing_what_is_not_there_names_the_near_ones() -> None:
    index = ts.ToolIndex([get_weather, send_mail])
    with pytest.raises(ts.UnknownTool, match="Did you mean 'get_weather'") as caught:
        index.remove("send_mail", "getWeather")
    assert caught.value.near == ("get_weather",)
    assert len(index) == 2


@pytest.mark.parametrize("wrong", [["get_weather"], 5, ts.Tool("get_weather")])
def test_what_is_removed_is_a_name(wrong: Any) -> None:
    index = ts.ToolIndex([get_weather])
    with pytest.raises(ts.UsageError, match="expected names of tools"):
        index.remove(wrong)
    assert len(index) == 1


@pytest.mark.parametrize("wrong", [["a question"], {"get_weather": 5}, {"get_weather": None}, {"get_weather": [5]}])
def test_examples_are_lists_of_questions(wrong: Any) -> None:
    with pytest.raises(ts.UsageError, match="questions"):
        ts.ToolIndex([get_weather], examples=wrong)


def test_examples_may_come_one_by_one() -> None:
    asked: Any = {"get_weather": (one for one in ["Do I need an umbrella?"])}
    assert named(ts.ToolIndex([get_weather], examples=asked).search("umbrella")) == ["get_weather"]


def test_a_tool_of_the_index_is_in_it() -> None:
    index = ts.ToolIndex([get_weather])
    assert index["get_weather"] in index
    assert ts.Tool("other") not in index


def test_words_of_tools_that_are_gone_are_forgotten() -> None:
    index = ts.ToolIndex(made(100))
    before = answers(index)
    for number in range(1_000):
        index.add(ts.Tool(f"only{number}here"))
        index.remove(f"only{number}here")
    assert answers(index) == before
    assert len(index._postings.ids) < 2_000  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("k", [0, -1, 2.0, True, "3", None])
def test_k_is_a_whole_number_from_1(k: Any) -> None:
    with pytest.raises(ts.UsageError, match="k, how many"):
        ts.ToolIndex([get_weather]).search("weather", k)


@pytest.mark.parametrize("question", [None, 3, b"weather", ["weather"]])
def test_a_question_is_a_text(question: Any) -> None:
    with pytest.raises(ts.UsageError, match="a question is a text"):
        ts.ToolIndex([get_weather]).search(question)


def test_a_missing_library_is_one_clear_line() -> None:
    code = "import sys; sys.modules['Stemmer'] = None; import toolspeak as ts; ts.ToolIndex([])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install 'toolspeak[search]'" in done.stderr.splitlines()[-1]


def test_threads_may_share_an_index() -> None:
    tools = made(400)
    index = ts.ToolIndex(tools[:100])
    wrong: list[BaseException] = []

    def change(part: list[ts.Tool[..., Any]]) -> None:
        try:
            for one in part:
                index.add(one)
                index.search(one.description)
                index.remove(one.name)
        except BaseException as error:  # noqa: BLE001
            wrong.append(error)

    threads = [threading.Thread(target=change, args=(tools[at : at + 100],)) for at in (100, 200, 300)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    assert answers(index) == answers(ts.ToolIndex(tools[:100]))


def test_hostile_tools_cost_little_and_hide_nothing() -> None:
    deep: dict[str, Any] = {"description": "gold " * 200_000}
    for depth in range(40):
        deep = {"type": "object", "properties": {f"below{depth}": deep, "treasure": {}}}
    long = ts.Tool("long", "umbrella " + "A1b2" * 250_000)
    index = ts.ToolIndex([get_weather, long])
    index.add(ts.Tool("loop", "", deep))
    assert named(index.search("umbrella")) == ["long"]
    assert named(index.search("treasure")) == ["loop"]
    index.add(ts.Tool("hidden", "dele\u200bte every\u202e fi\x00le"))
    assert named(index.search("deletes")) == ["hidden"]
    assert named(index.search("fi\u2060les")) == ["hidden"]
    loop: dict[str, Any] = {"type": "object"}
    loop["properties"] = {"again": loop}
    with pytest.raises(ts.InvalidTool, match="Recursion"):
        index.add(ts.Tool("round", "", loop))
    assert index.search("weather " * 300_000)[0][0].name == "get_weather"
