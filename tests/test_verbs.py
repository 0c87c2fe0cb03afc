"""Words and values, explanations, and the names that people use."""

from __future__ import annotations

import ast
import asyncio
import importlib
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from aiohttp import web

import toolspeak as ts
from models.conftest import serving
from replies import native


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """Get the current weather in a city."""
    return f"Sunny in {city}"


# ------------------------------------------------------------------ generate


def test_generate() -> None:
    model = native("Hello.")
    assert ts.generate(model, "Hi", system="Be short.", temperature=0.5, max_tokens=9, seed=1, stop=["x"]) == "Hello."
    request = model.requests[0]
    assert [m["role"] for m in request.messages] == ["system", "user"]
    assert (request.temperature, request.max_tokens, request.seed, request.stop) == (0.5, 9, 1, ("x",))
    assert not request.tools


def test_generate_checked_gives_what_was_wrong_back() -> None:
    model = native("five", "5")
    assert ts.generate_checked(model, int, "2 + 3?") == 5
    roles = [m["role"] for m in model.requests[1].messages]
    assert roles == ["user", "assistant", "user"]
    assert "invalid literal for int" in str(model.requests[1].messages[-1].get("content"))


def test_generate_checked_carries_every_attempt() -> None:
    model = native("a", "b", "c", "d")
    with pytest.raises(ts.GenerationError, match="2 tries") as caught:
        ts.generate_checked(model, int, "2 + 3?", tries=2)
    assert [attempt.reply.text for attempt in caught.value.attempts] == ["a", "b"]
    assert all("ValueError" in attempt.error for attempt in caught.value.attempts)


