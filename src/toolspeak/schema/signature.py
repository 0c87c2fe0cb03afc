"""Infers the JSON Schema of a function's signature, and the binding that calls it. pydantic handles the types."""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

from ..errors import InvalidTool
from .adapter import adapter
from .bind import EMPTY, Binding, Injected, Parameter
from .tidy import generator, tidy

if TYPE_CHECKING:
    from pydantic import TypeAdapter

_POSITIONAL, _REST, _MANY = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_KEYWORD,
    inspect.Parameter.VAR_POSITIONAL,
)


def infer(fn: Any, tool: str, descriptions: Mapping[str, str]) -> tuple[dict[str, Any], Binding]:
    """(JSON Schema of the arguments, binding) of a callable. `descriptions` are the descriptions of parameters in the
    docstring.

    Raises InvalidTool, with the parameter in `path`, if a type has no JSON form.
    """
    parameters, method_of = _parameters(fn, tool)
    hints = _Hints(fn, tool)
    bound: list[Parameter] = []
    injected: set[str] = set()
    schemas: list[tuple[inspect.Parameter, TypeAdapter[Any]]] = []
    rest: TypeAdapter[Any] | None = None
    for p in parameters:
        if p.kind is _MANY:
            _refuse(
                tool, p.name, "takes any number of unnamed values, and a model names its arguments: take a list instead"
            )
        annotation = hints.of(p)
        if p.kind is _REST and typing.get_origin(annotation) is typing.Unpack:
            _refuse(tool, p.name, "is an Unpack[...]: write its fields out as parameters of their own")
        if _is_injected(annotation):
            injected.add(p.name)
            bound.append(Parameter(p.name, None, p.default, p.kind is _POSITIONAL))
            continue
        type_adapter = _adapter(annotation, p, tool)
        if p.kind is _REST:
            rest = type_adapter
        else:
            default, explicit = _default(p.default)
            bound.append(Parameter(p.name, type_adapter, default, p.kind is _POSITIONAL, explicit))
        schemas.append((p, type_adapter))
    schema = _schema(schemas, tool, descriptions)
    return schema, Binding(tool, tuple(bound), frozenset(injected), rest, rest is not None, method_of)


def _refuse_unknown(
    tool: str, offered: Iterable[str], named: Collection[str], injected: Collection[str], rest: bool
) -> None:
    """Raises InvalidTool for an argument in a schema that the function does not accept from a model."""
    for name in offered:
        if name in injected:
            why = "is injected"
        elif name not in named and not rest:
            why = "is in the schema and not in the function's signature"
        else:
            continue
        advice = ". To get all arguments as one dict, annotate it as dict" if len(named) == 1 else ""
        _refuse(tool, name, f"{why}; the function takes: {', '.join(named) or 'nothing by name'}{advice}")


def fit(fn: Any, tool: str, schema: dict[str, Any]) -> tuple[dict[str, Any], Binding | None]:
    """(schema, binding) of a function with a given schema. Arguments are passed on as JSON values.

    Parameters without a default are required, whatever the schema says. A function of one dict (`def f(args)`, `def
    f(*args)`) gets all arguments as that dict. Raises InvalidTool if the schema has an argument that the function does
    not accept. A callable without a readable signature gets no binding.
    """
    try:
        parameters, method_of = _parameters(fn, tool)
    except InvalidTool:
        return schema, None
    hints = _Hints(fn, tool)
    injected = {p.name for p in parameters if p.annotation is not EMPTY and _is_injected(hints.of(p))}
    offered = cast("Mapping[str, Any]", schema.get("properties", {}))
    if one := _one_dict([p for p in parameters if p.name not in injected], offered, hints):
        by_place = (_POSITIONAL, _MANY)
        bound = tuple(Parameter(p.name, None, p.default, p.kind in by_place, whole=p.name == one) for p in parameters)
        return schema, Binding(tool, bound, frozenset(injected), method_of=method_of)
    rest = any(p.kind is _REST for p in parameters)
    named = [p for p in parameters if p.kind not in (_REST, _MANY)]
    _refuse_unknown(tool, offered, [p.name for p in named], injected, rest)
    bound = tuple(Parameter(p.name, None, p.default, p.kind is _POSITIONAL) for p in named)
    return _requiring(schema, named, injected), Binding(tool, bound, frozenset(injected), None, rest, method_of)


