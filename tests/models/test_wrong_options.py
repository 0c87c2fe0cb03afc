"""What cannot be an option, a setting or a text is told at the door, with what was meant."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from inspect import signature
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.verbs import Options

SERVER = "http://127.0.0.1:9/v1#m"
CALL: dict[str, Any] = {"id": "c", "function": {"name": "weather", "arguments": "{}"}}
PENDING: dict[str, Any] = {
    "id": "c", "tool": "weather", "arguments": {}, "why": "", "origin": "", "digest": "", "definition": "", "expires": 0
}  # fmt: skip
WAITING: dict[str, Any] = {"messages": [{"role": "assistant", "tool_calls": [CALL]}], "pending": [PENDING]}


def weather(city: str) -> str:
    """The weather."""
    return city


WRONG: dict[str, tuple[Callable[[], Any], str]] = {
    "a model's option": (lambda: ts.model(SERVER, dialekt="hermes"), "dialekt: unknown option.*Did you mean 'dialect'"),
    "a server's option": (
        lambda: ts.model(SERVER, timout=3),
        "timout: unknown option of this model. Did you mean 'timeout'",
    ),
    "a provider's option": (lambda: ts.model("ollama:m", retry=3), "retry: unknown option.*Did you mean 'retries'"),
    "another model's option": (lambda: ts.model("local", timeout=3), "timeout: unknown option of this model"),
    "a script's option": (lambda: ts.model("scripted:x", chunks=3), "Did you mean 'chunk'"),
    "a verb's option": (
        lambda: ts.run("Hi", temprature=1),
        "temprature: unknown option of this function. Did you mean 'temperature'",
    ),  # type: ignore[call-arg]
    "a limit": (lambda: ts.run("Hi", limits={"stps": 3}), "stps: unknown option of limits. Did you mean 'steps'"),
    "limits": (lambda: ts.run("Hi", limits=3), "limits: expected steps, seconds, tokens or calls, received 3"),  # type: ignore[arg-type]
    "seed": (lambda: ts.run("Hi", model=SERVER, seed="7"), "seed: expected a whole number, received '7'"),  # type: ignore[arg-type]
    "seed, a truth value": (lambda: ts.run("Hi", model=SERVER, seed=True), "seed: expected a whole number"),
    "seed, too large": (lambda: ts.run("Hi", model=SERVER, seed=2**70), "seed: expected a whole number"),
    "context": (lambda: ts.model(SERVER, context=0), "context: expected a number of tokens above 0, received 0"),
    "context, a text": (lambda: ts.model(SERVER, context="8k"), "context: expected a number of tokens"),
    "context, misspelt": (lambda: ts.model(SERVER, contxt=8), "contxt: unknown option.*Did you mean 'context'"),
    "context, in process": (lambda: ts.model("local", context=-1), "context: expected a number of tokens above 0"),
    "timeout": (lambda: ts.model(SERVER, timeout=-1), "timeout: expected a number of seconds above 0, received -1"),
    "timeout, a text": (lambda: ts.model(SERVER, timeout="3"), "timeout: expected a number of seconds"),
    "timeout, endless": (lambda: ts.Http(SERVER, timeout=float("inf")), "timeout: expected a number of seconds"),
    "retries": (lambda: ts.model(SERVER, retries=-1), "retries: expected a whole number from 0"),
    "look": (lambda: ts.model(SERVER, look="no"), "look: expected True or False, received 'no'"),  # type: ignore[arg-type]
    "a dialect's file": (lambda: ts.model(SERVER, dialect="acorn.py"), "a file is read by --dialect.*give the Dialect"),
    "tries, a text": (lambda: ts.decide("Hi", tries="3"), "tries: expected a whole number from 1, received '3'"),  # type: ignore[arg-type]
    "tries": (lambda: ts.extract("Hi", int, tries=0), "tries: expected a whole number from 1, received 0"),
    "tries, a half": (lambda: ts.call("Hi", tools=[weather], tries=1.5), "tries: expected a whole number"),  # type: ignore[arg-type]
    "parallel": (lambda: ts.run("Hi", parallel="no"), "parallel: expected True or False, received 'no'"),  # type: ignore[arg-type]
    "reask": (lambda: ts.run("Hi", reask=5), "reask: expected words and models, received int"),  # type: ignore[arg-type]
    "key": (lambda: ts.model(SERVER, key=5), "key: expected a text, received int"),  # type: ignore[arg-type]
    "inject": (lambda: ts.Toolbox(weather, inject=["a"]), "inject: expected a dict of values.*, received list"),  # type: ignore[arg-type]
    "an MCP server": (lambda: ts.mcp(None), "which MCP server.*Expected a command line"),  # type: ignore[arg-type]
    "approve": (lambda: ts.run("Hi", tools=[weather], approve=True), "approve: expected a function, received True"),  # type: ignore[arg-type]
    "a toolbox's approve": (
        lambda: asyncio.run(ts.Toolbox(weather).arun([], approve="yes")),  # type: ignore[arg-type]
        "approve: expected a function, received 'yes'",
    ),
    "a toolbox's policy": (
        lambda: asyncio.run(ts.Toolbox(weather).arun([], policy=True)),  # type: ignore[arg-type]
        "policy: expected a toolspeak.Policy",
    ),
    "transform": (lambda: ts.generate_checked(SERVER, 3, "Hi"), "transform: expected a function or a type, received 3"),  # type: ignore[arg-type]
    "progress": (
        lambda: ts.batch([{"text": "a"}], "unused", model=SERVER, progress=True),  # type: ignore[arg-type]
        "progress: expected a function, received True",
    ),
    "ids": (lambda: ts.Decoder("hermes", ids="c1"), "ids: expected a function, received 'c1'"),  # type: ignore[arg-type]
    "a model's name as a dialect": (
        lambda: ts.dialect("gpt-oss"),
        "did you mean 'harmony'. Models with this name speak it",
    ),
    "another model's name as a dialect": (lambda: ts.dialect("qwen3"), "did you mean 'hermes'"),
    "a text": (lambda: ts.parse(None, "hermes"), "text: expected what a model wrote, a str, received NoneType"),  # type: ignore[arg-type]
    "a dialect": (lambda: ts.parse("x", None), "expected the name of a dialect or a Dialect, received NoneType"),  # type: ignore[arg-type]
    "a decoder's dialect": (lambda: ts.Decoder(7), "expected the name of a dialect or a Dialect, received int"),  # type: ignore[arg-type]
    "a grammar's dialect": (lambda: ts.grammar(None, [weather]), "expected the name of a dialect or a Dialect"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("made", "words"), WRONG.values(), ids=WRONG)
def test_what_cannot_be_is_a_usage_error_that_says_what_was_meant(made: Callable[[], Any], words: str) -> None:
    with pytest.raises(ts.UsageError, match=words):
        made()


def test_an_option_of_the_model_is_told_where_it_goes() -> None:
    """Every one that `ts.model` takes by name, for a server's model too, in every function that asks a model."""
    own = [name for kind in (ts.model, ts.Http) for name, one in signature(kind).parameters.items()
           if one.kind is one.KEYWORD_ONLY and name not in {*Options.__annotations__, "name"}]  # fmt: skip
    assert {"dialect", "key", "look", "timeout", "native", "context"} <= {*own}
    asking: list[Callable[[Any], Any]] = [
        lambda option: ts.run("Hi", **option), lambda option: list(ts.stream("Hi", **option)),
        lambda option: ts.decide("Hi", **option), lambda option: ts.call("Hi", tools=[weather], **option),
        lambda option: ts.extract("Hi", int, **option), lambda option: ts.generate(SERVER, "Hi", **option),
        lambda option: ts.conclude("Hi", 1, **option), lambda option: ts.resume(WAITING, {"c": True}, **option),
    ]  # fmt: skip
    for ask in asking:
        for name in own:
            words = f"{name}: this is an option of the model, not of this function. In Python: model=ts.model(NAME, {name}=…)"
            with pytest.raises(ts.UsageError) as raised:
                ask({name: "hermes"})
            assert str(raised.value) == words
    with pytest.raises(ts.UsageError, match=r"Did you mean 'dialect'\? That is an option of the model"):
        ts.run("Hi", dialekt="hermes")  # type: ignore[call-arg]
    with pytest.raises(ts.UsageError, match="timeout: this is an option of the model, not of a batch"):
        ts.batch([{"text": "a"}], "unused", model=SERVER, timeout=3)  # type: ignore[call-arg]


def test_a_closed_decoder_takes_no_more_text() -> None:
    decoder = ts.Decoder("hermes")
    decoder.feed("It rains")
    assert decoder.close()
    with pytest.raises(ts.UsageError, match="this Decoder is closed"):
        decoder.feed(".")
    assert decoder.close() == []
