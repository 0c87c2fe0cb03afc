"""Converts checked JSON arguments to Python values for a function's parameters, by position and by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvalidCall
from ..types import Problem
from .phrases import short
from .walk import escape

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

EMPTY: Any = inspect.Parameter.empty


class Injected:
    """Marks a parameter that the application supplies and the model never sees: `Annotated[Db, Injected]`."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function: how its value is made from JSON, and its default."""

    name: str
    adapter: TypeAdapter[Any] | None
    default: Any = EMPTY
    positional: bool = False
    """It can only be passed by position."""
    explicit: bool = False
    """The default must be passed explicitly: in the signature it is a marker (pydantic's `Field(...)`), not the value.
    """
    whole: bool = False
    """It gets all arguments at once, as a dict."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The parameters of one function. Called with JSON arguments that are already validated, and injected values.

    Raises InvalidCall if a type rejects a value that its JSON Schema allows (a validator that the user wrote).
    """

    tool: str
    parameters: tuple[Parameter, ...]
    injected: frozenset[str]
    rest: TypeAdapter[Any] | None = None
    """Converts the values of `**kwargs`; None leaves them as they are."""
    takes_rest: bool = False
    method_of: str = ""
    """The class of an unbound method, which must be bound before it can be called."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The injected parameters without a default."""
        return tuple(p.name for p in self.parameters if p.name in self.injected and p.default is EMPTY)

    def __call__(self, arguments: Mapping[str, Any], injected: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        positional: list[Any] = []
        named: dict[str, Any] = {}
        problems: list[Problem] = []
        for p in self.parameters:
            value = self._value(p, arguments, injected, problems)
            if p.positional:
                positional.append(value)
            elif value is not EMPTY:
                named[p.name] = value
        if self.takes_rest:
            known = {p.name for p in self.parameters}
            for name in arguments.keys() - known:
                named[name] = self._make(self.rest, name, arguments[name], problems)
        if problems:
            raise InvalidCall(
                f"the arguments of {self.tool!r} do not fit: {'; '.join(p.message for p in problems)}",
                problems=problems,
            )
        return positional, named

    def _value(
        self, p: Parameter, arguments: Mapping[str, Any], injected: Mapping[str, Any], problems: list[Problem]
    ) -> Any:
        """The parameter's value; EMPTY if the function's own default applies."""
        if p.name in self.injected:
            return injected.get(p.name, p.default)
        if p.whole:
            return dict(arguments)
        if p.name in arguments:
            return self._make(p.adapter, p.name, arguments[p.name], problems)
        if p.explicit:
            return p.default()
        return p.default if p.positional else EMPTY

    def _make(self, adapter: TypeAdapter[Any] | None, name: str, value: Any, problems: list[Problem]) -> Any:
        if adapter is None:
            return value
        try:
            return adapter.validate_python(value)
        except ValueError as error:
            from pydantic import ValidationError  # imported only on a ValueError: the import takes longer than a check

            if not isinstance(error, ValidationError):
                raise
            problems.extend(_problems(error, name))
            return None


def _problems(error: ValidationError, name: str) -> list[Problem]:
    problems: list[Problem] = []
    for one in error.errors(include_url=False, include_context=False):
        path = "/" + "/".join(escape(str(part)) for part in (name, *one["loc"]))
        got = short(one["input"])
        problems.append(Problem(path, one["msg"], got, f"the value at {path} is not accepted: {one['msg']}; got {got}"))
    return problems
