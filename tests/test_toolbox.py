"""Boxes of tools: what is in them, what they allow, and how they run calls."""

from __future__ import annotations

import asyncio
import base64
import contextvars
import functools
import io
import json
import sqlite3
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from html import escape
from typing import Annotated, Any, Literal
from urllib.parse import quote, quote_plus

import pytest
from pydantic import BaseModel, SecretStr

import toolspeak as ts
from toolspeak.errors import (
    DuplicateTool,
    InvalidCall,
    InvalidTool,
    NoCall,
    NotApproved,
    ToolError,
    ToolTimeout,
    UnknownTool,
    UsageError,
)
from toolspeak.schema.infer import Injected, as_tool, as_tools, tool
from toolspeak.tool_results import plain_size, result_text
from toolspeak.toolbox import Toolbox
from toolspeak.types import Note, ToolCall, ToolResult


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """The weather in a city."""
    return f"Sunny in {city}, 20 {unit}"


def add(a: int, b: int) -> int:
    return a + b


async def slow_add(a: int, b: int) -> int:
    await asyncio.sleep(0)
    return a + b


def fail(text: str) -> None:
    raise KeyError(text)


def rm_all() -> str:
    raise AssertionError("this must never run")


def call(name: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments}


def box() -> Toolbox:
    return Toolbox(weather, add, slow_add, fail)


# ---------------------------------------------------------------- what is in it


def test_what_a_box_takes_and_tells():
    made = Toolbox(weather, [add, {"name": "plan", "input_schema": {"type": "object"}}], Toolbox(slow_add))
    assert [t.name for t in made] == ["weather", "add", "plan", "slow_add"]
    assert len(made) == 4
    assert "add" in made
    assert made["add"] in made
    assert "rm" not in made
    assert repr(made) == "Toolbox(weather, add, plan, slow_add)"
    assert made.list()[0] == {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": as_tool(weather).parameters,
    }
    assert as_tools(made) == tuple(made)
    with pytest.raises(UnknownTool, match="Did you mean 'weather'"):
        made["wether"]
    nested = Toolbox([weather, Toolbox(add, inject={"db": 1}), [slow_add]])
    assert ([t.name for t in nested], nested.inject) == (["weather", "add", "slow_add"], {"db": 1})
    assert Toolbox().list() == []


def test_define():
    made = Toolbox()
    made.define("w2", weather)
    made.define(add)
    made.define("sum", add, description="Adds.", parameters={"a": {"type": "int"}, "b": {"type": "int"}})
    made.define("remote", {"name": "x", "parameters": {"type": "object"}})
    assert [t.name for t in made] == ["w2", "add", "sum", "remote"]
    assert made.call(call("sum", a=1, b=2)) == 3
    with pytest.raises(DuplicateTool, match=r"test_toolbox\.add.*test_toolbox\.weather"):
        made.define("add", weather)
    with pytest.raises(InvalidTool):
        made.define("nothing")

    @made.define
    def later(x: int) -> int:
        return x

    assert made.call(call("later", x=1)) == later(1) == 1


# ---------------------------------------------------------------- sets


def test_sets_of_tools():
    other = Toolbox(rm_all, tool(add, name="rm_add"))
    both = box() | other
    assert [t.name for t in both] == ["weather", "add", "slow_add", "fail", "rm_all", "rm_add"]
    assert [t.name for t in both.only("weather", "rm_*")] == ["weather", "rm_all", "rm_add"]
    assert [t.name for t in both.without("rm_*", "fail")] == ["weather", "add", "slow_add"]
    assert [t.name for t in both.only("*add").without("rm_*").prefix("home_")] == ["home_add", "home_slow_add"]
    assert [t.name for t in box().rename(add="plus")] == ["weather", "plus", "slow_add", "fail"]
    assert [t.name for t in box().rename({"add": "fail", "fail": "add"})][1:] == ["fail", "slow_add", "add"]
    assert both.prefix("x_").call(call("x_add", a=1, b=2)) == 3
    assert [t.name for t in box() | rm_all] == ["weather", "add", "slow_add", "fail", "rm_all"]
    assert [t.name for t in [rm_all] | box()] == ["rm_all", "weather", "add", "slow_add", "fail"]
    assert list(box().only("nothing_*")) == []