def _requiring(
    schema: dict[str, Any], parameters: Iterable[inspect.Parameter], injected: Collection[str]
) -> dict[str, Any]:
    """The schema, with the properties required for which the function has no default."""
    needed = [p.name for p in parameters if p.default is EMPTY and p.name not in injected]
    offered, required = schema.get("properties", {}), [*schema.get("required", ())]
    lacking = [name for name in needed if name in offered and name not in required]
    return {**schema, "required": [*required, *lacking]} if lacking else schema


def _one_dict(parameters: Sequence[inspect.Parameter], offered: Mapping[str, Any], hints: _Hints) -> str:
    """The name of the single parameter that gets all arguments as a dict; "" if there is none.

    It is annotated as a dict, or is `*args`. One without an annotation counts only if the schema has several
    arguments, which the function cannot accept otherwise; a single argument may be that parameter with a misspelled
    name.
    """
    if len(parameters) != 1 or not offered or parameters[0].name in offered:
        return ""
    (only,) = parameters
    if only.kind is _MANY:
        return only.name
    if only.kind not in (_POSITIONAL, inspect.Parameter.POSITIONAL_OR_KEYWORD):
        return ""
    if only.annotation is EMPTY:
        return only.name if len(offered) > 1 else ""
    kind = hints.of(only)
    return only.name if (typing.get_origin(kind) or kind) in (dict, Mapping) else ""


def _refuse(tool: str, parameter: str, why: str) -> typing.NoReturn:
    raise InvalidTool(f"the parameter {parameter!r} of {tool!r} {why}", tool=tool, path=f"/properties/{parameter}")


def _parameters(fn: Any, tool: str) -> tuple[list[inspect.Parameter], str]:
    """The parameters that a caller fills in, and for an unbound method its class."""
    inner = fn.__func__ if isinstance(fn, (classmethod, staticmethod)) else fn  # pyright: ignore[reportUnknownMemberType,reportUnknownVariableType]
    try:
        parameters = list(inspect.signature(inner).parameters.values())  # pyright: ignore[reportUnknownArgumentType]
    except (ValueError, TypeError) as error:
        raise InvalidTool(
            f"{tool!r} has no readable signature ({error}): give a schema, ts.tool(fn, parameters={{...}})",
            tool=tool,
        ) from None
    fixed = _set_by_partial(fn)
    parameters = [p for p in parameters if p.name not in fixed]
    if isinstance(fn, classmethod):
        return parameters[1:], ""
    owner = str(getattr(inner, "__qualname__", "")).rpartition(".")[0].rpartition(".")[2]  # pyright: ignore[reportUnknownArgumentType]
    in_class = isinstance(fn, types.FunctionType) and owner not in ("", "<locals>")
    if in_class and parameters and parameters[0].name in ("self", "cls"):
        return parameters[1:], owner
    return parameters, ""


def _set_by_partial(fn: Any) -> set[str]:
    """The parameters that a partial has set by name: they are not offered to the model."""
    names: set[str] = set()
    while isinstance(fn, functools.partial):
        partial = cast("functools.partial[Any]", fn)
        names |= partial.keywords.keys()
        fn = partial.func
    return names


class _Hints:
    """A function's annotations as types, each evaluated in the scope in which it was written."""

    def __init__(self, fn: Any, tool: str) -> None:
        self.tool = tool
        while isinstance(fn, functools.partial):
            fn = cast("functools.partial[Any]", fn).func
        if isinstance(fn, (classmethod, staticmethod)):
            fn = cast("Any", fn).__func__
        if inspect.isclass(fn):
            fn = fn.__init__
        elif not inspect.isroutine(fn):
            fn = type(fn).__call__
        inner: Any = inspect.unwrap(cast("Callable[..., Any]", fn))
        inner = getattr(inner, "__func__", inner)
        self.globals: dict[str, Any] = getattr(inner, "__globals__", {})
        self.inside = str(getattr(inner, "__qualname__", "")).rpartition(".")[0].removesuffix(".<locals>")

    def of(self, p: inspect.Parameter) -> Any:
        if p.annotation is EMPTY:
            return Any
        holder = types.SimpleNamespace(__annotations__={p.name: p.annotation})
        try:
            for scope in (*self._scopes(), None):
                try:
                    return typing.get_type_hints(holder, self.globals, scope, include_extras=True)[p.name]
                except NameError:
                    if scope is None:
                        raise
        except NameError as error:
            _refuse(self.tool, p.name, f"has the type {p.annotation!r}, and {error}")
        except (TypeError, SyntaxError, AttributeError) as error:
            _refuse(self.tool, p.name, f"has the annotation {p.annotation!r}, which is no type: {error}")

    def _scopes(self) -> list[dict[str, Any]]:
        """The local variables of the enclosing functions that are running, which may have local types."""
        if not self.inside:
            return []
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        while frame is not None:
            if frame.f_code.co_qualname == self.inside:
                return [dict(frame.f_locals)]
            frame = frame.f_back
        return []


