"""Validates arguments: one validator per schema (draft 2020-12, with formats), created once; it fetches nothing.

A schema that lists its properties and says nothing about others is taken to allow no others, so that a model that
invents an argument gets an error. This also holds if the lists are spread over combined or referenced schemas.

Validators are cached within a limit of bytes, not of their number: one for a schema with thousands of patterns takes
more memory than a thousand small ones. `weight` estimates their size before they are created.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn, Protocol, cast

from ..errors import InvalidTool
from ..types import Schema
from .bounded_cache import BoundedCache
from .engine_patterns import for_engine
from .evaluations import CHECKED, exceeds, multiplies, schemas_inside
from .pattern_cost import slow_patterns
from .pattern_parts import why_invalid
from .phrases import expected, schema_of, short, spoken
from .text_grammars import KEYWORD, Fits
from .walk import escape, nodes, rebuild, resolve
from .weight import BY_CHARACTER, FLAG_X, largest_pattern, weight


class Judge(Protocol):
    """The validator of one schema, as far as it is used here."""

    def is_valid(self, instance: Any) -> bool: ...

    def iter_errors(self, instance: Any) -> Iterator[Any]: ...


class Referring:
    """The validator of a schema that may apply many schemas to a value, so that its work is counted before; see `exceeds`."""

    def __init__(self, validator: Judge, schema: Schema) -> None:
        self.is_valid = validator.is_valid
        self.iter_errors = validator.iter_errors
        self.schemas = schemas_inside(schema)
        self.searches = bool(slow_patterns(schema))


JUDGES, BRANCHES = 64_000_000, 16_000_000
"""Bytes of the cached validators: of whole schemas, and of the alternatives inside them."""
PATTERNS = 24_000_000
"""Bytes that the compiled patterns of one schema may take. Compiling so many takes about a tenth of a second."""

EACH_SCHEMA = 40
"""Microseconds to compile a schema inside a schema, or to explain that a value is none of its alternatives."""
CHARACTERS = 2
"""Characters that are checked against one schema, or converted, in a microsecond, if all the schemas inside may be applied
to each part."""
SQUARE = 200
"""The square of a text's length, of which so much is searched in a microsecond for a pattern with lookaround, in all passes."""

