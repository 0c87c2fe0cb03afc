"""Tools from what people have: functions, methods, partials, callables, and the dicts of every provider.

A function's signature becomes the JSON Schema of its arguments (pydantic makes it), its docstring the
descriptions. What cannot be offered to a model is refused here, where it is defined.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, cast, overload

from ..errors import DuplicateTool, InvalidTool
from ..types import Tool
from .bind import Binding
from .bind import Injected as Injected
from .docstring import read_docstring
from .judge import judge
from .repair import repair

P = ParamSpec("P")
R = TypeVar("R")
AnyTool = Tool[..., Any]

_NAME = re.compile(r"[^\W\d][\w.\-/:]{0,127}")


@overload
def tool(fn: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    fn: Callable[P, R],
    /,
    *,
    name: str | None = ...,
    description: str | None = ...,
    parameters: Mapping[str, Any] | None = ...,
    timeout: float | None = ...,
    show_errors: bool | None = ...,
) -> Tool[P, R]: ...
@overload
def tool(
    fn: None = None,
    /,
    *,
    name: str | None = ...,
    description: str | None = ...,
    parameters: Mapping[str, Any] | None = ...,
    timeout: float | None = ...,
    show_errors: bool | None = ...,
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    fn: Any = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    show_errors: bool | None = None,
) -> Any:
    """A tool from a function; also a decorator, with or without parentheses.

    `name` and `description` stand in for the function's own and its docstring's. With `parameters`, a JSON
    Schema, the function receives the arguments by name as JSON gave them; without it the schema comes
    from the signature and the arguments arrive as the annotated types. `timeout` is in seconds.
    With `show_errors=False` a model reads that the tool failed, and not what its function raised. Raises InvalidTool where no schema can be made of it.
    """
    if fn is None:
        return functools.partial(
            _decorate,
            name=name,
            description=description,
            parameters=parameters,
            timeout=timeout,
            show_errors=show_errors,
        )
    return _decorate(
        fn, name=name, description=description, parameters=parameters, timeout=timeout, show_errors=show_errors
    )


def as_tool(x: Any) -> AnyTool:
    """The tool that `x` is or describes.

    `x` is a Tool, a function of any kind, or a dict as OpenAI (wrapped or bare), Anthropic (`input_schema`) or
    MCP (`inputSchema`) write them. Raises InvalidTool.
    """
    if isinstance(x, types.MethodType) and isinstance(cast("Any", x).__func__, Tool):
        x = cast("AnyTool", x.__func__).__get__(x.__self__)
    if isinstance(x, Mapping):
        return _from_dict(cast("Mapping[str, Any]", x))
    if not callable(x):
        raise InvalidTool(
            f"a tool is a function, a Tool or a dict with a name and parameters; got {type(x).__name__}: {_short(x)}"
        )
    made = cast("AnyTool", x) if isinstance(x, Tool) else _decorate(x)
    owner = made.build.method_of if isinstance(made.build, Binding) else ""
    if owner and isinstance(made.function, types.FunctionType):
        raise InvalidTool(
            f"the tool {made.name!r} is a method of {owner}: pass an instance's, {owner}(...).{made.name}",
            tool=made.name,
        )
    judge(made.parameters, made.name)
    return made


def as_tools(xs: Any) -> tuple[AnyTool, ...] | None:
    """The tools that `xs` holds, in order; None stays None. Two of one name are a DuplicateTool.

    `xs` is a list of whatever `as_tool` takes, a Toolbox, or a single tool.
    """
    if xs is None:
        return None
    if isinstance(xs, (str, bytes)):
        raise InvalidTool(f"tools are a list of functions, Tools or dicts; got the text {_short(xs)}")
    single = isinstance(xs, (Tool, Mapping)) or (callable(xs) and not isinstance(xs, Iterable))
    listed: Iterable[Any] = [xs] if single else _listed(xs)
    tools = tuple(as_tool(x) for x in listed)
    unique(tools)
    return tools


def unique(tools: Iterable[AnyTool]) -> dict[str, AnyTool]:
    """The tools by name; DuplicateTool, which tells where both come from, when two share one."""
    by_name: dict[str, AnyTool] = {}
    for one in tools:
        if one.name in by_name:
            first, second = origin(by_name[one.name]), origin(one)
            raise DuplicateTool(
                f"two tools are named {one.name!r}: {first} and {second}. Rename one, with "
                "ts.tool(fn, name=...) or Toolbox(...).prefix(...)",
                name=one.name,
            )
        by_name[one.name] = one
    return by_name


def origin(one: AnyTool) -> str:
    """Where a tool comes from, for messages: its function's full name, or that it is a schema alone."""
    function = one.function
    if function is None:
        return "a schema without a function"
    inner = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)  # pyright: ignore[reportUnknownArgumentType,reportUnknownMemberType]
    where = f"{getattr(inner, '__module__', '?')}.{getattr(inner, '__qualname__', type(inner).__qualname__)}"
    code = getattr(inner, "__code__", None)
    return f"{where} (line {code.co_firstlineno} of {code.co_filename})" if code else where


