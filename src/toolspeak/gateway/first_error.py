"""The first thing that is wrong with a body, found without looking at all that is wrong.

A validator that tells errors makes all of them first, each with a copy of what it is about: a body of 300,000 wrong
messages took it twenty seconds. That a body is wrong it knows at once. So the body is made smaller while it stays
wrong, see `schema.shrink`.
"""

from __future__ import annotations

from typing import Any

from ..errors import Refused
from ..schema.check import check
from ..schema.shrink import Path, Reduced, TooMany
from ..schema.validators import judge
from ..types import Schema, Tool


def first_error(body: dict[str, Any], schema: Schema) -> Refused:
    """The refusal of a body that does not fit a schema: what was expected where, and what came."""
    made = Reduced(body, judge(schema).is_valid)
    try:
        made.shrink()
    except TooMany as error:
        where = _dotted(made.places(error.path))
        said = f"{where}: expected at most {error.most:,} items, got {error.came:,}"
        return Refused(said, code="invalid_value", param=where)
    problem = check(Tool("body", parameters=schema), made.value)[0]
    parts = problem.path.removeprefix("/").split("/") if problem.path else []
    param = _dotted(made.places(int(part) if part.isdecimal() else part for part in parts))
    said = f"{param or 'the body'}: expected {problem.expected}, got {problem.received}"
    return Refused(said, code="invalid_value", param=param or None)


def _dotted(path: Path) -> str:
    return ".".join(str(part).replace("~1", "/").replace("~0", "~") for part in path)
