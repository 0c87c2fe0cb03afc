"""A result in words: everything of it, nothing beyond it, or the result as it is."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from functools import partial
from typing import Any

import pytest

import toolspeak as ts
from cost import LINEAR, growth
from toolspeak.plan.conclude import plainly, read
from toolspeak.plan.faithful import faults
from toolspeak.types import Usage


def conclude(question: str, result: Any, *said: str, language: str = "English") -> ts.Reply:
    return ts.conclude(question, result, language=language, model=ts.Scripted(said, repeat=True))


def rules(reply: ts.Reply) -> list[str]:
    return [note.rule for note in reply.notes]


def test_the_prompt_is_that_of_the_source_document_to_the_byte() -> None:
    model = ts.Scripted(["383加上135721等于136104。"])
    reply = ts.conclude("383加上135721等于多少?", "136104", language="Chinese", model=model)
    assert reply.text == "383加上135721等于136104。"
    assert model.requests[0].messages == [
        {
            "role": "user",
            "content": "\nPlease generate a natural language description based on the following question and answer.\n"
            "Question: [Content of the question]\n"
            "Answer: [Content of the answer]\n"
            "Generated Description: The result of [key phrase from the question] is [answer].\n"
            "If necessary, you can polish the description.\n"
            "Only output the Description, with Chinese language.\n"
            "\n\nThe question:383加上135721等于多少?\nThe answer:136104",
        }
    ]


def test_the_language_can_be_chosen() -> None:
    model = ts.Scripted(["Il fait 21 degrés."])
    ts.conclude("Quel temps ?", 21, language="French", model=model)
    assert "with French language" in str(model.requests[0].messages[0].get("content"))


WEATHER = "The weather of Xiamen is cloudy, and the temperature is 35°C."
GOOD: list[tuple[str, Any, str]] = [
    ("383 + 135721?", 136104, "383 plus 135721 is 136104."),
    ("383 + 135721?", 136104, "The sum is 136,104."),
    ("how warm?", 35.0, "It is 35 degrees."),
    ("how warm?", "35.50", "It is 35.5 degrees."),
    ("how warm?", 1.5, "Es sind 1,5 Grad."),
    ("how cold?", -5, "It is -5 degrees."),
    ("how cold?", -5, "It is −5 °C."),
    ("how cold?", -5, "It is minus 5 degrees."),
    ("weather?", WEATHER, "It is cloudy, the weather of Xiamen, and the temperature is 35°C."),
    ("weather?", WEATHER, "厦门天气情况是:多云,气温35°C。"),
    ("weather?", '{"city": "Xiamen", "now": {"sky": "cloudy", "t": 35.0}}', "In Xiamen it is Cloudy at 35 °C."),
    ("天气?", {"城市": "厦门", "天气": "多云"}, "厦门今天多云。"),
    ("who?", ["Ada", "Bob"], "They are ada and BOB."),
    ("when?", datetime.date(2026, 11, 21), "It is on 2026-11-21."),
    ("when?", "2026-11-21T10:00:00", "At 2026-11-21T10:00:00."),
    ("price?", Decimal("12.30"), "It costs 12.3 euros."),
    ("is it open?", True, "Yes, it is open."),
    ("is it open?", False, "It isn't open."),
    ("version?", "1.2.3", "The version is 1.2.3."),
    ("is there none?", "no", "No, there is none."),
    ("how many?", 0, "There are 0."),
    ("mail?", {"to": "a.b@c.org"}, "It goes to a.b@c.org."),
]
BAD: list[tuple[str, Any, str]] = [
    ("383 + 135721?", 136104, "The sum is 136105."),
    ("383 + 135721?", 136104, "The sum is 136104, about 137000."),
    ("383 + 135721?", 136104, "383 plus 135721 is a lot."),
    ("how warm?", 15, "Es sind 1,5 Grad."),
    ("how warm?", 1.5, "It is 15 degrees."),
    ("how cold?", -5, "It is 5 degrees."),
    ("how warm?", 5, "It is -5 degrees."),
    ("how warm?", 35, "It is 350 degrees."),
    ("weather?", WEATHER, "The weather of Xiamen is sunny, and the temperature is 35°C."),
    ("weather?", WEATHER, "厦门天气情况是:多云,气温36°C。"),
    ("weather?", "It is safe to swim here today", "It is not safe to swim here today."),
    ("weather?", "It is not safe to swim here today", "It is safe to swim here today."),
    ("weather?", "sun", "It is Sunday."),
    ("weather?", {"sky": "cloudy", "t": 35}, "It is 35 degrees."),
    ("who?", ["Ada", "Bob"], "It is Ada."),
    ("where?", "厦门", "It is in Xiamen."),
    ("order?", {"id": "AB-42"}, "订单是42。"),
    ("mail?", {"to": "a.b@c.org"}, "邮件已发送。"),
    ("is it open?", True, "It is a shop."),
    ("is it open?", False, "It is open."),
    ("version?", "1.2.3", "The version is 1.2."),
    ("is it good?", "good", "It is not good."),
]


@pytest.mark.parametrize(("question", "result", "said"), GOOD)
def test_words_that_carry_the_result(question: str, result: Any, said: str) -> None:
    assert faults(question, read(result), said) == []
    assert conclude(question, result, said).text == said


@pytest.mark.parametrize(("question", "result", "said"), BAD)
def test_words_that_do_not(question: str, result: Any, said: str) -> None:
    assert faults(question, read(result), said) != []
    reply = conclude(question, result, said)
    assert reply.text == plainly(result)
    assert rules(reply) == ["stated-plainly"]


def test_the_model_is_told_what_is_wrong_once() -> None:
    model = ts.Scripted(["The sum is 7.", "The sum is 5."])
    reply = ts.conclude("2 + 3?", 5, model=model)
    assert (reply.text, rules(reply)) == ("The sum is 5.", [])
    assert "5 is left out" in str(model.requests[1].messages[-1].get("content"))
    assert "7 is in neither" in str(model.requests[1].messages[-1].get("content"))


def test_what_it_cost_is_summed() -> None:
    said = [ts.TextDelta("7"), ts.Finished("stop", Usage(10, 1))]
    reply = ts.conclude("2 + 3?", 5, model=ts.Scripted([said], repeat=True))
    assert reply.usage == Usage(20, 2)


@pytest.mark.parametrize(
    ("result", "plain"),
    [
        (5, "The answer is 5."),
        ("42", "The answer is 42."),
        ("35.50", "The answer is 35.50."),
        (True, "The answer is yes."),
        ("false", "The answer is no."),
        ("Rome", "The answer is Rome."),
        (WEATHER, WEATHER),
        (None, "Done: there is no result."),
        ("null", "Done: there is no result."),
        ("", "The result is empty."),
        ([], "The result is empty."),
        ({}, "The result is empty."),
        ({"city": "Rome", "t": 21.5, "ok": True}, "city: Rome, t: 21.5, ok: true"),
        ('{"city": "厦门"}', "city: 厦门"),
        (["a", "b", 3], "a, b, 3"),
        ({"now": {"t": 5}, "rows": [1, 2]}, "now t: 5\nrows: 1\nrows: 2"),
        ([{"n": "a"}, {"n": "b"}], "1 n: a\n2 n: b"),
        ('{"error": {"type": "ValueError", "message": "no such city"}}', "That did not work: no such city"),
    ],
)
def test_the_plain_statement_is_readable(result: Any, plain: str) -> None:
    assert plainly(result) == plain
    assert conclude("?", result, "I have no idea: 99!").text == plain


@pytest.mark.parametrize("result", [5, "Rome", WEATHER, True, None, "", [], {"a": {"b": [1]}}])
def test_the_plain_statement_in_another_language_holds_no_english(result: Any) -> None:
    plain = plainly(result, "Chinese")
    assert "answer" not in plain
    assert plain


def test_the_plain_statement_carries_everything() -> None:
    result = {"a": [1, -2.5, "x y"], "b": {"c": "wörd", "d": 1_000_000}}
    assert faults("", result, plainly(result)) in ([], ["1 is in neither question nor answer"])


def test_nothing_is_asked_where_there_is_nothing_to_say_or_too_much() -> None:
    for result in (None, "", "x " * 5000, list(range(5000))):
        model = ts.Scripted([])
        assert rules(ts.conclude("?", result, model=model)) == ["stated-plainly"]
        assert model.requests == []


def test_a_long_list_costs_no_more_than_it_is_long() -> None:
    assert growth(lambda size: partial(plainly, list(range(size)))) <= LINEAR


@pytest.mark.parametrize("said", ["9" * 100_000, "1," * 100_000, "1e999999999", "-" * 50_000, "١٢٣", "½", "a@" * 9999])
def test_strange_words_are_judged_and_quickly(said: str) -> None:
    assert faults("?", {"n": 1, "s": "x"}, said)


def test_a_deep_result() -> None:
    value: Any = "leaf"
    for _ in range(50):
        value = [value]
    assert faults("", value, "a leaf") == []
    assert read(json.dumps(value)) == value


@pytest.mark.parametrize("degrees", [-10, -1, 0, 7, 35])
@pytest.mark.parametrize("said", ["厦门天气情况是:多云,气温{}°C。", "厦门多云，气温 {} 度"])
def test_a_number_is_heard_in_a_script_without_blanks(degrees: int, said: str) -> None:
    result = f"The weather of Xiamen is cloudy, and the temperature is {degrees}°C."
    assert faults("厦门天气如何？", result, said.format(degrees)) == []
    if degrees < 0:
        assert faults("厦门天气如何？", result, said.format(f"零下{-degrees}")) == []
    if degrees:
        assert faults("厦门天气如何？", result, said.format(-degrees)) != []


def test_what_follows_the_paragraph_that_says_it_all_is_dropped() -> None:
    said = "The weather in Xiamen is sunny.\n\nThe answer is: sunny in Xiamen.\n\nThe answer is: sunny"
    assert (
        ts.conclude("Weather?", "sunny in Xiamen", model=ts.Scripted([said])).text == "The weather in Xiamen is sunny."
    )
    said = "It is sunny.\n\nThat is in Xiamen."
    assert ts.conclude("Weather?", "sunny in Xiamen", model=ts.Scripted([said])).text == said
