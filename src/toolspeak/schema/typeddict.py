"""TypedDicts as pydantic can read them: on Python 3.11 it takes those of typing_extensions alone."""

from __future__ import annotations

import functools
import sys
import types
import typing
from typing import Annotated, Any


def modern(annotation: Any) -> Any:
    """The annotation with every `typing.TypedDict` in it as the one that pydantic reads."""
    return _modern(annotation, {})


def _modern(annotation: Any, seen: dict[int, Any]) -> Any:
    if sys.version_info >= (3, 12):
        return annotation
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        return _modern_dict(annotation, seen)
    args = typing.get_args(annotation)
    if not args or typing.get_origin(annotation) is typing.Literal:
        return annotation
    changed = tuple(_modern(arg, seen) for arg in args)
    if all(a is b for a, b in zip(args, changed, strict=True)):
        return annotation
    if typing.get_origin(annotation) is Annotated:
        return Annotated[(changed[0], *annotation.__metadata__)]  # pyright: ignore[reportUnknownMemberType]
    if isinstance(annotation, types.UnionType):
        return functools.reduce(lambda a, b: a | b, changed)
    return annotation.copy_with(changed) if hasattr(annotation, "copy_with") else annotation.__origin__[changed]


def _modern_dict(annotation: Any, seen: dict[int, Any]) -> Any:
    import typing_extensions as te

    if id(annotation) in seen:
        return seen[id(annotation)]
    seen[id(annotation)] = annotation  # a recursive one is left to pydantic, which says why it cannot
    fields: dict[str, Any] = {}
    for name, hint in te.get_type_hints(annotation, include_extras=True).items():
        required = name in annotation.__required_keys__
        while (wrapper := typing.get_origin(hint)) in (te.Required, te.NotRequired):
            required = wrapper is te.Required  # the keys do not know it where annotations are strings
            hint = typing.get_args(hint)[0]
        hint = _modern(hint, seen)
        fields[name] = hint if required else te.NotRequired[hint]
    make: Any = te.TypedDict
    made = make(annotation.__name__, fields)
    made.__doc__ = annotation.__doc__
    made.__module__ = annotation.__module__
    seen[id(annotation)] = made
    return made
