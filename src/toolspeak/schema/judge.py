"""The one judge of arguments: a schema's validator (draft 2020-12, formats on), made once; it fetches nothing.

A schema that lists its properties and does not speak of others is taken to allow no others: a model
that invents an argument is told so. That holds also where the lists stand in schemas that it unites or refers to.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, Protocol, cast

from ..errors import InvalidTool
from ..types import Schema
from .walk import escape, nodes, rebuild, resolve


class Judge(Protocol):
    """The validator of one schema, as far as it is used here."""

    def is_valid(self, instance: Any) -> bool: ...

    def iter_errors(self, instance: Any) -> Iterator[Any]: ...


_judges: dict[int, tuple[Schema, Judge]] = {}
_branches: dict[tuple[int, int], tuple[Schema, Schema, Judge]] = {}
_KEPT = 4096
_ROOT = "urn:toolspeak:parameters"

OPEN = ("additionalProperties", "unevaluatedProperties")
"""The words by which a schema says itself what else may be there."""
COMPOSED = ("$ref", "$dynamicRef", "anyOf", "oneOf", "allOf", "if", "dependentSchemas")
"""The words that put a schema together of others, each of which may list properties."""
UNEVALUATED = 5_000
"""What a validator makes of `unevaluatedProperties` grows with every way to a schema: at most so many are followed."""


def judge(schema: Schema, tool: str = "") -> Judge:
    """The judge of a schema, made once for each; InvalidTool where the schema is none."""
    known = _judges.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    made = _compile(judged(schema, tool), tool)
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

    refers = False

    def outward(node: dict[str, Any], _path: str) -> dict[str, Any]:
        nonlocal refers
        ref = node.get("$ref")
        if not (isinstance(ref, str) and ref.startswith("#")):
            return node
        refers = True
        return {**node, "$ref": _ROOT + ref}

    whole = rebuild(branch, outward)
    made = rs.Draft202012Validator(
        whole,
        validate_formats=True,
        retriever=_fetch_nothing,
        registry=rs.Registry([(_ROOT, dict(root))])
        if refers
        else None,  # reading the root takes as long as it is large
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
    """The schema of arguments as it is told: without others than those that it lists, where it says nothing of them.

    One that is put together of others is left as it is; see `judged`.
    """
    if any(key in schema for key in (*OPEN, *COMPOSED)):
        return schema
    return {**schema, "additionalProperties": False}


def judged(schema: Schema, tool: str = "") -> Schema:
    """The schema of arguments as it is judged: closed, also where it is put together of others, each of which may list
    properties. Raises InvalidTool where that would be too much work."""
    made: Schema = closed(schema)
    if not any(key in made for key in OPEN):
        required: list[Any] = made.get("required") or []
        listed: dict[str, Any] = {name: True for name in required if isinstance(name, str)}  # if nowhere else
        listed |= cast("Mapping[str, Any]", made.get("properties") or {})
        made = {**made, "properties": listed, "unevaluatedProperties": False}
    left = UNEVALUATED
    for path, node in nodes(made):
        if node.get("unevaluatedProperties", True) is not True or node.get("unevaluatedItems", True) is not True:
            left -= _applied(made, node, left)
            if left < 0:
                raise InvalidTool(
                    f"the schema of the tool {tool!r} asks for too much work, at {path or '/'}: it unites more than"
                    f" {UNEVALUATED:,} alternatives and properties, counted wherever a reference leads to them; list the"
                    " properties in one place and say additionalProperties",
                    tool=tool,
                    path=path,
                )
    return made


def _applied(root: Schema, top: Mapping[str, Any], most: int) -> int:
    """How many schemas and properties are applied to a value to which this schema is applied, not far beyond `most`."""
    found = 0
    todo: list[tuple[Any, frozenset[str]]] = [(top, frozenset())]
    while todo and found <= most:
        node, within = todo.pop()
        if not isinstance(node, Mapping):
            continue
        here = cast("Mapping[str, Any]", node)
        listed = here.get("properties")
        found += 1 + (len(cast("Mapping[str, Any]", listed)) if isinstance(listed, Mapping) else 0)
        todo += [(here[word], within) for word in ("if", "then", "else") if word in here]
        unites = [here.get(word) for word in ("anyOf", "oneOf", "allOf")]
        todo += [(part, within) for parts in unites if isinstance(parts, list) for part in cast("list[Any]", parts)]
        if isinstance(depending := here.get("dependentSchemas"), Mapping):
            todo += [(part, within) for part in cast("Mapping[str, Any]", depending).values()]
        for word in ("$ref", "$dynamicRef"):
            ref = here.get(word)
            if isinstance(ref, str) and ref not in within:  # a circle is followed once
                todo.append((resolve(root, ref), within | {ref}))
    return found
