"""From checked JSON arguments to what a function is called with: Python values, by position and by name."""

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
    """Marks a parameter that the application fills in and the model never sees: `Annotated[Db, Injected]`."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a function: how its value is made, and what stands in for it when none is given."""

    name: str
    adapter: TypeAdapter[Any] | None
    default: Any = EMPTY
    positional: bool = False
    """It can only be given by position."""
    explicit: bool = False
    """The default in the signature is not the value itself (pydantic's `Field(...)`): it has to be passed."""
    whole: bool = False
    """It takes all arguments at once, as a dict."""


@dataclass(frozen=True, slots=True)
class Binding:
    """The parameters of one function. Called with JSON arguments that the judge has passed, and injected values.

    Raises InvalidCall where a type refuses a value that its JSON Schema allows (a validator of the user's own).
    """

    tool: str
    parameters: tuple[Parameter, ...]
    injected: frozenset[str]
    rest: TypeAdapter[Any] | None = None
    """Makes the values of `**kwargs`; None leaves them as they are."""
    takes_rest: bool = False
    method_of: str = ""
    """The class whose method this is: its function has to be bound first."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The injected parameters for which nothing stands in."""
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
        """What the parameter gets; EMPTY where the function's own default is left to it."""
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
            from pydantic import ValidationError  # which is a ValueError: importing it takes longer than a check

            if not isinstance(error, ValidationError):
                raise
            problems.extend(_problems(error, name))
            return None


def _problems(error: ValidationError, name: str) -> list[Problem]:
    found: list[Problem] = []
    for one in error.errors(include_url=False, include_context=False):
        path = "/" + "/".join(escape(str(part)) for part in (name, *one["loc"]))
        got = short(one["input"])
        found.append(Problem(path, one["msg"], got, f"the value at {path} is not accepted: {one['msg']}; got {got}"))
    return found
