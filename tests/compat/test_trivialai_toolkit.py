"""`ToolKit`: its prompt to the byte, its codes and messages, and where it checks better than the package."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Dict, List, Literal, NewType, Optional, Tuple, TypedDict, Union  # noqa: UP035

import pytest
from hypothesis import strategies as st

from peers import peer
from properties import property_test
from toolspeak.compat.trivialai import ToolCallError, ToolKit, TransformError
from toolspeak.compat.trivialai.annotations import fits

# The annotations of the tools below are evaluated: the package understands no others.
PLAIN = {"__name__": "tools", "Any": Any, "Dict": Dict, "List": List, "Optional": Optional, "Literal": Literal, "Union": Union, "Path": Path}  # noqa: UP006  # fmt: skip
SOURCE = '''
def screenshot(url: str, selectors: Optional[List[str]] = None) -> None:
    """Takes a screenshot.

    And more that is not shown.
    """
    return [url, selectors]

def kw(b: float, *rest, **more) -> str:
    return f"{b} {sorted(more)}"

def bare(x, y=3): return x

def many(a: int, b: bool = True, c: Dict[str, List[int]] = {}, d: Literal["x", 1] = "x", e: Union[int, str, None] = None,
         f: Path = None, g: list = (), h: "int" = 1, i: int | None = None) -> dict[str, int]:
    " Many "

def none(): "Nothing"
'''
exec(compile(SOURCE, "tools", "exec", dont_inherit=True), PLAIN)  # without this file's future import
screenshot, kw, bare, many, none = (PLAIN[name] for name in ("screenshot", "kw", "bare", "many", "none"))

PROMPT = """You have access to the following tools.

When you want to call a tool, respond with a single JSON object of the following form, and NOTHING else:

{
  "type": "tool-call",
  "tool": "<one of: bare, screenshot>",
  "args": {
    "<param>": "<value>",
    "...": "..."
  }
}

Available tools:

bare(x: Any, y: Any = 3) -> Any

screenshot(url: str, selectors: Optional[List[str]] = None) -> None
  Takes a screenshot.

Use the signature exactly. Required arguments must be present, and do not invent argument names that are not shown.