def test_the_same_tool_twice_is_one_and_another_of_its_name_an_error():
    assert len(box() | box()) == 4
    with pytest.raises(DuplicateTool):
        box() | Toolbox(tool(weather, name="add"))
    with pytest.raises(DuplicateTool):
        Toolbox(add, add)
    with pytest.raises(DuplicateTool):
        box().rename(add="fail")


def test_a_name_that_is_not_there_is_told():
    for wrong in (lambda: box().only("wether"), lambda: box().without("wether"), lambda: box().rename(wether="w")):
        with pytest.raises(UnknownTool) as caught:
            wrong()
        assert caught.value.near == ("weather",)


def test_a_restricted_box_cannot_be_talked_round():
    safe = (box() | rm_all).without("rm_*")
    for form in (call("rm_all"), {"functionName": "rm_all", "args": {}}, ToolCall("1", "rm_all", {})):
        with pytest.raises(UnknownTool):
            safe.call(form)
    with pytest.raises(UnknownTool):
        safe.transform('{"tool": "rm_all", "tool_input": {}}')
    assert "rm_all" not in json.dumps(safe.list())


# ---------------------------------------------------------------- validate


def test_validate():
    good = box().validate(call("add", a="1", b=2))
    assert good
    assert good.call == ToolCall(
        "", "add", {"a": 1, "b": 2}, '{"a": 1, "b": 2}', (Note("coerced", '/a: the text "1" was read as integer'),)
    )
    assert list(good) == []
    bad = box().validate(call("weather", cty="X", unit="kelvin"))
    assert not bad
    assert bad.call is None
    assert [p.path for p in bad] == ["/unit", "/cty", "/city"]
    assert isinstance(bad.error, InvalidCall)
    assert all(p.message in str(bad.error) for p in bad)
    unknown = box().validate(call("get_weather"))
    assert isinstance(unknown.error, UnknownTool)
    assert unknown.error.near == ("weather",)
    assert "Did you mean 'weather'?" in unknown.problems[0].message


def test_of_two_values_for_one_name_neither_is_run():
    bad = box().validate({"name": "add", "arguments": '{"a": 1, "a": 100, "b": 2}'})
    assert bad.call is None
    assert "'a' twice" in str(bad.error)


def test_an_exception_that_cannot_say_what_it_is_is_a_result_too():
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    def broken() -> None:
        raise Mute

    (result,) = asyncio.run(Toolbox(broken).arun([call("broken")]))
    assert json.loads(result.text) == {"error": {"type": "Mute", "message": ""}}


def test_a_call_that_was_cut_is_not_run():
    cut = ToolCall("1", "add", {"a": 1, "b": 2}, '{"a": 1, "b": 2', whole=False)
    with pytest.raises(InvalidCall, match="cut off"):
        box().call(cut)


@pytest.mark.parametrize(
    "form",
    [
        ToolCall("", "add", {"a": 1, "b": 2}),
        {"name": "add", "arguments": {"a": 1, "b": 2}},
        {"name": "add", "arguments": '{"a": 1, "b": 2}'},
        {"functionName": "add", "args": {"a": 1, "b": 2}},
        {"tool": "add", "tool_input": {"a": 1, "b": 2}, "message": None},
        {"type": "tool-call", "tool": "add", "args": {"a": 1, "b": 2}},
        {"type": "tool_use", "id": "x", "name": "add", "input": {"a": 1, "b": 2}},
        {"id": "x", "type": "function", "function": {"name": "add", "arguments": '{"a": 1, "b": "2"}'}},
    ],
)
def test_calls_in_every_form(form: Any):
    assert box().call(form) == 3


@pytest.mark.parametrize(
    "form",
    [
        None,
        5,
        "add",
        [],
        {},
        {"arguments": {}},
        {"name": "", "arguments": {}},
        {"name": ["add"], "arguments": {}},
        {"name": "add", "tool": "weather"},
        {"name": "add", "arguments": {"a": 1, "b": 2}, "args": {"a": 1, "b": 3}},
        {"name": "add", "arguments": "a=1"},
        {"name": "add", "arguments": "[1, 2]"},
        {"name": "add", "arguments": [1, 2]},
        {"name": "add", "arguments": '{"a": 1, "b": 2'},
        {"name": "add"},
        {"name": "add", "arguments": None},
        {"name": "add", "arguments": ""},
    ],
)
def test_what_is_no_call(form: Any):
    checked = box().validate(form)
    assert not checked
    assert checked.problems
    with pytest.raises(InvalidCall):
        box().call(form)


