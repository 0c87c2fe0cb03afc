"""`ToolKit`, the interface of trivialai 0.7.18: functions are described by their signatures, and a call is a `tool-call`.

{"type": "tool-call", "tool": "screenshot", "args": {"url": "https://example.org/"}}
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypedDict, Unpack, cast

from ...drive import run_sync
from . import annotations
from .results import TransformError

_HEAD = """You have access to the following tools.

When you want to call a tool, respond with a single JSON object of the following form, and NOTHING else:

{shape}

Available tools:

"""
_TAIL = """Use the signature exactly. Required arguments must be present, and do not invent argument names \
that are not shown.

If you do not need to call a tool, respond normally instead of emitting a tool-call JSON object."""


class Evidence(TypedDict, total=False):
    """Details of a refused call; lists of names are sorted."""

    tool: str
    expected: Sequence[str]
    received: Sequence[str]
    missing: Sequence[str]
    unexpected: Sequence[str]
    argument: str
    expected_type: str
    received_type: str
    available_tools: Sequence[str]


class ToolCallError(TransformError):
    """A call that cannot be made: `code` is a short reason, `detail` a sentence for the model.

    Every field of Evidence is an attribute, None if it does not apply.
    """

    def __init__(self, code: str, detail: str | None = None, *, raw: Any = None, **evidence: Unpack[Evidence]) -> None:
        super().__init__(code, raw)
        self.code = code
        self.detail = detail or code
        self.tool = evidence.get("tool")
        self.expected = evidence.get("expected")
        self.received = evidence.get("received")
        self.missing = evidence.get("missing")
        self.unexpected = evidence.get("unexpected")
        self.argument = evidence.get("argument")
        self.expected_type = evidence.get("expected_type")
        self.received_type = evidence.get("received_type")
        self.available_tools = evidence.get("available_tools")

    def public_dict(self) -> dict[str, Any]:
        """Return the error as data for a model: type, code, message, and the available details."""
        known = ((name, getattr(self, name)) for name in Evidence.__annotations__)
        return {"type": "tool-error", "code": self.code, "message": self.detail} | {
            name: value for name, value in known if value is not None
        }


class ToolKit:
    """Functions by name, sync and async alike: described, checked, called. False if empty."""

    TOOL_CALL_TYPE = "tool-call"

    def __init__(self, *tools: Callable[..., Any]) -> None:
        self._tools: dict[str, Callable[..., Any]] = {}
        for fn in tools:
            if not getattr(fn, "__name__", None):
                raise ValueError(f"Tool {fn!r} has no __name__")
            self.add_tool(fn)

    def __len__(self) -> int:
        return len(self._tools)

    def has_tool(self, name: Any) -> bool:
        return isinstance(name, str) and name in self._tools

    def tool_names(self) -> list[str]:
        return sorted(self._tools)

    def add_tool(self, fn: Callable[..., Any], *, name: str | None = None) -> None:
        """Add a function. Raises ValueError if its name is taken or it has none."""
        name = _name_of(fn, name)
        if name in self._tools:
            raise ValueError(f"Duplicate tool name: {name!r}")
        self._tools[name] = fn

    def ensure_tool(self, fn: Callable[..., Any], *, name: str | None = None) -> None:
        """Add a function, replacing one with the same name."""
        self._tools[_name_of(fn, name)] = fn

    def remove_tool(self, name: str) -> None:
        if name not in self._tools:
            raise KeyError(f"No such tool: {name!r}")
        del self._tools[name]

    def to_tool_shape(self) -> dict[str, Any]:
        """Return the format of a call, as an example."""
        return {
            "type": self.TOOL_CALL_TYPE,
            "tool": f"<one of: {', '.join(self.tool_names())}>",
            "args": {"<param>": "<value>", "...": "..."},
        }

    def to_tool_prompt(self) -> str:
        """Return the prompt about the tools: the format of a call, and each tool's signature and first line of help."""
        if not self._tools:
            return ""
        shape = json.dumps(self.to_tool_shape(), indent=2)
        return _HEAD.format(shape=shape) + "".join(map(self._entry, self.tool_names())) + _TAIL

    def _entry(self, name: str) -> str:
        fn = self._tools[name]
        described = (fn.__doc__ or "").strip()
        help_line = f"  {described.splitlines()[0]}\n" if described else ""
        try:
            signature = annotations.format_signature(name, annotations.signature(fn))
        except (ValueError, TypeError):  # some builtins have no signature
            signature = f"{name}(...)"
        return f"{signature}\n{help_line}\n"

    def check_tool(self, tool_call: Any) -> dict[str, Any]:
        """Return the call unchanged, if its tool exists and its arguments match. Raises ToolCallError."""
        if not isinstance(tool_call, dict):
            came = type(tool_call).__name__
            detail = "Tool call must be a JSON object."
            raise ToolCallError("invalid-object-structure", detail, received_type=came, raw=tool_call)
        call = cast("dict[str, Any]", tool_call)
        if call.get("type") != self.TOOL_CALL_TYPE:
            detail = f"Tool call type must be {self.TOOL_CALL_TYPE!r}."
            raise ToolCallError("invalid-tool-call-type", detail, raw=call)
        name, here = call.get("tool"), self.tool_names()
        if not isinstance(name, str) or not name:
            detail = "Tool call must include a non-empty string `tool` name."
            raise ToolCallError("invalid-tool-name", detail, available_tools=here, raw=call)
        if name not in self._tools:
            detail = f"Unknown tool {name!r}."
            raise ToolCallError("no-such-tool", detail, tool=name, available_tools=here, raw=call)
        check_arguments(name, self._tools[name], call.get("args", {}), call)
        return call

    def call_tool(self, tool_call: Any) -> Any:
        """Check a call and run it. Waits for the result of an async tool, even inside a running loop.

        Raises ToolCallError for an invalid call; exceptions of the tool are passed on.
        """
        fn, positional, keywords = self._bound(tool_call)
        result = fn(*positional, **keywords)
        return run_sync(_outcome(result)) if inspect.isawaitable(result) else result

    async def acall_tool(self, tool_call: Any) -> Any:
        """`call_tool` for async code; a sync tool runs in a thread and blocks nothing."""
        fn, positional, keywords = self._bound(tool_call)
        if inspect.iscoroutinefunction(fn):
            return await fn(*positional, **keywords)
        result = await asyncio.to_thread(fn, *positional, **keywords)
        return await result if inspect.isawaitable(result) else result

    def _bound(self, tool_call: Any) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
        call = self.check_tool(tool_call)
        fn = self._tools[call["tool"]]
        try:
            return fn, *annotations.bound(annotations.signature(fn), call.get("args", {}))
        except (ValueError, TypeError):  # no signature to go by
            return fn, (), call.get("args", {})


