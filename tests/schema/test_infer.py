"""Tools from Python: every kind of callable, every kind of annotation, every style of docstring."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import enum
import functools
import inspect
import json
import math
import subprocess
import sys
import typing
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional, Union

import pydantic
import pytest

from toolspeak.errors import DuplicateTool, InvalidCall, InvalidTool
from toolspeak.schema.check import check
from toolspeak.schema.infer import Injected, as_tool, as_tools, tool
from toolspeak.types import Tool


class Unit(enum.Enum):
    CELSIUS = "celsius"
    FAHRENHEIT = "fahrenheit"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0


class Pair(NamedTuple):
    left: int
    right: str = "r"


class Options(typing.TypedDict):
    size: int
    colour: typing.NotRequired[str]


class Node(pydantic.BaseModel):
    """A tree."""

    name: str
    children: list[Node] = []


@dataclasses.dataclass
class Chain:
    value: int
    next: Optional[Chain] = None  # noqa: UP045


def weather(city: str, unit: Literal["celsius", "fahrenheit"] = "celsius") -> str:
    """The weather in a city.

    Args:
        city: Where, for example
            Xiamen.
        unit: Of the temperature.
    """
    return f"{city} {unit}"


def built(fn: Any, arguments: dict[str, Any], **injected: Any) -> Any:
    """What the function gets for JSON arguments that pass the judge."""
    made = as_tool(fn)
    assert check(made, arguments) == []
    assert made.build is not None
    positional, named = made.build(arguments, injected)
    return made(*positional, **named)


def test_a_function_becomes_its_schema():
    assert as_tool(weather) == Tool(
        "weather",
        "The weather in a city.",
        {
            "type": "object",
            "properties": {
                "city": {"type": "string", "description": "Where, for example Xiamen."},
                "unit": {
                    "type": "string",
                    "enum": ["celsius", "fahrenheit"],
                    "description": "Of the temperature.",
                    "default": "celsius",
                },
            },
            "required": ["city"],
            "additionalProperties": False,
        },
    )


@pytest.mark.parametrize(
    ("annotation", "schema", "given", "expected"),
    [
        (str, {"type": "string"}, "a", "a"),
        (int, {"type": "integer"}, 3, 3),
        (float, {"type": "number"}, 3, 3.0),
        (bool, {"type": "boolean"}, True, True),
        (None, {"type": "null"}, None, None),
        (list[int], {"type": "array", "items": {"type": "integer"}}, [1], [1]),
        (list, {"type": "array", "items": {}}, [1, "a"], [1, "a"]),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, {"a": 1}, {"a": 1}),
        (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None, None),  # noqa: UP045
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "42", "42"),
        (Union[bool, str], {"anyOf": [{"type": "boolean"}, {"type": "string"}]}, "yes", "yes"),  # noqa: UP007
        (Literal["a", 1], {"enum": ["a", 1]}, 1, 1),
        (Unit, {"type": "string", "enum": ["celsius", "fahrenheit"]}, "celsius", Unit.CELSIUS),
        (Level, {"type": "integer", "enum": [1, 2]}, 2, Level.HIGH),
        (dt.date, {"type": "string", "format": "date"}, "2026-01-31", dt.date(2026, 1, 31)),
        (
            dt.datetime,
            {"type": "string", "format": "date-time"},
            "2026-01-31T09:30:00Z",
            dt.datetime(2026, 1, 31, 9, 30, tzinfo=dt.UTC),
        ),
        (dt.timedelta, {"type": "string", "format": "duration"}, "PT1H", dt.timedelta(hours=1)),
        (uuid.UUID, {"type": "string", "format": "uuid"}, str(uuid.UUID(int=7)), uuid.UUID(int=7)),
        (Path, {"type": "string", "format": "path"}, "/tmp/x", Path("/tmp/x")),
        (bytes, {"type": "string", "format": "binary"}, "ab", b"ab"),
        (set[int], {"type": "array", "items": {"type": "integer"}}, [1, 2], {1, 2}),
        (
            tuple[int, str],
            {"type": "array", "prefixItems": [{"type": "integer"}, {"type": "string"}], "minItems": 2, "maxItems": 2},
            [1, "a"],
            (1, "a"),
        ),
        (
            Annotated[int, pydantic.Field(ge=3, lt=9, description="A few.")],
            {"type": "integer", "minimum": 3, "exclusiveMaximum": 9, "description": "A few."},
            4,
            4,
        ),
        (Annotated[str, pydantic.Field(pattern="^a+$")], {"type": "string", "pattern": "^a+$"}, "aa", "aa"),
        (
            Point,
            {
                "type": "object",
                "properties": {"x": {"type": "integer"}, "y": {"type": "number", "default": 0}},
                "required": ["x"],
                "additionalProperties": False,
            },
            {"x": 1},
            Point(1),
        ),
        (
            Pair,
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string", "default": "r"}],
                "minItems": 1,
                "maxItems": 2,
            },
            [1],
            Pair(1),
        ),
        (
            Options,
            {
                "type": "object",
                "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}},
                "required": ["size"],
                "additionalProperties": False,
            },
            {"size": 1},
            {"size": 1},
        ),
        (
            list[Options] | None,
            {
                "anyOf": [
                    {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}},
                            "required": ["size"],
                            "additionalProperties": False,
                        },
                    },
                    {"type": "null"},
                ]
            },
            [{"size": 1, "colour": "red"}],
            [{"size": 1, "colour": "red"}],
        ),
        (Any, {"description": "any JSON value"}, {"a": [1]}, {"a": [1]}),
    ],
)
def test_an_annotation_and_its_value(annotation: Any, schema: Any, given: Any, expected: Any):
    def take(x: Any) -> Any:
        return x

    take.__annotations__ = {"x": annotation}
    assert as_tool(take).parameters["properties"]["x"] == schema
    got = built(take, {"x": given})
    assert got == expected
    assert type(got) is type(expected)


def test_a_decimal_is_a_number_or_its_text():
    def pay(amount: decimal.Decimal) -> decimal.Decimal:
        return amount

    assert built(pay, {"amount": "12.50"}) == decimal.Decimal("12.50")
    assert built(pay, {"amount": 3}) == 3
    assert check(as_tool(pay), {"amount": "abc"})


def test_recursive_types_keep_their_definition():
    def grow(node: Node, chain: Chain | None = None) -> Any:
        return node, chain

    made = as_tool(grow)
    assert set(made.parameters["$defs"]) == {"Node", "Chain"}
    assert "title" not in str(made.parameters)
    node, chain = built(
        grow, {"node": {"name": "a", "children": [{"name": "b"}]}, "chain": {"value": 1, "next": {"value": 2}}}
    )
    assert node.children[0].name == "b"
    assert chain == Chain(1, Chain(2))
    (problem,) = check(made, {"node": {"name": "a", "children": [{"nam": "b", "name": "b"}]}})
    assert problem.path == "/node/children/0/nam"


def test_a_parameter_may_be_called_anything():
    def odd(title: str, model_config: int, schema: str = "s", copy: bool = False, _under: int = 1) -> Any:
        return title, model_config, schema, copy, _under

    made = as_tool(odd)
    assert list(made.parameters["properties"]) == ["title", "model_config", "schema", "copy", "_under"]
    assert built(odd, {"title": "t", "model_config": 1}) == ("t", 1, "s", False, 1)


def test_a_function_without_types_takes_any_json():
    def anything(a, b=3):
        return a, b

    made = as_tool(anything)
    assert made.parameters["properties"] == {
        "a": {"description": "any JSON value"},
        "b": {"description": "any JSON value", "default": 3},
    }
    assert made.parameters["required"] == ["a"]
    assert built(anything, {"a": [1, {"x": None}]}) == ([1, {"x": None}], 3)
    assert [p.path for p in check(made, {"c": 1})] == ["/c", "/a"]


def test_no_parameters_at_all():
    def now() -> str:
        return "now"

    assert as_tool(now).parameters == {"type": "object", "properties": {}, "additionalProperties": False}
    assert built(now, {}) == "now"


def test_a_default_of_none_allows_null():
    def f(x: int = None) -> Any:  # type: ignore[assignment]  # noqa: RUF013
        return x

    assert as_tool(f).parameters["properties"]["x"] == {
        "anyOf": [{"type": "integer"}, {"type": "null"}],
        "default": None,
    }


def test_a_default_without_a_json_form_is_not_shown():
    def f(x: int = object()) -> Any:  # type: ignore[assignment]
        return x

    assert as_tool(f).parameters["properties"]["x"] == {"type": "integer"}
    assert "required" not in as_tool(f).parameters


@dataclasses.dataclass
class Patience:
    seconds: float = math.inf


def test_a_default_that_is_a_number_but_no_json_is_not_shown():
    def wait(limit: Patience, seconds: float = math.inf, steps: tuple[float, ...] = (math.nan,)) -> float:
        return seconds

    made = as_tool(wait)
    assert "default" not in json.dumps(made.parameters, allow_nan=False)
    assert made.parameters["required"] == ["limit"]


def test_field_as_a_default():
    def f(
        n: int = pydantic.Field(5, ge=1, description="How many."), m: str = pydantic.Field(description="Must.")
    ) -> Any:
        return n, m

    made = as_tool(f)
    assert made.parameters["required"] == ["m"]
    assert made.parameters["properties"]["n"]["minimum"] == 1
    assert built(f, {"m": "x"}) == (5, "x")


def test_positional_only_and_keyword_only_and_the_rest():
    def f(a: int, b: int = 2, /, c: int = 3, *, d: int = 4, **rest: int) -> Any:
        return a, b, c, d, rest

    made = as_tool(f)
    assert made.parameters["additionalProperties"] == {"type": "integer"}
    assert built(f, {"a": 1, "d": 5, "more": 6}) == (1, 2, 3, 5, {"more": 6})
    assert [p.path for p in check(made, {"a": 1, "more": "x"})] == ["/more"]


def test_builtins_that_tell_their_signature_work():
    assert built(math.sqrt, {"x": 9}) == 3.0


def test_unnamed_values_are_refused():
    def f(*args: int) -> None: ...

    with pytest.raises(InvalidTool, match="take a list instead") as caught:
        as_tool(f)
    assert caught.value.path == "/properties/args"
    assert caught.value.tool == "f"


def test_what_has_no_signature_asks_for_a_schema():
    with pytest.raises(InvalidTool, match="give a schema"):
        as_tool(min)


# ---------------------------------------------------------------- callables of every kind


class House:
    """A house."""

    def __init__(self, name: str) -> None:
        self.name = name

    @tool
    def light(self, on: bool) -> str:
        """Switches the light."""
        return f"{self.name}: {on}"

    @tool(name="heat_it")
    async def heat(self, degrees: float) -> str:
        return f"{self.name}: {degrees}"

    @classmethod
    @tool
    def kind(cls, of: int) -> str:
        return f"{cls.__name__} {of}"

    @tool
    @classmethod
    def kind_too(cls, of: int) -> str:
        return f"{cls.__name__} {of}"

    @staticmethod
    @tool
    def free(x: int) -> int:
        return x

    @tool
    @staticmethod
    def free_too(x: int) -> int:
        return x

    def plain(self, x: int) -> str:
        """Plain."""
        return f"{self.name}: {x}"

    def __call__(self, room: str) -> str:
        """Opens a room."""
        return f"{self.name}/{room}"


def test_methods():
    house = House("h")
    assert house.light(True) == "h: True"
    assert built(house.light, {"on": True}) == "h: True"
    assert as_tool(house.light).parameters["required"] == ["on"]
    assert as_tool(house.heat).name == "heat_it"
    assert built(house.plain, {"x": 1}) == "h: 1"
    assert (
        built(House.kind, {"of": 1})
        == built(house.kind_too, {"of": 1})
        == built(House.kind_too, {"of": 1})
        == "House 1"
    )
    assert built(House.free, {"x": 1}) == built(house.free_too, {"x": 1}) == 1


def test_a_method_without_its_instance_is_refused():
    with pytest.raises(InvalidTool, match=r"House\(\.\.\.\)\.light"):
        as_tool(House.light)
    with pytest.raises(InvalidTool, match=r"House\(\.\.\.\)\.plain"):
        as_tool(House.plain)


def test_callables_partials_lambdas_and_classes():
    made = as_tool(House("h"))
    assert (made.name, made.description) == ("House", "Opens a room.")
    assert built(House("h"), {"room": "r"}) == "h/r"

    partial = functools.partial(weather, unit="fahrenheit")
    assert list(as_tool(partial).parameters["properties"]) == ["city"]
    assert as_tool(partial).description == "The weather in a city."
    assert built(partial, {"city": "X"}) == "X fahrenheit"

    with pytest.raises(InvalidTool, match="name="):
        as_tool(lambda x: x)
    assert tool(lambda x: x, name="same").name == "same"
    assert built(Point, {"x": 1}) == Point(1)


def test_a_wrapped_function_keeps_its_signature():
    def logged(fn: Any) -> Any:
        @functools.wraps(fn)
        def inner(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return inner

    assert as_tool(logged(weather)).parameters == as_tool(weather).parameters
    assert built(logged(weather), {"city": "X"}) == "X celsius"


def test_types_that_are_local_to_a_function():
    class Local(pydantic.BaseModel):
        n: int

    @tool
    def f(x: Local, y: "list[Local] | None" = None) -> int:  # noqa: UP037
        return x.n

    assert built(f, {"x": {"n": 3}}) == 3


def test_an_annotation_that_names_nothing():
    def f(x: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    with pytest.raises(InvalidTool, match="Nowhere") as caught:
        as_tool(f)
    assert caught.value.path == "/properties/x"


def test_a_return_annotation_that_names_nothing_does_not_matter():
    def f(x: int) -> Nowhere: ...  # type: ignore[name-defined]  # noqa: F821

    assert as_tool(f).parameters["required"] == ["x"]


class Db:
    pass


def test_a_type_that_no_json_can_fill():
    def f(x: int, db: Db) -> None: ...

    with pytest.raises(InvalidTool, match="Injected") as caught:
        as_tool(f)
    assert caught.value.path == "/properties/db"

    def g(callback: typing.Callable[[], int]) -> None: ...

    with pytest.raises(InvalidTool) as caught:
        as_tool(g)
    assert caught.value.path == "/properties/callback"


def test_injected_parameters_are_in_no_schema():
    def f(x: int, db: Annotated[Db, Injected], trace: Annotated[str, Injected] = "t") -> Any:
        return x, db, trace

    made = as_tool(f)
    assert list(made.parameters["properties"]) == ["x"]
    assert made.injected == ("db", "trace")
    assert check(made, {"x": 1, "db": 2})[0].path == "/db"
    db = Db()
    assert built(f, {"x": 1}, db=db) == (1, db, "t")
    assert built(f, {"x": 1}, db=db, trace="u") == (1, db, "u")


def test_a_value_that_only_the_type_refuses():
    def even(x: int) -> int:
        if x % 2:
            raise ValueError("odd numbers are not for us")
        return x

    def f(x: Annotated[int, pydantic.AfterValidator(even)]) -> int:
        return x

    made = as_tool(f)
    assert check(made, {"x": 3}) == []
    assert made.build is not None
    with pytest.raises(InvalidCall, match="odd numbers") as caught:
        made.build({"x": 3}, {})
    assert caught.value.problems[0].path == "/x"
    assert caught.value.problems[0].received == "3"


# ---------------------------------------------------------------- the decorated function


def test_a_decorated_function_stays_one():
    @tool
    def add(a: int, b: int = 1) -> int:
        """Adds."""
        return a + b

    assert add(2) == 3
    assert str(inspect.signature(add)) == "(a: 'int', b: 'int' = 1) -> 'int'"
    assert (add.__name__, add.__doc__, inspect.getdoc(add)) == ("add", "Adds.", "Adds.")
    assert inspect.unwrap(add).__name__ == "add"
    assert functools.wraps(add)(lambda: 0).__doc__ == "Adds."
    assert (Tool.__doc__ or "").startswith("A function that a model may call")
    assert as_tool(add) is add


def test_options_of_the_decorator():
    @tool(name="plus", description="Adds two numbers.", timeout=2)
    def add(a: int, b: int) -> int:
        return a + b

    assert (add.name, add.description, add.timeout) == ("plus", "Adds two numbers.", 2)
    again = tool(add, name="sum")
    assert (again.name, again.description, again.timeout) == ("sum", "Adds two numbers.", 2)
    with pytest.raises(InvalidTool, match="positive"):
        tool(weather, timeout=0)
    with pytest.raises(InvalidTool, match="positive number of seconds; got '5'"):
        tool(weather, timeout=typing.cast("Any", "5"))
    with pytest.raises(InvalidTool, match="no name"):
        tool(weather, name="two words")
    with pytest.raises(InvalidTool, match="made from a function"):
        tool(5)  # type: ignore[arg-type]


def test_a_schema_given_for_a_function():
    made = tool(weather, parameters={"city": {"type": "str"}})
    assert made.parameters == {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    assert made.build is not None
    assert made.build({"city": "X"}, {}) == ([], {"city": "X"})
    with pytest.raises(InvalidTool, match="not in the function's signature") as caught:
        tool(weather, parameters={"properties": {"town": {"type": "string"}}})
    assert caught.value.path == "/properties/town"
    built_in = tool(max, name="max", parameters={"properties": {}})
    assert built_in.build is None


@pytest.mark.parametrize(
    "doc",
    [
        "Adds two numbers.\n\nMore of it.\n\nArgs:\n    a: The first.\n    b (int): The second.\n\nReturns:\n    The sum.",
        "Adds two numbers.\n\nMore of it.\n\nParameters\n----------\na : int\n    The first.\nb : int\n    The second.\n",
        "Adds two numbers.\n\nMore of it.\n\n:param a: The first.\n:param int b: The second.\n:returns: The sum.",
        "Adds two numbers.\n\nMore of it.\n\n@param a: The first.\n@param b: The second.\n",
    ],
    ids=["google", "numpy", "sphinx", "epydoc"],
)
def test_docstrings(doc: str):
    def add(a: int, b: int) -> int:
        return a + b

    add.__doc__ = doc
    made = as_tool(add)
    assert made.description == "Adds two numbers.\n\nMore of it."
    described = {name: schema.get("description") for name, schema in made.parameters["properties"].items()}
    assert described == {"a": "The first.", "b": "The second."}


def test_a_plain_docstring_and_none():
    def f() -> None:
        """Says: nothing - at all."""

    assert as_tool(f).description == "Says: nothing - at all."
    f.__doc__ = None
    assert as_tool(f).description == ""


# ---------------------------------------------------------------- dicts and lists

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


@pytest.mark.parametrize(
    "given",
    [
        {"type": "function", "function": {"name": "w", "description": "d", "parameters": SCHEMA, "strict": True}},
        {"type": "function", "name": "w", "description": "d", "parameters": SCHEMA},
        {"name": "w", "description": "d", "parameters": SCHEMA},
        {"name": "w", "description": "d", "input_schema": SCHEMA},
        {"name": "w", "description": "d", "inputSchema": SCHEMA, "annotations": {"readOnlyHint": True}},
    ],
)
def test_dicts_of_every_provider(given: dict[str, Any]):
    made = as_tool(given)
    assert made == Tool("w", "d", SCHEMA, strict="function" in given)
    assert made.parameters is not SCHEMA
    with pytest.raises(TypeError, match="schema alone"):
        made(city="x")


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({}, "/name"),
        ({"name": 5}, "/name"),
        ({"name": "two words"}, "/name"),
        ({"type": "function", "function": {"parameters": {}}}, "/function/name"),
        ({"type": "web_search"}, "/type"),
        ({"name": "w", "description": 5}, "/description"),
        ({"name": "w", "parameters": SCHEMA, "input_schema": SCHEMA}, ""),
        (5, ""),
        ("weather", ""),
    ],
)
def test_what_is_no_tool_is_refused(given: Any, path: str):
    with pytest.raises(InvalidTool) as caught:
        as_tool(given)
    assert caught.value.path == path


def test_as_tools():
    assert as_tools(None) is None
    assert as_tools([]) == ()
    assert [t.name for t in as_tools([weather, {"name": "w"}]) or ()] == ["weather", "w"]
    assert [t.name for t in as_tools(weather) or ()] == ["weather"]
    assert [t.name for t in as_tools(as_tool(weather)) or ()] == ["weather"]
    for wrong in ("weather", 5, [[weather]]):
        with pytest.raises(InvalidTool):
            as_tools(wrong)


def test_two_of_one_name_are_told_apart():
    def other(city: str) -> str:
        return city

    other.__name__ = "weather"
    with pytest.raises(DuplicateTool) as caught:
        as_tools([weather, other, {"name": "x"}])
    assert caught.value.name == "weather"
    message = str(caught.value)
    assert "test_infer.weather" in message
    assert "<locals>.other" in message


def test_importing_loads_no_third_party_library():
    code = (
        "import sys, toolspeak.toolbox, toolspeak.schema.infer, toolspeak.schema.coerce; "
        "print([m for m in ('pydantic', 'jsonschema_rs', 'docstring_parser', 'typing_extensions') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


class Tree(typing.TypedDict):
    value: int
    children: list[Tree]


@dataclasses.dataclass
class Holder:
    options: Options


def test_typed_dicts_wherever_they_stand():
    def f(tree: Tree, holder: Holder) -> Any:
        return tree, holder

    tree, holder = built(
        f, {"tree": {"value": 1, "children": [{"value": 2, "children": []}]}, "holder": {"options": {"size": 1}}}
    )
    assert tree["children"][0]["value"] == 2
    assert holder == Holder({"size": 1})
    assert {p.path for p in check(as_tool(f), {"tree": {"value": 1}, "holder": {"options": {}}})} == {
        "/holder/options/size",
        "/tree/children",
    }


def test_unpack_is_refused_with_its_reason():
    def f(**rest: typing.Unpack[Options]) -> None: ...

    with pytest.raises(InvalidTool, match="write its fields out"):
        as_tool(f)


def test_a_discriminated_union_carries_no_dangling_references():
    class Cat(pydantic.BaseModel):
        kind: Literal["cat"]

    class Dog(pydantic.BaseModel):
        kind: Literal["dog"]
        good: bool

    def f(pet: Annotated[Cat | Dog, pydantic.Field(discriminator="kind")]) -> Any:
        return pet

    assert "$defs" not in str(as_tool(f).parameters)
    assert built(f, {"pet": {"kind": "dog", "good": True}}) == Dog(kind="dog", good=True)


def test_a_generator_is_refused_with_what_to_do() -> None:
    def numbers() -> Iterator[int]:
        """Count."""
        yield 1

    async def later() -> AsyncIterator[int]:
        """Count."""
        yield 1

    for fn in (numbers, later):
        with pytest.raises(InvalidTool, match="Return a list"):
            as_tool(fn)
