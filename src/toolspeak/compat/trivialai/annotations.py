"""Reads a function's signature: formats its arguments as text for a model, and checks values against it.

Values are those of JSON and those that `literals` reads beyond it. An unknown annotation accepts any value: the
function itself decides.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

Parameter = inspect.Parameter
_NAMED = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def signature(fn: Callable[..., Any]) -> inspect.Signature:
    """Return the signature, with string annotations evaluated if possible.

    Raises ValueError or TypeError for a callable without a signature.
    """
    try:
        return inspect.signature(fn, eval_str=True)
    except (NameError, SyntaxError, AttributeError, TypeError):
        return inspect.signature(fn)


def arguments(sig: inspect.Signature) -> dict[str, Parameter]:
    """Return the parameters that can be passed by name, in order, without `*args` and `**kwargs`."""
    return {name: p for name, p in sig.parameters.items() if p.kind in _NAMED}


def is_required(parameter: Parameter) -> bool:
    """Whether a parameter has no default."""
    return parameter.default is Parameter.empty


def takes_any_name(sig: inspect.Signature) -> bool:
    """Whether a function has `**kwargs`."""
    return any(p.kind is Parameter.VAR_KEYWORD for p in sig.parameters.values())


def bound(sig: inspect.Signature, arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return `arguments` as positional and keyword arguments, so that positional-only parameters can be passed too."""
    positional: list[Any] = []
    keywords = dict(arguments)
    for name, parameter in sig.parameters.items():
        if parameter.kind is not Parameter.POSITIONAL_ONLY or name not in keywords:
            break
        positional.append(keywords.pop(name))
    return tuple(positional), keywords


def format_signature(name: str, sig: inspect.Signature) -> str:
    """Return `name(url: str, deep: bool = False) -> None`; a missing annotation is `Any`."""
    parts = [
        f"{p.name}: {format_type(p.annotation)}" + ("" if is_required(p) else f" = {p.default!r}")
        for p in arguments(sig).values()
    ]
    return f"{name}({', '.join(parts)}) -> {format_type(sig.return_annotation)}"


def format_type(annotation: Any) -> str:
    """Return an annotation as people write it."""
    if annotation is Parameter.empty:
        return "Any"
    if isinstance(annotation, str):
        return annotation
    if annotation is None:
        return "None"
    branches = get_args(annotation)
    if get_origin(annotation) is Union:
        others = [branch for branch in branches if branch is not types.NoneType]
        if len(others) == 1 and len(branches) == 2:
            return f"Optional[{format_type(others[0])}]"
        return " | ".join(format_type(branch) for branch in branches)
    if isinstance(annotation, type) and not branches:
        builtin = annotation.__module__ == "builtins"
        return annotation.__name__ if builtin else f"{annotation.__module__}.{annotation.__qualname__}"
    return str(annotation).removeprefix("typing.")


def accepts(parameter: Parameter, value: Any) -> bool:
    """Whether a value may be passed for a parameter: it matches the annotation, or is the default."""
    if value is None and parameter.default is None:
        return True
    return fits(value, parameter.annotation)


def fits(value: Any, annotation: Any) -> bool:
    """Whether a value matches an annotation, including the items of lists and dicts, without loss.

    An int is accepted as a float, as in Python; a bool is neither.
    """
    if annotation is None or annotation is types.NoneType:
        return value is None
    if annotation in (Any, Parameter.empty, object) or isinstance(annotation, str):
        return True
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is None:
        return _fits_class(value, getattr(annotation, "__supertype__", annotation))
    if origin is Annotated:
        return fits(value, inner[0])
    if origin in (Union, types.UnionType):
        return any(fits(value, branch) for branch in inner)
    if origin is Literal:
        return any(type(value) is type(choice) and value == choice for choice in inner)
    return _fits_container(value, origin, inner)


def _fits_class(value: Any, cls: Any) -> bool:
    if typing.is_typeddict(cls):
        return isinstance(value, dict)
    if cls is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if cls is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if cls is tuple:
        return isinstance(value, list | tuple)
    if not isinstance(cls, type) or getattr(cls, "_is_protocol", False):
        return True
    return isinstance(value, cls)


def _fits_container(value: Any, origin: Any, inner: tuple[Any, ...]) -> bool:
    if origin is tuple:
        return isinstance(value, list | tuple) and _fits_tuple(cast("Sequence[Any]", value), inner)
    if not isinstance(origin, type):
        return True
    if issubclass(origin, Mapping):
        return isinstance(value, dict) and all(
            fits(k, inner[0]) and fits(v, inner[1]) for k, v in cast("dict[Any, Any]", value).items()
        )
    wanted = (list,) if issubclass(list, origin) else (set, frozenset) if issubclass(origin, set | frozenset) else None
    if wanted is None:
        return True
    return isinstance(value, wanted) and all(fits(item, inner[0]) for item in cast("Sequence[Any]", value))


def _fits_tuple(value: Sequence[Any], inner: tuple[Any, ...]) -> bool:
    if len(inner) == 2 and inner[1] is Ellipsis:
        return all(fits(item, inner[0]) for item in value)
    return len(value) == len(inner) and all(map(fits, value, inner))
