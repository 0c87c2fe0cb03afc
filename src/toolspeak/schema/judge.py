"""The one judge of arguments: a schema's validator (draft 2020-12, formats on), made once; it fetches nothing.

A schema that lists its properties and does not speak of others is taken to allow no others: a model
that invents an argument is told so.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn, Protocol, cast

from ..errors import InvalidTool
from ..types import Schema
from .walk import escape, rebuild


class Judge(Protocol):
    """The validator of one schema, as far as it is used here."""

    def is_valid(self, instance: Any) -> bool: ...

    def iter_errors(self, instance: Any) -> Iterator[Any]: ...


_judges: dict[int, tuple[Schema, Judge]] = {}
_branches: dict[tuple[int, int], tuple[Schema, Schema, Judge]] = {}
_KEPT = 4096
_ROOT = "urn:toolspeak:parameters"


def judge(schema: Schema, tool: str = "") -> Judge:
    """The judge of a schema, made once for each; InvalidTool where the schema is none."""
    known = _judges.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    made = _compile(closed(schema), tool)
    while len(_judges) >= _KEPT:
        _judges.pop(next(iter(_judges)), None)
    _judges[id(schema)] = (schema, made)  # holding the schema keeps its id its own
    return made


def branch_judge(root: Schema, branch: Schema) -> Judge:
    """The judge of one schema inside `root`, whose `$ref`s still speak of `root`."""
    known = _branches.get((id(root), id(branch)))
    if known is not None and known[0] is root and known[1] is branch:
        return known[2]
    import jsonschema_rs as rs

    def outward(node: dict[str, Any], _path: str) -> dict[str, Any]:
        ref = node.get("$ref")
        return {**node, "$ref": _ROOT + ref} if isinstance(ref, str) and ref.startswith("#") else node

    made = rs.Draft202012Validator(
        rebuild(branch, outward),
        validate_formats=True,
        retriever=_fetch_nothing,
        registry=rs.Registry([(_ROOT, dict(root))]),
        pattern_options=rs.FancyRegexOptions(backtrack_limit=100_000),
    )
    while len(_branches) >= _KEPT:
        _branches.pop(next(iter(_branches)), None)
    _branches[id(root), id(branch)] = (root, branch, cast("Judge", made))
    return cast("Judge", made)


def _compile(schema: Schema, tool: str) -> Judge:
    import jsonschema_rs as rs

    refused: rs.ValidationError | None = None
    # Linear regular expressions; a pattern that looks around needs the other engine, held to a bound.
    for options in (rs.RegexOptions(), rs.FancyRegexOptions(backtrack_limit=100_000)):
        try:
            made = rs.Draft202012Validator(
                dict(schema), validate_formats=True, retriever=_fetch_nothing, pattern_options=options
            )
        except rs.ValidationError as error:
            refused = error
        except ValueError as error:
            raise InvalidTool(f"the schema of the tool {tool!r} is not JSON: {error}", tool=tool) from None
        else:
            return cast("Judge", made)
    path = "".join("/" + escape(str(part)) for part in refused.instance_path) if refused else ""
    where = f", at {path}" if path else ""
    why = refused.message if refused else ""
    raise InvalidTool(f"the schema of the tool {tool!r} means nothing{where}: {why}", tool=tool, path=path) from None


def _fetch_nothing(uri: str) -> NoReturn:
    raise LookupError(f"{uri} is not part of the schema, and nothing is fetched")


def closed(schema: Schema) -> Schema:
    """The schema of arguments as it is judged: without others than those that it lists, where it says nothing of them."""
    says = (
        "additionalProperties",
        "patternProperties",
        "unevaluatedProperties",
        "$ref",
        "anyOf",
        "oneOf",
        "allOf",
        "if",
    )
    return schema if any(key in schema for key in says) else {**schema, "additionalProperties": False}
