"""Sampling settings: from a model's options and a verb's to the bytes that are sent, and what becomes of the rest."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.errors import Refused, UsageError

Serve = Callable[..., Any]

SETTINGS: dict[str, Any] = {
    "temperature": 0.5,
    "max_tokens": 7,
    "top_p": 0.9,
    "top_k": 40,
    "extra_body": {"min_p": 0.1},
}
SENT = {"temperature": 0.5, "max_tokens": 7, "top_p": 0.9, "top_k": 40, "min_p": 0.1}
ADDRESS = "http://127.0.0.1:9/v1#m"


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def body(model: Any, **options: Any) -> dict[str, Any]:
    return json.loads(ts.explain("Hi", model=model, **options).body)


def test_a_verb_passes_its_settings_on() -> None:
    assert body(ADDRESS, **SETTINGS).items() >= SENT.items()


def test_a_model_has_defaults_that_a_request_overrides() -> None:
    made = ts.model(ADDRESS, **SETTINGS)
    assert body(made).items() >= SENT.items()
    other = body(made, temperature=0, top_p=0.2, extra_body={"seed_offset": 1})
    assert other.items() >= (SENT | {"temperature": 0, "top_p": 0.2, "seed_offset": 1}).items()


@pytest.mark.parametrize("dialect", [None, "hermes"])
def test_defaults_hold_with_tools_in_the_prompt_too(dialect: str | None) -> None:
    made = ts.model(ADDRESS, dialect=dialect, **SETTINGS)
    assert body(made, tools=[add]).items() >= SENT.items()


def test_each_api_has_its_own_words() -> None:
    assert body("ollama:m", **SETTINGS)["options"].items() >= {"num_predict": 7, "top_k": 40, "min_p": 0.1}.items()
    without = {**SETTINGS, "extra_body": None}
    assert body("anthropic:m", **without).items() >= {"max_tokens": 7, "top_k": 40, "top_p": 0.9}.items()


def test_every_verb_takes_them() -> None:
    call = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
    replies = {"call": [call], "decide": [call], "run": [call, "3"], "generate": ["3"], "extract": ["3"]}
    asks: dict[str, Callable[[ts.Scripted], Any]] = {
        "call": lambda m: ts.call("?", tools=[add], model=ts.model(m, dialect="hermes"), **SETTINGS),
        "decide": lambda m: ts.decide("?", tools=[add], model=ts.model(m, dialect="hermes"), **SETTINGS),
        "run": lambda m: ts.run("?", tools=[add], model=m, **SETTINGS),
        "generate": lambda m: ts.generate(m, "?", **SETTINGS),
        "extract": lambda m: ts.extract("3", int, model=m, **SETTINGS),
    }
    for verb, ask in asks.items():
        told = [f"<tool_call>{text}</tool_call>" if text == call else text for text in replies[verb]]
        model = ts.Scripted(told, repeat=True)
        try:
            ask(model)
        except ts.GenerationError:
            assert verb == "extract"  # what it is asked with is looked at, not what it answers
        for request in model.requests:
            assert (request.temperature, request.max_tokens) == (0.5, 7), verb
            assert request.sampling == {"top_p": 0.9, "top_k": 40, "min_p": 0.1}, verb


@pytest.mark.parametrize(
    ("model", "setting", "words"),
    [
        (
            "ollama:m",
            {"extra_body": {"minp": 0.1}},
            r"ollama:m takes no minp\. Did you mean 'min_p'\? It takes .*top_k",
        ),
        ("local", {"extra_body": {"topp": 0.1}}, r"the local model takes no topp\. Did you mean 'top_p'"),
        ("anthropic:m", {"extra_body": {"min_p": 0.1}}, "min_p: the model's server has no such setting"),
    ],
)
def test_what_a_model_has_no_place_for_is_refused(model: str, setting: dict[str, Any], words: str) -> None:
    with pytest.raises((UsageError, Refused), match=words):
        ts.generate(model, "Hi", **setting)


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ({"temperature": "hot"}, "temperature: expected a number from 0 to 2, received 'hot'"),
        ({"temperature": float("nan")}, "temperature: expected a number from 0 to 2, received nan"),
        ({"temperature": True}, "temperature: expected a number"),
        ({"max_tokens": 0}, "max_tokens: expected a whole number from 1, received 0"),
        ({"top_p": 1.5}, "top_p: expected a number from 0 to 1, received 1.5"),
        ({"top_k": 2.5}, "top_k: expected a whole number from -1"),
        ({"extra_body": [1]}, "extra_body: expected a dict"),
        ({"extra_body": {"messages": []}}, "extra_body: messages cannot be set there"),
        ({"extra_body": {"temperature": 1, "stream": False}}, "extra_body: stream, temperature cannot be set there"),
    ],
)
def test_a_value_that_cannot_be_is_refused_at_both_doors(setting: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        ts.generate("scripted:x", "Hi", **setting)
    with pytest.raises(UsageError, match=words):
        ts.model(ADDRESS, **setting)


def test_settings_are_not_for_a_model_that_is_made() -> None:
    with pytest.raises(UsageError, match="sampling cannot be set on a model that is already made"):
        ts.model(ts.Scripted("x"), temperature=0.5)


def test_the_embedded_model_says_what_changes_nothing() -> None:
    """It takes the likeliest token unless a temperature is set."""
    pytest.importorskip("xllamacpp")

    def rules(**options: Any) -> list[str]:
        reply = ts.run("Hi", model=ts.model("local", max_tokens=1), **options)
        assert reply.usage.completion_tokens <= 1
        return [note.rule for note in reply.notes]

    assert rules(top_p=0.9) == ["not-sampled"]
    assert rules(top_p=0.9, temperature=0.8) == []
