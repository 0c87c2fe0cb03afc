"""`Tools`, the interface of the article that introduced trivialai: functions are listed with their types, and a call has
`functionName` and `args`.

    {"functionName": "screenshot", "args": {"url": "https://example.org/"}}

A model can call the functions of the `Tools` that it is given, and no others.
"""

from __future__ import annotations

from builtins import list as listing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from . import annotations
from .answer_values import loadch
from .llm import LLM, generate_checked
from .results import LLMResult, TransformError
from .toolkit import ToolCallError, check_arguments

_SYSTEM = (
    "You are a computer specialist. Your job is translating client requests into tool calls. Your client has "
    "sent a request to use a tool; return the function call corresponding to the request and no other "
    'commentary. Return a value of type `{"functionName" :: string, "args" :: {arg_name: arg value} }`. '
    "You have access to the tools: %s."
)


@dataclass(frozen=True, slots=True)
class _Definition:
    type: Mapping[str, Any]
    description: str
    function: Callable[..., Any]


class Environment(Protocol):
    """What `generate_tool_call` needs from a set of tools."""

    def list(self) -> Any: ...

    def transform(self, resp: Any) -> Any: ...


class Tools:
    """Functions by name. A call is run only if it names one of them, with arguments that it accepts."""

    def __init__(self) -> None:
        self._env: dict[str, _Definition] = {}

    def define(
        self,
        name: str | Callable[..., Any],
        fn: Callable[..., Any] | str | None = None,
        type: Mapping[str, Any] | None = None,  # noqa: A002 - the name that programs use
        description: str | None = None,
    ) -> bool:
        """Add a function: `define("shot", take_shot)`, or the package's `define(take_shot, "shot")`.

        Returns False, without any change, if the name is taken. AssertionError if a parameter has no annotation and no
        `type` is given for it, or if there is neither a docstring nor a `description`.
        """
        function, label, article = _in_order(name, fn)
        types = dict(type) if type is not None else _annotated(function)
        if types is None:
            raise AssertionError(
                "Interned functions must be annotated"
                if article
                else "either annotate the function or pass in a type dictionary for its inputs"
            )
        described = description or getattr(function, "__doc__", None)
        if not described:
            raise AssertionError(
                "Interned functions must have docstrings"
                if article
                else "either document the function or pass in a description"
            )
        if label in self._env:
            return False
        self._env[label] = _Definition(types, described, function)
        return True

    def list(self) -> listing[dict[str, Any]]:
        """Return each tool's name, types (as in Python) and description."""
        return [{"name": k, "type": dict(v.type), "description": v.description} for k, v in self._env.items()]

    def check(self, tool_call: Any) -> dict[str, Any]:
        """Return the call unchanged if it can be run. Raises ToolCallError."""
        if not isinstance(tool_call, dict):
            detail = "Tool call must be a JSON object."
            came = type(tool_call).__name__
            raise ToolCallError("invalid-object-structure", detail, received_type=came, raw=tool_call)
        call = cast("dict[str, Any]", tool_call)
        if "functionName" not in call or "args" not in call:
            detail = "Tool call must have the keys `functionName` and `args`."
            raise ToolCallError("invalid-object-structure", detail, raw=call)
        name, here = call["functionName"], sorted(self._env)
        if not isinstance(name, str) or name not in self._env:
            detail = f"Unknown tool {name!r}."
            raise ToolCallError("no-such-tool", detail, tool=str(name), available_tools=here, raw=call)
        check_arguments(name, self._env[name].function, call["args"], call, self._env[name].type)
        return call

    def validate(self, tool_call: Any) -> bool:
        """Whether a call can be run: its tool exists, accepts these arguments and requires no others."""
        try:
            self.check(tool_call)
        except ToolCallError:
            return False
        return True

    def transform(self, resp: Any) -> tuple[dict[str, Any], bool] | tuple[None, bool]:
        """Return the call in a text, and True; or None and False."""
        try:
            return self.check(loadch(resp)), True
        except TransformError:
            return None, False

    def call(self, tool_call: Any) -> Any:
        """Return the result of a call, or None without running anything if it is invalid: see `validate`."""
        if not self.validate(tool_call):
            return None
        function = self._env[tool_call["functionName"]].function
        positional, keywords = annotations.bound(annotations.signature(function), tool_call["args"])
        return function(*positional, **keywords)


def generate_tool_call(tools: Environment, llm: LLM, prompt: str, retries: int = 5) -> LLMResult:
    """Return the call for a request as `content`; None if no attempt gave a valid one."""
    return generate_checked(llm, tools.transform, _SYSTEM % tools.list(), prompt, retries)


generateToolCall = generate_tool_call  # noqa: N816 - as the article spells it


def _in_order(name: Any, fn: Any) -> tuple[Callable[..., Any], str, bool]:
    """Return the function, its name, and whether they came in the article's order."""
    if isinstance(name, str) and callable(fn):
        return fn, name, True
    if callable(name) and (fn is None or isinstance(fn, str)):
        return name, fn or getattr(name, "__name__", type(name).__name__), False
    raise TypeError(f"define takes a name and a function, not {type(name).__name__} and {type(fn).__name__}")


def _annotated(fn: Callable[..., Any]) -> dict[str, Any] | None:
    """Return the types of a function's parameters, or None if one has no annotation."""
    try:
        parameters = annotations.arguments(annotations.signature(fn))
    except (ValueError, TypeError):  # some builtins have no signature
        return None
    if any(p.annotation is p.empty for p in parameters.values()):
        return None
    return {name: p.annotation for name, p in parameters.items()}