def test_a_value_that_only_the_python_type_refuses():
    from pydantic import AfterValidator

    def positive(x: int) -> int:
        if x < 0:
            raise ValueError("must not be negative")
        return x

    def root(x: Annotated[int, AfterValidator(positive)]) -> float:
        return x**0.5

    with pytest.raises(InvalidCall, match="negative") as caught:
        Toolbox(root).call(call("root", x=-1))
    assert caught.value.problems[0].path == "/x"


# ---------------------------------------------------------------- transform


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "add", "tool_input": {"a": 1, "b": 2}, "message": null}',
        '```json\n{"tool": "add", "tool_input": {"a": 1, "b": 2}}\n```',
        '{"functionName": "add", "args": {"a": 1, "b": 2}}',
        ' {"type": "tool-call", "tool": "add", "args": {"a": "1", "b": 2}} ',
        '{"name": "add", "arguments": {"a": 1, "b": 2}}',
        'Sure! {"tool": "add", "tool_input": {"a": 1, "b": 2}, "message": ""}',
    ],
)
def test_transform(text: str):
    got = box().transform(text)
    assert (got.name, got.arguments) == ("add", {"a": 1, "b": 2})


def test_transform_in_another_dialect():
    got = box().transform('<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>', "hermes")
    assert got.arguments == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("text", "error", "says"),
    [
        ("no idea", NoCall, "weather, add, slow_add, fail"),
        ("", NoCall, "no call"),
        ('{"tool": null, "tool_input": null, "message": "hello"}', NoCall, "no call"),
        ('{"tool": "ad", "tool_input": {}}', UnknownTool, "add"),
        ('{"tool": "add", "tool_input": {"a": 1.5}}', InvalidCall, "integer"),
        ("[1, 2]", NoCall, "no call"),
    ],
)
def test_transform_raises_what_a_model_can_read(text: str, error: type[Exception], says: str):
    with pytest.raises(error, match=says):
        box().transform(text)


# ---------------------------------------------------------------- running


def test_call_and_acall():
    assert box().call(call("slow_add", a=1, b=2)) == 3
    assert asyncio.run(box().acall(call("add", a=1, b=2))) == 3

    async def inside() -> Any:
        return box().call(call("slow_add", a=1, b=2))

    assert asyncio.run(inside()) == 3


def test_a_tool_that_calls_the_box_again():
    made = Toolbox(add, slow_add)

    @made.define
    async def nested(a: int) -> int:
        return made.call(call("slow_add", a=a, b=1))

    assert made.call(call("nested", a=1)) == 2


def test_every_kind_of_function_runs():
    class Adder:
        def __init__(self, by: int) -> None:
            self.by = by

        @tool
        async def plus(self, a: int) -> int:
            return a + self.by

        async def __call__(self, a: int) -> int:
            return a + self.by

    async def power(a: int, b: int) -> int:
        return a**b

    made = Toolbox(
        Adder(2).plus,
        Adder(3),
        tool(functools.partial(power, b=2), name="square"),
        tool(lambda a: slow_add(a, 1), name="lazy"),
    )
    assert [made.call(call(t.name, a=3)) for t in made] == [5, 6, 9, 4]


def test_a_failing_tool():
    with pytest.raises(ToolError, match="KeyError: 'x'") as caught:
        box().call(call("fail", text="x"))
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.call is not None
    assert caught.value.call.name == "fail"
    assert "in fail" in "".join(traceback.format_exception(caught.value.__cause__))


def test_a_tool_that_exits_does_not_take_the_program_along():
    def leave() -> None:
        sys.exit(3)

    async def leave_too() -> None:
        raise SystemExit

    def stop() -> None:
        raise StopIteration

    def end() -> None:
        raise GeneratorExit

    async def end_too() -> None:
        raise GeneratorExit

    for one in (leave, leave_too, stop, end, end_too):
        with pytest.raises(ToolError):
            Toolbox(one).call(call(one.__name__))
        replies = [f'{{"tool": "{one.__name__}", "tool_input": {{}}}}', "Done."]
        reply = ts.run("x", tools=[one], model=ts.Scripted(replies))
        assert (reply.text, type(reply.steps[0].results[0].error)) == ("Done.", ToolError)


