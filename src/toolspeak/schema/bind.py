"""From checked JSON arguments to what a function is called with: Python values, by position and by name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import InvalidCall
from ..types import Problem
from .walk import escape
from .words import short

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
            if p.name in self.injected:
                value = injected.get(p.name, p.default)
            elif p.whole:
                value = dict(arguments)
            elif p.name in arguments:
                value = self._make(p.adapter, p.name, arguments[p.name], problems)
            elif p.positional or p.explicit:
                value = p.default() if p.explicit else p.default
            else:
                continue
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

    def _make(self, adapter: TypeAdapter[Any] | None, name: str, value: Any, problems: list[Problem]) -> Any:
        if adapter is None:
            return value
        from pydantic import ValidationError

        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            problems.extend(_problems(error, name))
            return None


def _problems(error: ValidationError, name: str) -> list[Problem]:
    found: list[Problem] = []
    for one in error.errors(include_url=False, include_context=False):
        path = "/" + "/".join(escape(str(part)) for part in (name, *one["loc"]))
        got = short(one["input"])
        found.append(Problem(path, one["msg"], got, f"the value at {path} is not accepted: {one['msg']}; got {got}"))
    return found