def _is_injected(annotation: Any) -> bool:
    marks = getattr(annotation, "__metadata__", ()) if typing.get_origin(annotation) is Annotated else ()
    return any(mark is Injected or isinstance(mark, Injected) for mark in marks)


def _adapter(annotation: Any, p: inspect.Parameter, tool: str) -> TypeAdapter[Any]:
    from pydantic.errors import PydanticSchemaGenerationError, PydanticUndefinedAnnotation, PydanticUserError
    from pydantic.fields import FieldInfo

    wanted = annotation
    if isinstance(p.default, FieldInfo):
        wanted = Annotated[annotation, p.default]
    elif p.default is None and p.kind is not _REST:
        wanted = typing.Optional[annotation]  # noqa: UP045 - a | needs types, this takes every annotation
    try:
        return adapter(wanted)
    except PydanticSchemaGenerationError:
        why = f"has the type {_name(annotation)}, which no JSON value can fill"
    except (PydanticUndefinedAnnotation, PydanticUserError, TypeError, SyntaxError) as error:
        why = f"has a type that cannot be read: {str(error).splitlines()[0]}"
    hint = "If the application gives it, not the model, annotate it: Annotated[..., ts.Injected]"
    _refuse(tool, p.name, f"{why}. {hint}")


def _name(annotation: Any) -> str:
    return annotation.__qualname__ if isinstance(annotation, type) else repr(annotation)


def _default(default: Any) -> tuple[Any, bool]:
    """(default, whether it must be passed explicitly): pydantic's `Field(...)` is no value, but creates one."""
    from pydantic.fields import FieldInfo

    if not isinstance(default, FieldInfo):
        return default, False
    if default.is_required():
        return EMPTY, False
    return functools.partial(default.get_default, call_default_factory=True), True  # pyright: ignore[reportUnknownMemberType]


def _check_types(parameters: list[tuple[inspect.Parameter, TypeAdapter[Any]]], tool: str) -> None:
    from pydantic.errors import PydanticUserError
    from pydantic_core import PydanticOmit

    for p, type_adapter in parameters:
        try:
            type_adapter.json_schema(schema_generator=generator())
        except (PydanticUserError, PydanticOmit) as error:
            _refuse(tool, p.name, f"has a type that has no JSON Schema: {str(error).splitlines()[0]}")


def _schema(
    parameters: list[tuple[inspect.Parameter, TypeAdapter[Any]]], tool: str, descriptions: Mapping[str, str]
) -> dict[str, Any]:
    from pydantic import TypeAdapter

    _check_types(parameters, tool)
    inputs: list[Any] = [(p.name, "validation", type_adapter) for p, type_adapter in parameters]
    schemas, shared = TypeAdapter.json_schemas(inputs, schema_generator=generator())
    properties: dict[str, Any] = {}
    required: list[str] = []
    rest: Any = False
    for p, type_adapter in parameters:
        schema = dict(schemas[p.name, "validation"])
        if p.kind is _REST:
            rest = schema or True
            continue
        properties[p.name] = _described(schema, p, type_adapter, descriptions)
        if p.default is EMPTY or _default(p.default)[0] is EMPTY:
            required.append(p.name)
    whole: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        whole["required"] = required
    whole["additionalProperties"] = rest
    if shared.get("$defs"):
        whole["$defs"] = shared["$defs"]
    return tidy(whole)


def _described(
    schema: dict[str, Any], p: inspect.Parameter, type_adapter: TypeAdapter[Any], descriptions: Mapping[str, str]
) -> dict[str, Any]:
    if not schema:
        schema["description"] = descriptions.get(p.name) or "any JSON value"
    elif p.name in descriptions:
        schema.setdefault("description", descriptions[p.name])
    default, explicit = _default(p.default)
    if default is not EMPTY and not explicit and "default" not in schema:
        from pydantic_core import PydanticSerializationError

        # A default without a JSON form is left out of the schema; the argument is still optional.
        with contextlib.suppress(PydanticSerializationError):
            schema["default"] = type_adapter.dump_python(default, mode="json", warnings=False)
    return schema