def _listed(xs: Any) -> Iterable[Any]:
    if not isinstance(xs, Iterable):
        raise InvalidTool(f"tools are a list of functions, Tools or dicts; got {type(xs).__name__}: {_short(xs)}")
    return cast("Iterable[Any]", xs)


def _decorate(
    fn: Any,
    *,
    name: str | None = None,
    description: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    show_errors: bool | None = None,
) -> AnyTool:
    if isinstance(fn, Tool):
        base = cast("AnyTool", fn)
        if show_errors is not None:
            base = replace(base, show_errors=show_errors)
        if parameters is not None and base.function is not None:
            return _decorate(
                base.function, name=name or base.name, description=description or base.description,
                parameters=parameters, timeout=timeout or base.timeout, show_errors=base.show_errors,
            )  # fmt: skip
        return replace(
            base,
            name=_named(name, "") if name is not None else base.name,
            description=base.description if description is None else description,
            timeout=base.timeout if timeout is None else timeout,
        )
    if not callable(fn) and not isinstance(fn, classmethod):
        raise InvalidTool(f"a tool is made from a function; got {type(fn).__name__}: {_short(fn)}")
    if timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InvalidTool(f"a timeout is a positive number of seconds; got {timeout!r}")
    from .signature import fit, infer

    function = cast("Any", fn)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTool(f"a tool returns its result; {_own_name(function)} yields. Return a list of what it yields")
    title = _named(name, _own_name(function))
    said, of_parameters = read_docstring(_doc(function))
    if parameters is not None:
        schema, binding = fit(function, title, repair(parameters, title))
    else:
        schema, binding = infer(function, title, of_parameters)
    injected = tuple(p.name for p in binding.parameters if p.name in binding.injected) if binding else ()
    judge(schema, title)
    return Tool(
        title,
        said if description is None else description,
        schema,
        function,
        injected,
        timeout,
        binding,
        show_errors=show_errors is not False,
    )


def _from_dict(given: Mapping[str, Any]) -> AnyTool:
    inner: Mapping[str, Any] = given
    at = ""
    if isinstance(given.get("function"), Mapping):
        inner, at = given["function"], "/function"
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        kind = given.get("type")
        if kind not in (None, "function", "custom"):
            raise InvalidTool(f"a tool of the type {kind!r} runs at its provider and cannot be offered", path="/type")
        raise InvalidTool(f"a tool needs a name; got {_short(dict(given))}", path=f"{at}/name")
    said = inner.get("description")
    if said is not None and not isinstance(said, str):
        raise InvalidTool(
            f"the description of the tool {name!r} must be text; got {_short(said)}",
            tool=name,
            path=f"{at}/description",
        )
    found = [key for key in ("parameters", "input_schema", "inputSchema") if inner.get(key) is not None]
    if len(found) > 1:
        raise InvalidTool(f"the tool {name!r} has its schema twice: {' and '.join(found)}", tool=name, path=at)
    schema = repair(inner[found[0]] if found else None, name)
    made: AnyTool = Tool(_named(name, ""), said or "", schema, strict=inner.get("strict") is True)
    judge(made.parameters, name)
    return made


def _named(given: str | None, own: str) -> str:
    name = own if given is None else given
    if not _NAME.fullmatch(name):
        hint = "give it one: ts.tool(fn, name=...)" if given is None else "letters, digits, _ - . / : may be in it"
        raise InvalidTool(f"{name!r} is no name for a tool; {hint}", tool=name, path="/name")
    return name


def _own_name(fn: Any) -> str:
    while isinstance(fn, functools.partial):
        fn = cast("functools.partial[Any]", fn).func
    return str(getattr(fn, "__name__", None) or type(fn).__name__)


def _doc(fn: Any) -> str | None:
    while isinstance(fn, functools.partial):
        fn = cast("functools.partial[Any]", fn).func
    if inspect.isroutine(fn) or inspect.isclass(fn) or isinstance(fn, (staticmethod, classmethod)):
        return fn.__doc__
    return getattr(type(fn).__call__, "__doc__", None) or type(fn).__doc__


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