If you do not need to call a tool, respond normally instead of emitting a tool-call JSON object."""


def call(tool: Any, **args: Any) -> dict[str, Any]:
    return {"type": "tool-call", "tool": tool, "args": args}


def test_the_prompt() -> None:
    assert ToolKit(screenshot, bare).to_tool_prompt() == PROMPT
    assert ToolKit().to_tool_prompt() == ""


@pytest.mark.parametrize("tools", [(screenshot,), (kw, bare), (many,), (none, screenshot, many), ()])
def test_the_prompt_is_the_packages_to_the_byte(tools: tuple[Callable[..., Any], ...]) -> None:
    theirs = peer("trivialai", "agent.toolkit").ToolKit(*tools)
    assert ToolKit(*tools).to_tool_prompt() == theirs.to_tool_prompt()
    assert ToolKit(*tools).to_tool_shape() == theirs.to_tool_shape()


def test_adding_and_removing() -> None:
    kit = ToolKit(screenshot, bare)
    assert kit.tool_names() == ["bare", "screenshot"]
    assert len(kit) == 2
    assert kit
    assert not ToolKit()
    assert kit.has_tool("bare")
    assert not kit.has_tool("nope")
    assert not kit.has_tool(["bare"])
    with pytest.raises(ValueError, match=r"^Tool 5 has no __name__$"):
        ToolKit(5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^Duplicate tool name: 'bare'$"):
        ToolKit(bare, bare)
    with pytest.raises(ValueError, match=r"^Duplicate tool name: 'bare'$"):
        kit.add_tool(kw, name="bare")
    with pytest.raises(ValueError, match="has no __name__ and no explicit name"):
        kit.add_tool(functools.partial(bare, 1))
    kit.ensure_tool(kw, name="bare")
    assert kit.call_tool(call("bare", b=1.5)) == "1.5 []"
    kit.remove_tool("bare")
    with pytest.raises(KeyError, match="No such tool: 'bare'"):
        kit.remove_tool("bare")
    kit.add_tool(lambda x: x)
    assert kit.tool_names() == ["<lambda>", "screenshot"]


def test_a_tool_is_shown_under_the_name_it_is_called_by() -> None:
    kit, theirs = ToolKit(), peer("trivialai", "agent.toolkit").ToolKit()
    for either in (kit, theirs):
        either.add_tool(bare, name="given")
    assert "\ngiven(x: Any, y: Any = 3) -> Any\n" in kit.to_tool_prompt()
    assert "\nbare(x: Any, y: Any = 3) -> Any\n" in theirs.to_tool_prompt()


SHOT = {"tool": "screenshot", "expected": ["selectors", "url"]}
REFUSED: list[tuple[Any, dict[str, Any]]] = [
    (
        [],
        {
            "code": "invalid-object-structure",
            "message": "Tool call must be a JSON object.",
            "received_type": "list",
        },
    ),
    ({}, {"code": "invalid-tool-call-type", "message": "Tool call type must be 'tool-call'."}),
    (
        call(""),
        {
            "code": "invalid-tool-name",
            "message": "Tool call must include a non-empty string `tool` name.",
            "available_tools": ["kw", "many", "screenshot"],
        },
    ),
    (
        call("nope"),
        {
            "code": "no-such-tool",
            "message": "Unknown tool 'nope'.",
            "tool": "nope",
            "available_tools": ["kw", "many", "screenshot"],
        },
    ),
    (
        {"type": "tool-call", "tool": "screenshot", "args": [1]},
        {
            "code": "invalid-tool-args",
            "message": "Arguments for screenshot must be a JSON object.",
            "received_type": "list",
            **SHOT,
        },
    ),
    (
        {"type": "tool-call", "tool": "screenshot"},
        {
            "code": "missing-tool-arg",
            "message": "Missing required argument for screenshot: 'url'. Expected arguments: selectors, url.",
            "received": [],
            "missing": ["url"],
            **SHOT,
        },
    ),
    (
        call("screenshot", y=1, x=2),
        {
            "code": "unexpected-tool-arg",
            "message": "Unexpected arguments for screenshot: 'x', 'y'. Expected arguments: selectors, url.",
            "received": ["x", "y"],
            "unexpected": ["x", "y"],
            **SHOT,
        },
    ),
    (
        call("kw", b="1", c=2),
        {
            "code": "invalid-tool-arg-type",
            "message": "Argument 'b' for kw must be float; received str.",
            "tool": "kw",
            "expected": ["b"],
            "received": ["b", "c"],
            "argument": "b",
            "expected_type": "float",
            "received_type": "str",
        },
    ),
    (
        call("screenshot", url=None),
        {
            "code": "invalid-tool-arg-type",
            "message": "Argument 'url' for screenshot must be str; received NoneType.",
            "received": ["url"],
            "argument": "url",
            "expected_type": "str",
            "received_type": "NoneType",
            **SHOT,
        },
    ),
]


@pytest.mark.parametrize(("wrong", "said"), REFUSED)
def test_codes_and_messages(wrong: Any, said: dict[str, Any]) -> None:
    for kit in (ToolKit(screenshot, kw, many), peer("trivialai", "agent.toolkit").ToolKit(screenshot, kw, many)):
        with pytest.raises(Exception, match=f"^{said['code']}$") as caught:
            kit.check_tool(wrong)
        assert caught.value.public_dict() == {"type": "tool-error", **said}
        assert caught.value.raw == wrong
        assert caught.value.code == caught.value.message == said["code"]


def test_a_refusal_is_a_transform_error() -> None:
    with pytest.raises(TransformError) as caught:
        ToolKit(kw).check_tool(call("nope"))
    assert isinstance(caught.value, ToolCallError)
    assert caught.value.available_tools == ["kw"]
    assert caught.value.missing is None
    assert ToolCallError("a-code").detail == "a-code"


JSON = st.sampled_from([None, True, 0, 1, -2, 1.5, "x", "", [], ["a"], [1], {}, {"k": [1]}, {"k": 1}])


@property_test(100, st.dictionaries(st.sampled_from(["a", "b", "c", "d", "e", "f", "g", "h", "z"]), JSON, max_size=6))
def test_names_are_judged_as_the_package_does(args: dict[str, Any]) -> None:
    """Where only names are wrong the two say the same; types are judged below."""
    outcomes: list[Any] = []
    for kit in (ToolKit(many), peer("trivialai", "agent.toolkit").ToolKit(many)):
        try:
            outcomes.append(kit.check_tool(call("many", **args)))
        except Exception as error:  # noqa: BLE001 - two classes of the same name
            outcomes.append(error.public_dict())  # type: ignore[attr-defined]
    ours, theirs = outcomes
    if "invalid-tool-arg-type" not in (ours.get("code"), theirs.get("code")):
        assert ours == theirs


class Point(TypedDict):
    x: int


Age = NewType("Age", int)

FITS: list[tuple[Any, Any, bool, bool | None]] = [  # value, annotation, here, in the package
    (1, float, True, False),
    (True, int, False, True),
    (True, float, False, False),
    (1, bool, False, False),
    ([1], List[str], False, True),  # noqa: UP006
    (["a"], list[str], True, True),
    ([[1, "a"]], list[list[int]], False, True),
    ({"a": "b"}, dict[str, int], False, True),
    ({"a": 1}, Dict[str, int], True, True),  # noqa: UP006
    ("1", int | None, False, True),
    (None, int | None, True, True),
    (None, Optional[int], True, True),  # noqa: UP045
    ("1", Optional[int], False, False),  # noqa: UP045
    (1, Union[str, int], True, True),  # noqa: UP007
    (True, Literal[1], False, True),
    (1, Literal[1, "a"], True, True),
    ([1, 2], tuple[int, int], True, True),
    ([1, 2, 3], tuple[int, int], False, True),
    ([1, "2"], Tuple[int, ...], False, True),  # noqa: UP006
    ([1], tuple, True, False),
    ({1}, set[int], True, True),
    ({"1"}, set[int], False, True),
    ({"x": 1}, Point, True, None),
    ([], Point, False, None),
    (7, Age, True, True),
    ("7", Age, False, True),
    ("a", Annotated[str, "what for"], True, True),
    (1, Annotated[str, "what for"], False, True),
    (1, "Unknown", True, True),
    (object(), Any, True, True),
    (len, Callable[..., Any], True, True),
    (None, None, True, True),
    ("x", Path, False, False),
]


@pytest.mark.parametrize(("value", "annotation", "here", "there"), FITS)
def test_types(value: Any, annotation: Any, here: bool, there: bool | None) -> None:
    assert fits(value, annotation) is here
    if there is not None:
        assert peer("trivialai", "agent.toolkit").ToolKit._type_ok(value, annotation) is there


def test_annotations_that_are_strings_are_judged() -> None:
    def later(n: list[int] | None) -> Any:
        return n

    assert ToolKit(later).call_tool(call("later", n=[1])) == [1]
    with pytest.raises(ToolCallError, match=r"^invalid-tool-arg-type$"):
        ToolKit(later).call_tool(call("later", n="1"))


def test_a_default_of_none_may_be_given() -> None:
    def f(n: int = None) -> Any:  # type: ignore[assignment]  # noqa: RUF013
        return n

    assert ToolKit(f).call_tool(call("f", n=None)) is None


def test_positional_only_parameters_can_be_given() -> None:
    def f(a: int, b: int = 2, /, c: int = 3) -> Any:
        return a, b, c

    assert ToolKit(f).call_tool(call("f", c=7, a=1)) == (1, 2, 7)
    assert ToolKit(f).call_tool(call("f", a=1, b=5)) == (1, 5, 3)
    with pytest.raises(ToolCallError, match=r"^missing-tool-arg$"):
        ToolKit(f).call_tool(call("f", b=1))


def test_a_type_error_of_the_tools_own_comes_through() -> None:
    def f(a: int) -> Any:
        return a + "1"  # type: ignore[operator]

    with pytest.raises(TypeError, match="unsupported operand") as caught:
        ToolKit(f).call_tool(call("f", a=1))
    assert not isinstance(caught.value, ToolCallError)
    theirs = peer("trivialai", "agent.toolkit")
    with pytest.raises(theirs.ToolCallError, match=r"^tool-call-failed$"):
        theirs.ToolKit(f).call_tool(call("f", a=1))


def test_names_that_are_not_strings() -> None:
    with pytest.raises(ToolCallError, match=r"^unexpected-tool-arg$"):
        ToolKit(kw).check_tool({"type": "tool-call", "tool": "kw", "args": {"b": 1, 2: 3}})


def test_a_builtin_without_a_signature() -> None:
    kit = ToolKit(dict)
    assert "\ndict(...)\n" in kit.to_tool_prompt()
    assert kit.call_tool(call("dict", a=1)) == {"a": 1}


async def double(n: int) -> int:
    "Doubles"
    await asyncio.sleep(0)
    return 2 * n


def test_async_tools_are_waited_for() -> None:
    kit = ToolKit(double)
    assert kit.call_tool(call("double", n=2)) == 4
    assert asyncio.run(kit.acall_tool(call("double", n=3))) == 6

    async def inside() -> Any:
        return kit.call_tool(call("double", n=4))

    assert asyncio.run(inside()) == 8


def test_a_tool_that_is_not_async_holds_up_nothing() -> None:
    free = threading.Event()

    def waits() -> bool:
        "Waits for the loop"
        return free.wait(20)

    async def both() -> Any:
        calling = asyncio.create_task(ToolKit(waits).acall_tool(call("waits")))
        await asyncio.sleep(0)
        free.set()
        return await calling

    assert asyncio.run(both()) is True