_judges = BoundedCache[int, tuple[Schema, Judge]](JUDGES, JUDGES // 2)
_branches = BoundedCache[tuple[int, int], tuple[Schema, Schema, Judge]](BRANCHES)
_DFA = 256_000
"""Bytes that one pattern may use for its cache of states while matching."""
_ROOT = "urn:toolspeak:parameters"

OPEN = ("additionalProperties", "unevaluatedProperties")
"""Keywords by which a schema itself says which other properties are allowed."""
REFERENCES = ("$ref", "$dynamicRef")
COMPOSED = (*REFERENCES, "anyOf", "oneOf", "allOf", "if", "dependentSchemas")
"""Keywords that combine schemas, each of which may list properties."""
UNEVALUATED = 5_000
"""The most subschemas that are applied under `unevaluatedProperties`, whose cost grows with every path to a subschema.
"""


def judge(schema: Schema, tool: str = "") -> Judge:
    """The validator of a schema, created once. Raises InvalidTool if it is no valid schema."""
    known = _judges.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    whole = for_engine(judged(schema, tool))
    size, patterns = weight(whole)
    if patterns > PATTERNS:
        path, largest, own = largest_pattern(whole)
        if FLAG_X.search(largest):
            message = f"the pattern at {path} has the flag x: {short(largest)}. Write it without blanks and comments"
        else:
            message = (
                f"its patterns take about {patterns // 1_000_000:,} MB when they are compiled, and may take"
                f" {PATTERNS // 1_000_000}; the largest is at {path}, about {own / 1_000_000:.1f} MB: {short(largest)}."
                " Make them fewer, or repeat less"
            )
        raise InvalidTool(f"{schema_of(tool)} cannot be taken: {message}", tool=tool, path=path)
    validator = _compile(whole, tool)
    validator = Referring(validator, schema) if multiplies(schema) else validator
    _judges.put(id(schema), (schema, validator), size)  # keeping the schema alive keeps its id unique
    return validator


def too_much(judge: Judge, schema: Schema, value: object) -> bool:
    """Whether a validator may have more work with a value than CHECKED, because its schema multiplies it."""
    return exceeds(schema, value, CHECKED) if isinstance(judge, Referring) else False


def known_length(schema: Schema) -> int:
    """The characters of a schema as JSON, as an estimate that is too high if it has patterns; 0 if its validator is not
    cached."""
    return _judges.size_of(id(schema)) // BY_CHARACTER


def check_cost(schema: Schema, length: int) -> int:
    """An estimate of what it costs to check and to convert JSON text of so many characters, in microseconds. It is 0 if the
    work only grows with the text. A schema that was never used is compiled first."""
    known = _judges.get(id(schema))
    used = known[1] if known is not None and known[0] is schema else None
    if used is not None and not isinstance(used, Referring):
        return 0
    schemas = used.schemas if used else schemas_inside(schema)
    searches = used.searches if used else bool(slow_patterns(schema))
    return schemas * (EACH_SCHEMA + length // CHARACTERS) + searches * length * length // SQUARE


def branch_judge(root: Schema, branch: Schema) -> Judge:
    """The validator of a schema inside `root`, with its `$ref`s resolved in `root`."""
    known = _branches.get((id(root), id(branch)))
    if known is not None and known[0] is root and known[1] is branch:
        return known[2]
    import jsonschema_rs as rs

    def outward(node: dict[str, Any], _path: str) -> dict[str, Any]:
        nonlocal refers
        own = {key: _ROOT + node[key] for key in REFERENCES if str(node.get(key)).startswith("#")}
        refers |= bool(own)
        return {**node, **own}

    refers = False
    inside = for_engine(rebuild(branch, outward))
    whole: Schema = for_engine(root) if refers else {}
    validator = _validator(inside, rs.Registry([(_ROOT, dict(whole))]) if refers else None)
    size = weight(inside)[0] + (weight(whole)[0] if refers else 0)
    _branches.put((id(root), id(branch)), (root, branch, validator), size)
    return validator


def _compile(schema: Schema, tool: str) -> Judge:
    import jsonschema_rs as rs

    try:
        return _validator(schema)
    except rs.ValidationError as error:
        path = "".join("/" + escape(str(part)) for part in error.instance_path)
        where = f", at {path}" if path else ""
        why = f"expected {spoken(expected(error))}, got {short(error.instance)}{_why_no_pattern(error)}"
    except ValueError as error:
        raise InvalidTool(f"{schema_of(tool)} is not JSON: {error}", tool=tool) from None
    raise InvalidTool(f"{schema_of(tool)} is invalid{where}: {why}", tool=tool, path=path) from None


def _why_no_pattern(error: Any) -> str:
    """What is wrong with an invalid pattern, as the end of a sentence; "" if the error is about something else."""
    if error.kind.name != "format" or error.kind.value != "regex" or not isinstance(error.instance, str):
        return ""
    why = why_invalid(error.instance, _is_pattern)
    return f"; {why}" if why else ""


def _is_pattern(text: str) -> bool:
    import jsonschema_rs as rs

    try:
        _validator({"pattern": text})
    except rs.ValidationError:
        return False
    return True


def _validator(schema: Schema, registry: Any = None) -> Judge:
    """The validator of a schema. Raises the library's errors for an invalid schema."""
    import jsonschema_rs as rs

    def build(options: Any) -> Judge:
        return cast(
            "Judge",
            rs.Draft202012Validator(
                dict(schema),
                validate_formats=True,
                retriever=_fetch_nothing,
                registry=registry,
                pattern_options=options,
                keywords=cast("Any", {KEYWORD: Fits}),
            ),
        )

    try:
        return build(rs.RegexOptions(dfa_size_limit=_DFA))
    except rs.ValidationError:
        # A pattern with lookaround needs the other engine, whose time is not linear, so backtracking is limited.
        return build(rs.FancyRegexOptions(backtrack_limit=100_000, dfa_size_limit=_DFA))


def _fetch_nothing(uri: str) -> NoReturn:
    raise LookupError(f"{uri} is not part of the schema, and nothing is fetched")


def closed(schema: Schema) -> Schema:
    """The schema of arguments as it is shown to models: closed to unlisted properties, unless it says otherwise.

    A schema that combines others is returned unchanged; see `judged`.
    """
    if any(key in schema for key in (*OPEN, *COMPOSED)):
        return schema
    return {**schema, "additionalProperties": False}


def judged(schema: Schema, tool: str = "") -> Schema:
    """The schema of arguments as it is validated: closed, also if it combines schemas that each list properties.
    Raises InvalidTool if that would take too much work."""
    closed_schema: Schema = closed(schema)
    if not any(key in closed_schema for key in OPEN):
        required: list[Any] = closed_schema.get("required") or []
        listed: dict[str, Any] = {
            name: True for name in required if isinstance(name, str)
        }  # listed at least as required
        listed |= cast("Mapping[str, Any]", closed_schema.get("properties") or {})
        closed_schema = {**closed_schema, "properties": listed, "unevaluatedProperties": False}
    left = UNEVALUATED
    for path, node in nodes(closed_schema):
        if node.get("unevaluatedProperties", True) is not True or node.get("unevaluatedItems", True) is not True:
            left -= _applied(closed_schema, node, left)
            if left < 0:
                raise InvalidTool(
                    f"the schema of the tool {tool!r} asks for too much work, at {path or '/'}: it unites more than"
                    f" {UNEVALUATED:,} alternatives and properties, counted wherever a reference leads to them; list the"
                    " properties in one place and say additionalProperties",
                    tool=tool,
                    path=path,
                )
    return closed_schema


def _applied(root: Schema, top: Mapping[str, Any], most: int) -> int:
    """The number of subschemas and properties that are applied to a value along with this schema. Counting stops soon
    after `most`."""
    count = 0
    todo: list[tuple[Any, frozenset[str]]] = [(top, frozenset())]
    while todo and count <= most:
        node, within = todo.pop()
        if not isinstance(node, Mapping):
            continue
        here = cast("Mapping[str, Any]", node)
        listed = here.get("properties")
        count += 1 + (len(cast("Mapping[str, Any]", listed)) if isinstance(listed, Mapping) else 0)
        todo += [(here[word], within) for word in ("if", "then", "else") if word in here]
        unites = [here.get(word) for word in ("anyOf", "oneOf", "allOf")]
        todo += [(part, within) for parts in unites if isinstance(parts, list) for part in cast("list[Any]", parts)]
        if isinstance(depending := here.get("dependentSchemas"), Mapping):
            todo += [(part, within) for part in cast("Mapping[str, Any]", depending).values()]
        for word in REFERENCES:
            ref = here.get(word)
            if isinstance(ref, str) and ref not in within:  # a circular reference is followed once
                todo.append((resolve(root, ref), within | {ref}))
    return count
