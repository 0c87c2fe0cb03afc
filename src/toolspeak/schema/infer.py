"""Makes tools from functions, methods, partials, callables, and the tool dicts of every provider.

A function's signature becomes the JSON Schema of its arguments (by pydantic), and its docstring the descriptions.
Whatever cannot be offered to a model is rejected here, where it is defined.
"""

from __future__ import annotations

import functools
import inspect
import re
import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar, cast, get_args, overload

from ..errors import DuplicateTool, InvalidTool
from ..types import Origin, Tool, ToolEffect
from .bind import Binding, Injected as Injected
from .docstring import read_docstring
from .repair_schema import repair
from .validators import judge

P = ParamSpec("P")
R = TypeVar("R")
AnyTool = Tool[..., Any]

EFFECTS = get_args(ToolEffect)
ORIGINS = get_args(Origin)
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
    effect: ToolEffect | None = ...,
    reads: Origin | None = ...,
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
    effect: ToolEffect | None = ...,
    reads: Origin | None = ...,
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
    effect: ToolEffect | None = None,
    reads: Origin | None = None,
) -> Any:
    """Makes a tool from a function. Also a decorator, with or without parentheses.

    `name` and `description` replace the function's name and docstring. With `parameters`, a JSON Schema, the function
    gets the JSON arguments by name; otherwise the schema is inferred from the signature, and arguments are converted
    to the annotated types. `timeout` is in seconds. With `show_errors=False` a model reads only that the tool failed,
    not the function's exception. `effect` ("read", "write" or "destructive"; default "write") and `reads` ("trusted"
    or "untrusted"; default "trusted") are for policies; "untrusted" means that strangers wrote what the tool returns.
    Raises InvalidTool if no schema can be made.
    """
    labels = {"effect": one_of("effect", effect, EFFECTS), "reads": one_of("reads", reads, ORIGINS)}
    more = {key: value for key, value in labels.items() if value is not None}

    def make(function: Any) -> AnyTool:
        plain = _decorate(
            function,
            name=name,
            description=description,
            parameters=parameters,
            timeout=timeout,
            show_errors=show_errors,
        )
        return replace(plain, **more) if more else plain

    return make if fn is None else make(fn)


def one_of(what: str, value: str | None, words: tuple[str, ...]) -> str | None:
    """The value, if it is None or one of the words. Raises InvalidTool otherwise."""
    if value is None or value in words:
        return value
    raise InvalidTool(f"{what}: expected {' or '.join(words)}, got {value!r:.80}", path=f"/{what}")


def as_tool(x: Any) -> AnyTool:
    """Converts `x` to a Tool.

    `x` is a Tool, a function of any kind, or a dict in the format of OpenAI (wrapped or bare), Anthropic
    (`input_schema`) or MCP (`inputSchema`); its `input_examples` are arguments of good calls. Raises InvalidTool.
    """
    if isinstance(x, types.MethodType) and isinstance(cast("Any", x).__func__, Tool):
        x = cast("AnyTool", x.__func__).__get__(x.__self__)
    if isinstance(x, Tool):
        tool = cast("AnyTool", x)
    elif isinstance(x, Mapping):
        return _from_dict(cast("Mapping[str, Any]", x))
    elif callable(x):
        tool = _decorate(x)
    else:
        raise InvalidTool(
            f"a tool is a function, a Tool or a dict with a name and parameters; got {type(x).__name__}: {x!r:.80}"
        )
    owner = tool.build.method_of if isinstance(tool.build, Binding) else ""
    if owner and isinstance(tool.function, types.FunctionType):
        raise InvalidTool(
            f"the tool {tool.name!r} is a method of {owner}: pass an instance's, {owner}(...).{tool.name}",
            tool=tool.name,
        )
    judge(tool.parameters, tool.name)
    return tool


def as_tools(xs: Any) -> tuple[AnyTool, ...] | None:
    """Converts `xs` to tools, in order; None stays None. Raises DuplicateTool for two of one name.

    `xs` is a list of whatever `as_tool` accepts, a Toolbox, or a single tool.
    """
    if xs is None:
        return None
    if isinstance(xs, (str, bytes)):
        raise InvalidTool(f"tools are a list of functions, Tools or dicts; got the text {xs!r:.80}")
    single = isinstance(xs, (Tool, Mapping)) or (callable(xs) and not isinstance(xs, Iterable))
    listed: Iterable[Any] = [xs] if single else _listed(xs)
    tools = tuple(as_tool(x) for x in listed)
    unique(tools)
    return tools


def unique(tools: Iterable[AnyTool]) -> dict[str, AnyTool]:
    """The tools by name. Raises DuplicateTool, which says where both come from, if two have the same name."""
    by_name: dict[str, AnyTool] = {}
    for one in tools:
        if one.name in by_name:
            first, second = origin(by_name[one.name]), origin(one)
            raise DuplicateTool(
                f"two tools are named {one.name!r}: {first} and {second}. Rename one, with "
                "ts.tool(fn, name=...) or Toolbox(...).prefix(...); on the command line, offer one of them: FILE:NAME",
                name=one.name,
            )
        by_name[one.name] = one
    return by_name