def test_a_function_that_returns_an_iterator_or_a_stream_fails():
    def rows() -> object:
        return (i for i in range(3))

    def file() -> object:
        return io.BytesIO(b"hi")

    async def later() -> object:
        async def numbers() -> AsyncIterator[int]:
            yield 1

        return numbers()

    for one, kind in ((rows, "generator"), (file, "BytesIO"), (later, "async_generator")):
        with pytest.raises(ToolError, match=f"this one returned {kind}: return a list of its items"):
            Toolbox(one).call(call(one.__name__))


def test_a_schema_alone_cannot_run():
    with pytest.raises(ToolError, match="schema alone"):
        Toolbox({"name": "x"}).call(call("x"))


def test_timeouts():
    released = threading.Event()
    cancelled: list[bool] = []

    @tool(timeout=0.05)
    def stuck() -> None:
        released.wait(600)

    @tool(timeout=0.05)
    async def waits() -> None:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    @tool(timeout=60)
    def own() -> None:
        raise TimeoutError("its own")

    made = Toolbox(stuck, waits, own)
    with pytest.raises(ToolTimeout, match="continues in its thread"):
        made.call(call("stuck"))
    with pytest.raises(ToolTimeout, match=r"0\.05 s$"):
        made.call(call("waits"))
    with pytest.raises(ToolError, match="its own") as caught:
        made.call(call("own"))
    assert not isinstance(caught.value, ToolTimeout)
    assert cancelled == [True]
    released.set()


