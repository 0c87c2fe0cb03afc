"""Functions that take all their arguments as one dict, under a schema that is given: how many scripts write their tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pytest

import toolspeak as ts

NUMBERS = {"type": "int", "properties": {"a": {"type": "int"}, "b": {"type": "int"}}, "required": ["a", "b"]}
PLACE = {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]}


def get_current_weather(*args):
    return f"Sunny in {args[0].get('location')}"


def calculator(args):
    return sum(value for value in args.values() if isinstance(value, int))


def annotated(args: dict[str, Any]):
    return args


def by_mapping(args: Mapping[str, Any]):
    return args


def by_place(args: dict, /):
    return args


def with_more(database: Annotated[str, ts.Injected], args: dict):
    return {**args, "database": database}


class Held:
    def method(self, args: dict):
        return args


def test_the_functions_of_the_third_document() -> None:
    box = ts.Toolbox()
    box.define("get_current_weather", get_current_weather, parameters=PLACE)
    box.define("calculator", calculator, parameters=NUMBERS)
    assert box.call({"name": "get_current_weather", "arguments": {"location": "Xiamen"}}) == "Sunny in Xiamen"
    assert box.call({"name": "calculator", "arguments": {"a": 383, "b": 135721}}) == 136104
    with pytest.raises(ts.InvalidCall):
        box.call({"name": "calculator", "arguments": {"a": 1.5, "b": True}})


@pytest.mark.parametrize("fn", [annotated, by_mapping, by_place, Held().method])
def test_one_that_is_annotated_gets_a_single_argument_too(fn: Callable[..., Any]) -> None:
    box = ts.Toolbox()
    box.define("f", fn, parameters=PLACE)
    assert box.call({"name": "f", "arguments": {"location": "Oslo"}}) == {"location": "Oslo"}


def test_beside_what_is_injected() -> None:
    box = ts.Toolbox(inject={"database": "main"})
    box.define("f", with_more, parameters=PLACE)
    assert box.call({"name": "f", "arguments": {"location": "Oslo"}}) == {"location": "Oslo", "database": "main"}


def test_a_run_calls_them() -> None:
    box = ts.Toolbox()
    box.define("calculator", calculator, parameters=NUMBERS)
    model = ts.Scripted(['{"name": "calculator", "arguments": {"a": 1, "b": 2}}', "3"])
    assert ts.run("1 + 2?", tools=box, model=model).steps[0].results[0].value == 3


def city_alone(city):
    return city


def city_as_text(city: str):
    return city


@pytest.mark.parametrize(("fn", "schema"), [(city_alone, PLACE), (city_as_text, NUMBERS)])
def test_a_mistyped_name_is_no_dict(fn: Callable[..., Any], schema: dict[str, Any]) -> None:
    with pytest.raises(ts.InvalidTool, match="annotate it as dict"):
        ts.Toolbox().define("f", fn, parameters=schema)