async def _outcome(awaitable: Awaitable[Any]) -> Any:
    return await awaitable


def check_arguments(
    name: str, fn: Callable[..., Any], args: Any, raw: Any, types: Mapping[str, Any] | None = None
) -> None:
    """Raise ToolCallError unless `args` is a dict that the function accepts: names first, then types.

    `types` take precedence over the function's own annotations.
    """
    try:
        sig = annotations.signature(fn)
    except (ValueError, TypeError):  # some builtins have no signature and check the arguments themselves
        return
    parameters = annotations.arguments(sig)
    about: Evidence = {"tool": name, "expected": sorted(parameters)}
    if not isinstance(args, dict):
        detail = f"Arguments for {name} must be a JSON object."
        raise ToolCallError("invalid-tool-args", detail, raw=raw, **about | {"received_type": type(args).__name__})
    arguments = cast("dict[Any, Any]", args)
    about["received"] = sorted(map(str, arguments))
    any_name = annotations.takes_any_name(sig) and all(isinstance(key, str) for key in arguments)
    _check_names(parameters, arguments, about, raw, any_name=any_name)
    for key, parameter in parameters.items():
        if types and key in types:
            parameter = parameter.replace(annotation=types[key])
        if key in arguments and not annotations.accepts(parameter, arguments[key]):
            wanted, came = annotations.format_type(parameter.annotation), type(arguments[key]).__name__
            detail = f"Argument {key!r} for {name} must be {wanted}; received {came}."
            about |= {"argument": key, "expected_type": wanted, "received_type": came}
            raise ToolCallError("invalid-tool-arg-type", detail, raw=raw, **about)


def _check_names(
    parameters: Mapping[str, inspect.Parameter],
    arguments: Mapping[Any, Any],
    about: Evidence,
    raw: Any,
    *,
    any_name: bool,
) -> None:
    """Raise ToolCallError for unknown arguments, then for missing ones."""
    unexpected = sorted(str(key) for key in arguments if key not in parameters)
    if unexpected and not any_name:
        detail = _list_names("Unexpected", unexpected, about)
        raise ToolCallError("unexpected-tool-arg", detail, raw=raw, **about | {"unexpected": unexpected})
    missing = sorted(key for key, p in parameters.items() if annotations.is_required(p) and key not in arguments)
    if missing:
        detail = _list_names("Missing required", missing, about)
        raise ToolCallError("missing-tool-arg", detail, raw=raw, **about | {"missing": missing})


def _list_names(what: str, names: Sequence[str], about: Evidence) -> str:
    plural = "s" if len(names) > 1 else ""
    listed, expected = ", ".join(map(repr, names)), ", ".join(about.get("expected", ())) or "(none)"
    return f"{what} argument{plural} for {about.get('tool')}: {listed}. Expected arguments: {expected}."


def _name_of(fn: Callable[..., Any], name: str | None) -> str:
    name = name or getattr(fn, "__name__", None)
    if not name:
        raise ValueError(f"Tool {fn!r} has no __name__ and no explicit name")
    return name
