"""Builds a value of a type from JSON that is still being written."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

from ..schema.adapter import adapter
from .json_passages import OPENER

LISTS = (list, tuple, set, frozenset)


def partial_data(text: str, argument: str) -> Any:
    """The JSON data at the first object or list in an incomplete text; None if there is none yet. With `argument`, the
    value of that key of the object."""
    from pydantic_core import from_json

    begins = OPENER.search(text)
    if begins is None:
        return None
    try:
        data = from_json(text[begins.start() :], allow_partial="trailing-strings")
    except ValueError:  # complete with something after it, or no JSON
        return None
    return cast("dict[str, Any]", data).get(argument, data) if isinstance(data, dict) else data


def partial_value(kind: Any, data: Any) -> Any:
    """A value of a type, as far as the data goes: missing fields are None, and nothing is validated.

    Models and dataclasses are built field by field, lists item by item. Any other value must be complete, or is None.
    """
    if isinstance(kind, Mapping) or kind is Any:
        return data
    if isinstance(data, list):
        return _items(kind, cast("list[Any]", data))
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return partial_value(arguments[0], data)
    if origin in (Union, types.UnionType):
        return next((value for one in arguments if (value := partial_value(one, data)) is not None), None)
    if not isinstance(data, dict):
        return _leaf(kind, data)
    record = cast("dict[str, Any]", data)
    if origin is dict:
        return {name: partial_value(arguments[1], one) for name, one in record.items()}
    return _record(kind, record) if isinstance(kind, type) else _leaf(kind, record)


def _items(kind: Any, data: list[Any]) -> Any:
    """A partial list: of the first list type in a union."""
    listed = next((one for one in (kind, *get_args(kind)) if get_origin(one) in LISTS), None)
    return _leaf(kind, data) if listed is None else [partial_value(get_args(listed)[0], one) for one in data]


def _record(kind: type[Any], data: dict[str, Any]) -> Any:
    from pydantic import BaseModel

    if issubclass(kind, BaseModel):
        rows = {name: (one.alias or name, one.annotation) for name, one in kind.model_fields.items()}
        value = {name: partial_value(type_, data.get(key)) for name, (key, type_) in rows.items()}
        return kind.model_construct(**value)
    hints = get_type_hints(kind)
    if not is_dataclass(kind):
        return {name: partial_value(hints.get(name, Any), one) for name, one in data.items()}
    value = object.__new__(kind)
    for one in fields(kind):
        object.__setattr__(value, one.name, partial_value(hints[one.name], data.get(one.name)))
    return value


def _leaf(kind: Any, data: Any) -> Any:
    """A value without parts; None if it is not yet of its type."""
    from pydantic import ValidationError

    try:
        return None if data is None else adapter(kind).validate_python(data)
    except ValidationError:
        return None
