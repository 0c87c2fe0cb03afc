"""Bounds the JSON Schemas in a request: a small schema can require exponential work."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, cast

from ...api.incoming import IncomingRequest
from ...errors import InvalidTool, Refused
from ...models.offload import LARGE
from ...plan.json_reply import usable_form
from ...schema.engine_patterns import for_engine
from ...schema.validators import PATTERNS as OF_ONE
from ...schema.walk import MANY, NAMED, ONE, resolve
from ...schema.weight import weight
from ...types import Tool
from ..config.settings import GatewayLimits
from ..tool_cache import Toolsets

Tools = tuple[Tool[..., Any], ...] | None

ALL = 32
"""All schemas of a request together may have so many times the size of one."""
PATTERNS = 200_000_000
"""The estimated bytes that the patterns of a request's tools may take when they are compiled: about a second of work."""
BY_PATTERNS = 5
"""How much longer than others a body with patterns takes to read: compiling a short pattern takes as long as reading a few
hundred characters."""
PATTERN = b"attern"
COSTLY = (b"$ref", b'Ref"', PATTERN)
"""Parts of the keywords by which a schema takes more work than its size suggests: references and patterns."""
COUNTED = re.compile(rb"\{\s*\d|\\[pP]")
"""What makes a pattern take longer than its length suggests: a repetition with a count, or a class of Unicode."""
WORK = 100_000
"""How many schemas may be applied to one value, counting each alternative."""
CHAIN = 200
"""The longest chain of references."""
LETTER = re.compile(rb"\\u00[2-7]")
"""An escaped ASCII character: `$ref` can be written with these, too."""
HERE = ("not", "if", "then", "else")
"""Keywords whose schema applies to the same value, besides lists of alternatives."""


def bounded_tools(raw: bytes, limits: GatewayLimits, make: Toolsets) -> Callable[[Any], Tools]:
    """Return `make` with checks for the body `raw`. It raises Refused for schemas that are too large or too complex."""
    if harmless(raw, limits):
        return make

    def check(described: Any) -> None:
        left, patterns = ALL * limits.schema, PATTERNS
        for at, one in enumerate(cast("list[dict[str, Any]]", described or ())):
            schema = one.get("parameters") or one.get("input_schema")
            left -= check_schema(schema, f"tools.{at}", limits)
            if left < 0:
                raise _refused("tools", f"all schemas together are larger than {ALL * limits.schema:,} bytes")
            if isinstance(schema, Mapping):  # one that alone takes too much is refused when it is compiled
                patterns -= min(weight(for_engine(schema))[1], OF_ONE)
            if patterns < 0:
                most = f"{PATTERNS // 1_000_000} MB when they are compiled: make them fewer, or repeat less"
                raise _refused("tools", f"the patterns of all tools together take more than {most}")

    return lambda described: make(described, check)


def harmless(raw: bytes, limits: GatewayLimits) -> bool:
    """Whether no schema in a body can be too large, or contain a reference or a pattern. Without them, size bounds the
    work."""
    if len(raw) > limits.schema or any(word in raw for word in COSTLY):
        return False
    return not _with_escaped_letters(raw)


def reading_cost(raw: bytes) -> int:
    """An estimate of what it costs to read a body and its tools, in characters of a body without patterns."""
    if _with_escaped_letters(raw):
        return max(BY_PATTERNS * len(raw), LARGE)
    if PATTERN not in raw:
        return len(raw)
    return max(BY_PATTERNS * len(raw), LARGE if COUNTED.search(raw) else 0)


def _with_escaped_letters(raw: bytes) -> bool:
    """Whether a keyword in a body may be written with escapes."""
    return b"\\u00" in raw and LETTER.search(raw) is not None


def check_schema(schema: Any, where: str, limits: GatewayLimits) -> int:
    """Return the size of a schema. Raises Refused if it is too large, refers to other documents, or needs too much
    work."""
    if not isinstance(schema, Mapping):
        return 0
    size = len(json.dumps(schema))
    if size > limits.schema:
        raise _refused(where, f"the schema is larger than {limits.schema:,} bytes")
    _Work(cast("Mapping[str, Any]", schema), where).check()
    return size


def with_usable_schema(incoming: IncomingRequest, limits: GatewayLimits) -> IncomingRequest:
    """Return the request with the schema of its reply repaired if needed. Raises Refused for one that is too large or
    that no text can be checked against."""
    schema, where = incoming.request.schema, incoming.schema_field
    if schema is None:
        return incoming
    check_schema(schema, where, limits)
    try:
        usable = usable_form(schema)
    except InvalidTool as error:
        raise _refused(where, str(error)) from None
    return incoming if usable is schema else replace(incoming, request=replace(incoming.request, schema=usable))


class _Work:
    """Computes how much work a schema requires."""

    def __init__(self, root: Mapping[str, Any], where: str) -> None:
        self._root = root
        self._where = where
        self._known: dict[int, int] = {}

    def check(self) -> None:
        """Looks at every schema in the schema."""
        rest: list[Any] = [self._root]
        while rest:
            node = rest.pop()
            if not isinstance(node, Mapping):
                continue
            node = cast("Mapping[str, Any]", node)
            if self._of(node, 0) > WORK:
                raise _refused(self._where, "the schema has too many nested alternatives")
            rest += _inner(node)

    def _of(self, node: Any, chain: int) -> int:
        """Return how many schemas are applied to a value to which this one is applied."""
        if not isinstance(node, Mapping):
            return 1
        node = cast("Mapping[str, Any]", node)
        if chain > CHAIN:
            raise _refused(self._where, f"more than {CHAIN} references follow one another")
        known = self._known.get(id(node))
        if known is None:
            self._known[id(node)] = 1  # a recursive schema is followed once
            applied = _applied(node)
            known = 1 + sum(self._of(inner, chain + 1) for inner in applied)
            for word in ("$ref", "$dynamicRef", "$recursiveRef"):
                if word in node:
                    known += self._of(self._target(node[word]), chain + 1)
            self._known[id(node)] = known = min(known, WORK + 1)
        return known

    def _target(self, ref: Any) -> Any:
        if ref == "#":
            return self._root
        if not (isinstance(ref, str) and ref.startswith("#/")):
            raise _refused(self._where, "a $ref points outside the schema; expected one such as #/$defs/NAME")
        return resolve(self._root, ref)


def _applied(node: Mapping[str, Any]) -> list[Any]:
    """Return the schemas that are applied to the same value as this one."""
    schemas = [node[word] for word in HERE if word in node]
    for word in ("anyOf", "oneOf", "allOf"):
        if isinstance(node.get(word), list):
            schemas += node[word]
    if isinstance(node.get("dependentSchemas"), Mapping):
        schemas += node["dependentSchemas"].values()
    return schemas


def _inner(node: Mapping[str, Any]) -> list[Any]:
    """Return the schemas directly inside a schema."""
    schemas: list[Any] = []
    for word, value in node.items():
        if word in ONE:
            schemas.append(value)
        elif word in MANY and isinstance(value, list):
            schemas += cast("list[Any]", value)
        elif word in NAMED and isinstance(value, Mapping):
            schemas += cast("Mapping[str, Any]", value).values()
    return schemas


def _refused(where: str, why: str) -> Refused:
    return Refused(f"{where}: {why}", code="invalid_schema", param=where)