def test_a_fault_of_the_transform_goes_up_as_it_is() -> None:
    def transform(text: str) -> int:
        raise RuntimeError("a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        ts.generate_checked(native("x", repeat=True), transform, "?")


def test_a_toolbox_transforms() -> None:
    box = ts.Toolbox(weather)
    model = native(
        "Rome!",
        '{"tool": "weather", "tool_input": {"town": "Rome"}}',
        '{"tool": "weather", "tool_input": {"city": "Rome"}}',
    )
    call = ts.generate_checked(model, box.transform, "Weather in Rome?")
    assert (call.name, call.arguments) == ("weather", {"city": "Rome"})
    assert "town" in str(model.requests[2].messages[-1].get("content"))


@pytest.mark.parametrize("tries", [0, -3])
def test_at_least_one_try(tries: int) -> None:
    with pytest.raises(ts.UsageError, match="tries"):
        ts.generate_checked(native("x"), int, "?", tries=tries)


def test_the_model_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLSPEAK_MODEL", "scripted:Hello")
    assert ts.generate(None, "Hi") == "Hello"
    assert ts.run("Hi").text == "Hello"


def test_a_misspelt_option() -> None:
    with pytest.raises(ts.UsageError, match=r"temprature: .*Did you mean 'temperature'"):
        ts.run("Hi", model=native("x"), temprature=1)  # type: ignore[call-arg]


def test_one_function_may_stand_for_a_list() -> None:
    assert ts.run("Hi", tools=[weather], model=native("x")).text == "x"
    assert ts.run("Hi", tools=ts.Toolbox(weather), model=native("x")).text == "x"


# ------------------------------------------------------------------ explain


def test_explaining_a_chat_model_tells_its_messages() -> None:
    told = ts.explain("Weather in Rome?", tools=[weather], model="scripted:x", system="Be short.")
    assert "You have access to the following tools" in str(told.messages[0].get("content"))
    assert "Be short." in str(told)
    assert "Weather in Rome?" in str(told)


@pytest.mark.parametrize("tools", [[weather], []])
@pytest.mark.parametrize("spoken", [False, True])
def test_the_explained_bytes_are_the_bytes_that_are_sent(spoken: bool, tools: list[Any]) -> None:
    received: list[tuple[str, bytes]] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        if request.path == "/props":  # what every server is asked before tools are offered
            return web.Response(status=404)
        received.append((str(request.url), await request.read()))
        return web.json_response(
            {"choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]}
        )

    async def main() -> None:
        async with serving(answer) as server:
            model = ts.model(f"{server.url}/v1#m", key="sk-secret-0123456789", dialect="tool-json" if spoken else None)
            told = ts.explain("Wetter in Köln?", tools=tools, model=model, seed=5, temperature=0)
            assert received == []
            await ts.arun("Wetter in Köln?", tools=tools, model=model, seed=5, temperature=0)
            assert received[0] == (told.url, told.body)
            assert told.body.decode() in str(told)
            assert "sk-secret" not in str(told)
            assert ("tools" in json.loads(told.body)) == bool(tools and not spoken)

    asyncio.run(main())


@pytest.mark.parametrize("tools", [[weather], []])
def test_a_name_that_only_the_server_knows_is_explained(tools: list[Any]) -> None:
    """The body had an empty name, and nothing said that the request has another one."""
    for address, unnamed in (("http://127.0.0.1:9/v1", True), ("http://127.0.0.1:9/v1#m", False)):
        told = ts.explain("Hi", tools=tools, model=address)
        assert (told.unnamed, json.loads(told.body)["model"]) == (unnamed, "" if unnamed else "m")
        assert ("the server is asked for the name of its only one" in str(told)) is unnamed
    assert not ts.explain("Hi", model="scripted:x").unnamed


EXPLAIN = """
import sys
import toolspeak as ts
def weather(city: str) -> str:
    "Get the current weather in a city."
told = ts.explain("Weather in Rome?", tools=[weather], model="local")
assert "xllamacpp" not in sys.modules, "the library was loaded"
assert "def weather(city: str)" in told.prompt, told.prompt
assert len(told.prompts) == len(told.continuations) == 3
assert any("Weather in Rome?" in p + c for p, c in zip(told.prompts, told.continuations))
required = ts.explain("Weather in Rome?", tools=[weather], model="local", choice="required")
assert required.prompt.endswith('weather(city="'), required.prompt
print(told)
"""


def test_explaining_the_embedded_model_loads_nothing(tmp_path: Path) -> None:
    import os

    environment = {**os.environ, "TOOLSPEAK_CACHE": str(tmp_path / "none")}
    done = subprocess.run(
        [sys.executable, "-c", EXPLAIN], capture_output=True, text=True, timeout=60, env=environment, check=False
    )
    assert done.stderr == ""
    assert done.returncode == 0
    assert "asks how likely each of 3 texts is" in done.stdout
    assert not (tmp_path / "none").exists()


# ------------------------------------------------------------------ the public names


def test_every_public_name_is_there() -> None:
    for name in ts.__all__:
        assert getattr(ts, name) is not None
    assert set(ts.__all__) <= set(dir(ts))


def test_a_module_does_not_hide_the_function_of_its_name() -> None:
    script = "import toolspeak.explain, toolspeak.dialects.hermes, toolspeak as ts; ts.dialects(); ts.explain.__call__"
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse(Path(ts.__file__).read_text("utf-8"))
    (block,) = [n for n in tree.body if isinstance(n, ast.If) and ast.unparse(n.test) == "TYPE_CHECKING"]
    seen = {
        alias.asname: f"{node.module}.{alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert sorted(str(name) for name in seen) == ts.__all__
    for name, home in seen.items():
        module, _, attribute = home.rpartition(".")
        assert getattr(importlib.import_module(f"toolspeak.{module}"), attribute) is getattr(ts, str(name))


SIGNATURES = {
    "model": "name",
    "run": "prompt tools",
    "arun": "prompt tools",
    "stream": "prompt tools",
    "astream": "prompt tools",
    "decide": "prompt tools",
    "call": "prompt tools",
    "generate": "model prompt",
    "generate_checked": "model transform prompt tries",
    "extract": "prompt kind",
    "explain": "prompt tools",
    "dialects": "",
    "dialect": "name",
    "detect": "template model response_template",
    "render": "messages tools d template thinking now continue_final variables",
    "parse": "text d tools prompt thoughts",
    "Decoder": "d tools prompt thoughts ids",
    "collect": "events",
}
"""The parameters that documents and examples use, in the order in which they may be given by position."""
EVERYWHERE = ("model", "system", "limits", "approve")


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_documented_parameters(name: str) -> None:
    given = list(inspect.signature(getattr(ts, name)).parameters)
    wanted = SIGNATURES[name].split()
    assert [p for p in given if p in wanted] == wanted
    if "options" in given:
        from toolspeak.verbs import Options

        assert set(EVERYWHERE) <= set(Options.__annotations__)


@pytest.mark.parametrize(
    "name", ["define", "list", "validate", "transform", "call", "acall", "only", "without", "prefix"]
)
def test_a_toolbox_has(name: str) -> None:
    assert callable(getattr(ts.Toolbox(weather), name))


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="wether"):
        ts.wether  # noqa: B018


# ------------------------------------------------------------------ what the application gives


def test_a_run_misses_what_the_application_must_give_before_it_asks() -> None:
    def count(table: str, db: Annotated[object, ts.Injected]) -> int:
        """Count the rows of a table."""
        return 3

    model = native("Just words")
    for verb in (ts.run, lambda prompt, **options: list(ts.stream(prompt, **options))):  # pyright: ignore
        with pytest.raises(ts.UsageError, match="'count' needs db"):
            verb("How many cats?", tools=[weather, count], model=model)
    assert not model.requests
    assert ts.decide("How many cats?", tools=[weather, count], model=model).text == "Just words"


@pytest.mark.parametrize("stop", ["END", ["END"]])
def test_one_stop_string_is_one(stop: Any) -> None:
    model = ts.Scripted(["Hi"])
    ts.run("Hi", model=model, stop=stop)
    assert model.requests[0].stop == ("END",)


@pytest.mark.parametrize("stop", [5, "", ["a", ""], ["a", 5]])
def test_a_stop_that_is_none_is_refused(stop: Any) -> None:
    with pytest.raises(ts.UsageError, match="stop: expected a string"):
        ts.run("Hi", model=ts.Scripted(["Hi"]), stop=stop)


CALLED: Any = {
    "role": "assistant",
    "content": None,
    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}


def test_a_role_that_there_is_not_is_told_before_anything_is_sent() -> None:
    model = ts.Scripted("Hi.", repeat=True)
    with pytest.raises(ts.UsageError, match=r"message 1: expected a role of .*, got 'usr'. Did you mean 'user'\?"):
        ts.run([{"role": "system", "content": "x"}, {"role": "usr", "content": "x"}], model=model)
    assert not model.requests
    for role in ("developer", "tool", "function", "assistant"):
        ts.decide([CALLED, {"role": role, "content": "x", "tool_call_id": "1"}], model=model)  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ([{"role": "tool", "tool_call_id": "1", "content": "5"}, CALLED], "message 0: no call before this result has the id '1'"),
        ([CALLED, {"role": "tool", "tool_call_id": "2", "content": "5"}], "message 1: no call before this result has the id '2'"),
        ([CALLED, {"role": "tool", "tool_call_id": ["1"], "content": "5"}], "message 1: no call before this result has the id"),
        ([{"role": "user", "content": "x"}, {"role": "tool", "content": "5"}], "message 1: there is no call before this result"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("capabilities", [["tools"], []])
def test_a_result_without_its_call_is_refused(messages: Any, words: str, capabilities: Any) -> None:
    """As hosted APIs do: the model would read the result of nothing."""
    model = ts.Scripted("Hi.", repeat=True, capabilities=capabilities)
    with pytest.raises(ts.UsageError, match=re.escape(words)):
        ts.run(messages, system="s", model=model)
    assert not model.requests
    for answer in ({"tool_call_id": "1"}, {}):  # some APIs have no ids
        assert ts.run([CALLED, {"role": "tool", "content": "5", **answer}], model=model).text == "Hi."


@pytest.mark.parametrize("thoughts", ["drop", "", None, True])
def test_a_wrong_value_of_thoughts_is_named(thoughts: Any) -> None:
    for use in (
        lambda: ts.parse("Hi", "hermes", [], thoughts=thoughts),
        lambda: ts.Decoder("hermes", thoughts=thoughts),
    ):
        with pytest.raises(ts.UsageError, match='thoughts: expected "split" or "keep"'):
            use()