def test_a_stuck_tool_does_not_hold_up_the_end_of_the_program():
    code = (
        "import time\nfrom toolspeak.schema.infer import tool\nfrom toolspeak.toolbox import Toolbox\n"
        "@tool(timeout=0.1)\ndef stuck():\n    time.sleep(600)\n"
        "try:\n    Toolbox(stuck).call({'name': 'stuck'})\nexcept Exception as e:\n    print(type(e).__name__)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout.strip(), done.stderr) == (0, "ToolTimeout", "")


def test_context_variables_reach_the_tool():
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")

    def asks() -> str:
        return who.get()

    async def main() -> Any:
        who.set("me")
        return await Toolbox(asks).arun([call("asks")])

    assert asyncio.run(main())[0].value == "me"
    who.set("you")
    assert Toolbox(asks).call(call("asks")) == "you"


# ---------------------------------------------------------------- injected values


def test_injection():
    def query(sql: str, db: Annotated[sqlite3.Connection, Injected]) -> Any:
        return db.execute(sql).fetchall()

    db = sqlite3.connect(":memory:", check_same_thread=False)
    made = Toolbox(query, inject={"db": db})
    assert "db" not in json.dumps(made.list())
    assert made.call(call("query", sql="select 1")) == [(1,)]
    with pytest.raises(InvalidCall):
        made.call(call("query", sql="select 1", db="mine"))
    assert made.only("query").prefix("x_").call(call("x_query", sql="select 1")) == [(1,)]
    assert (Toolbox(add) | made).call(call("query", sql="select 1")) == [(1,)]
    bare = Toolbox(query)
    assert bare.validate(call("query", sql="select 1"))
    assert bare.call(call("query", sql="select 1"), db=db) == [(1,)]
    for wrong in (
        lambda: bare.call(call("query", sql="select 1")),
        lambda: bare.check_injected(),
        lambda: asyncio.run(bare.arun([])),
    ):
        with pytest.raises(UsageError, match=r"needs db .*inject=\{'db'"):
            wrong()
    db.close()


# ---------------------------------------------------------------- many calls at once


def test_results_keep_their_order_and_run_together():
    gate = threading.Barrier(3, timeout=60)

    def meets(n: int) -> int:
        gate.wait()  # passes only when three of them run at the same time
        time.sleep(0.03 * (3 - n))
        return n

    results = asyncio.run(Toolbox(meets).arun([call("meets", n=i) | {"id": f"c{i}"} for i in range(3)]))
    assert [(r.id, r.value, r.text) for r in results] == [("c0", 0, "0"), ("c1", 1, "1"), ("c2", 2, "2")]


def test_not_more_at_once_than_wanted():
    running: list[int] = []
    most: list[int] = []

    async def busy(n: int) -> int:
        running.append(n)
        most.append(len(running))
        await asyncio.sleep(0.01)
        running.remove(n)
        return n

    asyncio.run(Toolbox(busy).arun([call("busy", n=i) for i in range(9)], parallel=2))
    assert max(most) == 2


def test_failures_are_results():
    calls = [
        call("weather", city="X"),
        call("fail", text="x"),
        call("wether", city="X"),
        call("add", a=1, c="x"),
        "nonsense",
    ]
    results = asyncio.run(box().arun(calls))
    assert results[0] == ToolResult("", "weather", "Sunny in X, 20 celsius", "Sunny in X, 20 celsius")
    assert json.loads(results[1].text) == {"error": {"type": "KeyError", "message": "'x'"}}
    assert isinstance(results[1].error, ToolError)
    assert isinstance(results[1].error.__cause__, KeyError)
    assert results[1].error.__cause__.__traceback__ is not None
    unknown = json.loads(results[2].text)["error"]
    assert unknown["type"] == "UnknownTool"
    assert "Did you mean 'weather'?" in unknown["message"]
    invalid = json.loads(results[3].text)["error"]
    assert invalid["type"] == "InvalidCall"
    assert {p["path"] for p in invalid["problems"]} == {"/c", "/b"}
    assert json.loads(results[4].text)["error"]["type"] == "InvalidCall"
    assert not any("Traceback" in r.text or __file__ in r.text for r in results)


def test_long_results_and_long_errors_are_cut():
    def long(n: int) -> str:
        return "x" * n

    def loud(n: int) -> str:
        raise ValueError("x" * n)

    results = asyncio.run(Toolbox(long, loud).arun([call("long", n=10_000), call("loud", n=1_000_000)], limit=500))
    assert len(results[0].text) <= 500
    assert len(results[0].value) == 10_000
    assert len(json.loads(results[1].text)["error"]["message"]) == 2_000


def test_approval():
    asked: list[ToolCall] = []

    def approve(one: ToolCall) -> bool | str:
        asked.append(one)
        return {"add": True, "weather": "not today"}.get(one.name, False)

    async def approve_too(one: ToolCall) -> bool:
        return one.name == "add"

    calls = [call("add", a="1", b=2), call("weather", city="X"), call("slow_add", a=1, b=1), call("add", a="x", b=1)]
    results = asyncio.run(box().arun(calls, approve=approve))
    assert [r.value for r in results] == [3, None, None, None]
    assert [type(r.error) for r in results[1:]] == [NotApproved, NotApproved, InvalidCall]
    assert "not today" in results[1].text
    assert [(one.name, one.arguments) for one in asked] == [
        ("add", {"a": 1, "b": 2}),
        ("weather", {"city": "X"}),
        ("slow_add", {"a": 1, "b": 1}),
    ]
    assert [r.value for r in asyncio.run(box().arun(calls[:2], approve=approve_too))] == [3, None]


def test_what_approve_raises_comes_through_and_nothing_goes_on():
    def broken(one: ToolCall) -> bool:
        raise LookupError("the form is gone")

    with pytest.raises(LookupError, match="the form is gone"):
        asyncio.run(box().arun([call("add", a=1, b=2), call("slow_add", a=1, b=2)], approve=broken))


def test_cancellation_reaches_the_tools(caplog: pytest.LogCaptureFixture):
    seen: list[str] = []
    released = threading.Event()

    async def waits(n: int) -> None:
        seen.append("started")
        try:
            await asyncio.sleep(600)
        finally:
            seen.append("stopped")

    def stuck(n: int) -> None:
        seen.append("started")
        released.wait(600)

    async def main() -> None:
        task = asyncio.create_task(Toolbox(waits, stuck).arun([call("waits", n=1), call("stuck", n=2)]))
        while seen.count("started") < 2:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    released.set()
    assert seen.count("stopped") == 1
    assert "'stuck' was given up on" in caplog.text


def test_a_tool_that_cancels_itself_has_failed():
    async def odd() -> None:
        raise asyncio.CancelledError

    (result,) = asyncio.run(Toolbox(odd).arun([call("odd")]))
    assert isinstance(result.error, ToolError)


@dataclass(slots=True)
class Login:
    password: str


class Service:
    def __init__(self, password: str) -> None:
        self.login = Login(password)


class Settings(BaseModel):
    password: str


class Hidden(BaseModel):
    password: SecretStr


CONFIGURATIONS: dict[str, Callable[[str], Any]] = {
    "dict": lambda text: {"host": "h", "password": text},
    "nested": lambda text: {"n": [{"t": (text,)}], "u": {1, 2}},
    "data class": Login,
    "object": Service,
    "pydantic": lambda text: {"db": Settings(password=text)},
    "secret": lambda text: Hidden(password=SecretStr(text)),
    "bytes": str.encode,
}


class TestWhatAModelReadsOfAnException:
    """Exceptions are written for people who run the program: passwords stand in them."""

    @staticmethod
    def read(box: ts.Toolbox, **inject: Any) -> tuple[str, str]:
        (result,) = asyncio.run(box.arun([{"name": "query", "arguments": {}}], inject=inject))
        return result.text, str(result.error)

    def test_no_password_of_an_address(self) -> None:
        def query() -> str:
            raise ConnectionError(
                "cannot reach postgres://app:s3cr:et@db:5432/x or https://u:p%40ss@h/ or http://h:80/a@b"
            )

        text, error = self.read(ts.Toolbox(query))
        assert "postgres://app:[hidden]@db:5432/x" in text
        assert "https://u:[hidden]@h/" in text
        assert "http://h:80/a@b" in text
        assert "s3cr:et" in error  # the program reads all of it

    def test_the_log_has_what_the_model_reads(self, caplog: pytest.LogCaptureFixture) -> None:
        def query() -> str:
            raise ts.ToolError("cannot reach postgres://app:s3cr3t@db/x")

        caplog.set_level("DEBUG", "toolspeak")
        _, error = self.read(ts.Toolbox(query))
        assert "[hidden]" in caplog.text
        assert "s3cr3t" not in caplog.text
        assert "s3cr3t" in error

    def test_nothing_that_the_application_gave_it(self) -> None:
        def query(key: Annotated[str, ts.Injected], n: Annotated[int, ts.Injected] = 7) -> str:
            raise ValueError(f"{key} is not valid, {n} times")

        text, _ = self.read(ts.Toolbox(query), key="sk-live-12345")
        assert "[hidden] is not valid, 7 times" in text

    @pytest.mark.parametrize("secret", ["AB+Cd=ef/gh'ij\"kl&x7", "päss-wörd-of-somebody"])
    @pytest.mark.parametrize(
        "form",
        [
            lambda text: quote(text, safe=""),
            quote_plus,
            repr,
            json.dumps,
            escape,
            lambda text: base64.b64encode(f"me:{text}".encode()).decode(),
            lambda text: text.encode().hex(),
            lambda text: f"{text[:12]}...",
        ],
    )
    def test_nothing_that_the_application_gave_it_in_other_notations(self, form: Any, secret: str) -> None:
        def query(key: Annotated[str, ts.Injected]) -> str:
            raise ValueError(f"401 for https://api.example/?key={form(key)} today")

        text, error = self.read(ts.Toolbox(query), key=secret)
        assert form(secret) in error
        assert json.loads(text)["error"]["message"].count("[hidden]") == 1
        assert [
            part for part in (form(secret), secret[:9], secret[-9:]) if part in json.loads(text)["error"]["message"]
        ] == []

    @pytest.mark.parametrize("make", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
    def test_nothing_inside_what_the_application_gave_it(self, make: Callable[[str], Any]) -> None:
        def query(conf: Annotated[Any, ts.Injected]) -> str:
            raise KeyError(conf, getattr(conf, "__dict__", None), secret)

        secret = "hunter2\n'pass-word"
        text, _ = self.read(ts.Toolbox(query), conf=make(secret))
        assert "[hidden]" in text
        assert "hunter2" not in text
        assert "pass-word" not in text

    def test_the_search_for_injected_texts_is_bounded(self) -> None:
        def query(conf: Annotated[Any, ts.Injected]) -> str:
            raise KeyError("f1rst-of-a11")

        endless: dict[str, Any] = {"a": "f1rst-of-a11"}
        endless["b"] = [endless] * 10
        endless["c"] = [f"{i} a longer text of a large object" for i in range(100_000)]
        assert "[hidden]" in self.read(ts.Toolbox(query), conf=endless)[0]

    @pytest.mark.parametrize(
        ("conf", "message", "seen"),
        [
            ({"unit": "celsius"}, "unit must be celsius or kelvin", "unit must be celsius or kelvin"),
            ({"encoding": "utf-8", "root": "/srv/notes"}, "no /srv/notes/a in 'utf-8'", "no /srv/notes/a in 'utf-8'"),
            ({"type": "application/json", "at": "api.example.com:8080"}, "api.example.com:8080: application/json", "api.example.com:8080: application/json"),
            (["read", "read"], "already read", "already read"),
            ({"password": "letmein"}, "letmein is wrong, letmeinn too", "[hidden] is wrong, letmeinn too"),
            ({"db": {"api_key": ["orders"]}}, "no orders", "no [hidden]"),
            ({"x": "hunter2"}, "hunter2", "[hidden]"),
            ({"x": "wJalrXUtnFEMI"}, "wJalrXUtnFEMI", "[hidden]"),
            ("read", "already read: read", "already [hidden]: [hidden]"),
        ],
    )  # fmt: skip
    def test_usual_words_stay_readable(self, conf: Any, message: str, seen: str) -> None:
        """A settings object has many of them: "unit must be [hidden] or kelvin" tells a model nothing."""

        def query(conf: Annotated[Any, ts.Injected]) -> str:
            raise ValueError(message)

        text, _ = self.read(ts.Toolbox(query), conf=conf)
        assert json.loads(text)["error"]["message"] == seen

    @pytest.mark.parametrize(
        ("address", "seen"),
        [
            ("postgres://app:pa/ss@db:5432/x", "postgres://app:[hidden]@db:5432/x"),
            ("redis://:a#b?c@h", "redis://:[hidden]@h"),
            ("https://ghp_0123456789abcdef@git.example/x.git", "https://[hidden]@git.example/x.git"),
            ("ssh://git@git.example/x.git", "ssh://git@git.example/x.git"),
            ("http://h:8080/@scope/x", "http://h:8080/@scope/x"),
        ],
    )
    def test_no_password_that_a_url_should_not_contain(self, address: str, seen: str) -> None:
        def query() -> str:
            raise ConnectionError(f"cannot reach {address}.")

        assert f"cannot reach {seen}." in self.read(ts.Toolbox(query))[0]

    def test_a_long_text_of_the_application_is_found_as_it_is(self) -> None:
        def query(text: Annotated[str, ts.Injected]) -> str:
            raise ValueError(f"bad: {text[:10]} {text}")

        text, _ = self.read(ts.Toolbox(query), text="a line of text\n" * 1_000)
        assert "a line of" not in text

    def test_nothing_at_all_where_that_is_wanted(self) -> None:
        def query() -> str:
            raise ValueError("row 7 of customers: Jane Doe")

        text, error = self.read(ts.Toolbox(ts.tool(query, show_errors=False)))
        assert json.loads(text) == {"error": {"type": "ToolError", "message": "the tool failed"}}
        assert "Jane Doe" in error
        assert "Jane Doe" in self.read(ts.Toolbox(query))[0]

    def test_what_a_tool_says_to_the_model_is_told(self) -> None:
        @ts.tool(show_errors=False)
        def query() -> str:
            raise ts.ToolError("there is no such table; there are cats and dogs")

        assert "there are cats and dogs" in self.read(ts.Toolbox(query))[0]

    def test_a_call_that_does_not_fit_is_told_all_the_same(self) -> None:
        @ts.tool(show_errors=False)
        def query(table: str) -> str:
            return table

        assert "required argument 'table' is missing" in self.read(ts.Toolbox(query))[0]


@pytest.mark.parametrize(("rows", "beside"), [(10, False), (30_000, True)])
def test_a_large_result_is_written_beside_the_loop(monkeypatch: pytest.MonkeyPatch, rows: int, beside: bool) -> None:
    threads: list[int] = []

    def noted(value: Any, limit: int | None) -> str:
        threads.append(threading.get_ident())
        return result_text(value, limit)

    monkeypatch.setattr("toolspeak.models.offload.result_text", noted)

    async def find() -> list[dict[str, int]]:
        """Find."""
        return [{"a": at} for at in range(rows)]

    results = asyncio.run(ts.Toolbox([find]).arun([ts.ToolCall("c", "find", {}, "{}")]))
    assert results[0].value == [{"a": at} for at in range(rows)]
    assert [thread != threading.get_ident() for thread in threads] == [beside]


class Row:
    """A row that is read from its database when its fields are."""

    def __init__(self, a: int) -> None:
        self.a = a


def test_the_size_of_objects_with_code_of_their_own_is_unknown() -> None:
    """They may depend on the thread."""
    assert plain_size([{"a": at} for at in range(30_000)]) >= 100_000
    assert plain_size([Row(1)] * 30_000) == plain_size([{"a": 1}, Row(2)]) == 0
    assert plain_size(["x" * 50, (1, None, True, 1.5)]) == 50 + 20 + 40