def origin(one: AnyTool) -> str:
    """Where a tool comes from, for messages: the qualified name of its function, or that it is only a schema."""
    function = one.function
    if function is None:
        return "a schema without a function"
    inner = inspect.unwrap(function.func if isinstance(function, functools.partial) else function)  # pyright: ignore[reportUnknownArgumentType,reportUnknownMemberType]
    where = f"{getattr(inner, '__module__', '?')}.{getattr(inner, '__qualname__', type(inner).__qualname__)}"
    code = getattr(inner, "__code__", None)
    return f"{where} (line {code.co_firstlineno} of {code.co_filename})" if code else where


def _listed(xs: Any) -> Iterable[Any]:
    if not isinstance(xs, Iterable):
        raise InvalidTool(f"tools are a list of functions, Tools or dicts; got {type(xs).__name__}: {xs!r:.80}")
    return cast("Iterable[Any]", xs)


def _redecorate(
    base: AnyTool,
    name: str | None,
    description: str | None,
    parameters: Mapping[str, Any] | None,
    timeout: float | None,
) -> AnyTool:
    """A copy of a tool with other details; None keeps the present one."""
    if parameters is not None and base.function is not None:
        again = _decorate(
            base.function, name=name or base.name, description=description or base.description,
            parameters=parameters, timeout=timeout or base.timeout, show_errors=base.show_errors,
        )  # fmt: skip
        return replace(again, effect=base.effect, reads=base.reads)
    return replace(
        base,
        name=_named(name, "") if name is not None else base.name,
        description=base.description if description is None else description,
        timeout=base.timeout if timeout is None else timeout,
    )


def _check_function(fn: Any) -> None:
    if not callable(fn) and not isinstance(fn, classmethod):
        raise InvalidTool(f"a tool is made from a function; got {type(fn).__name__}: {fn!r:.80}")
    function = cast("Any", fn)
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise InvalidTool(f"a tool returns its result; {_own_name(function)} yields. Return a list of what it yields")


def _check_timeout(timeout: Any) -> None:
    if timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0):
        raise InvalidTool(f"a timeout is a positive number of seconds; got {timeout!r}")


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
        return _redecorate(base, name, description, parameters, timeout)
    _check_function(fn)
    _check_timeout(timeout)
    from .signature import fit, infer

    title = _named(name, _own_name(fn))
    docstring, of_parameters = read_docstring(_doc(fn))
    if parameters is not None:
        schema, binding = fit(fn, title, repair(parameters, title))
    else:
        schema, binding = infer(fn, title, of_parameters)
    injected = tuple(p.name for p in binding.parameters if p.name in binding.injected) if binding else ()
    judge(schema, title)
    return Tool(
        title,
        docstring if description is None else description,
        schema,
        fn,
        injected,
        timeout,
        binding,
        show_errors=show_errors is not False,
    )


def _only_schema(inner: Mapping[str, Any], name: str, at: str) -> Any:
    keys = [key for key in ("parameters", "input_schema", "inputSchema") if inner.get(key) is not None]
    if len(keys) > 1:
        raise InvalidTool(f"the tool {name!r} has its schema twice: {' and '.join(keys)}", tool=name, path=at)
    return inner[keys[0]] if keys else None


def _from_dict(definition: Mapping[str, Any]) -> AnyTool:
    inner: Mapping[str, Any] = definition
    at = ""
    if isinstance(definition.get("function"), Mapping):
        inner, at = definition["function"], "/function"
    name = inner.get("name")
    if not isinstance(name, str) or not name:
        kind = definition.get("type")
        if kind not in (None, "function", "custom"):
            raise InvalidTool(f"a tool of the type {kind!r} runs at its provider and cannot be offered", path="/type")
        raise InvalidTool(f"a tool needs a name; got {dict(definition)!r:.80}", path=f"{at}/name")
    description = inner.get("description")
    if description is not None and not isinstance(description, str):
        raise InvalidTool(
            f"the description of the tool {name!r} must be text; got {description!r:.80}",
            tool=name,
            path=f"{at}/description",
        )
    schema = repair(_only_schema(inner, name, at), name)
    examples = _examples(inner.get("input_examples"), name, f"{at}/input_examples")
    tool: AnyTool = Tool(
        _named(name, ""), description or "", schema, strict=inner.get("strict") is True, examples=examples
    )
    judge(tool.parameters, name)
    return tool


def _examples(value: Any, name: str, path: str) -> tuple[Mapping[str, Any], ...]:
    if value is None:
        return ()
    rows = cast("list[Any]", value) if isinstance(value, (list, tuple)) else [None]
    if not all(isinstance(one, Mapping) for one in rows):
        message = f"the examples of the tool {name!r} must be a list of arguments, each an object; got {value!r:.80}"
        raise InvalidTool(message, tool=name, path=path)
    return tuple(cast("list[Mapping[str, Any]]", rows))


def _named(wanted: str | None, own: str) -> str:
    name = own if wanted is None else wanted
    if not _NAME.fullmatch(name):
        hint = "give it one: ts.tool(fn, name=...)" if wanted is None else "letters, digits, _ - . / : may be in it"
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
