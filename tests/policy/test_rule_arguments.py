"""A check of rules against tools: which arguments a rule may name, by the schemas of the tools that it matches."""

from __future__ import annotations

from typing import Any

import pytest

from toolspeak.policy.policy import Policy
from toolspeak.schema.infer import as_tools

TEXT = {"type": "string"}
TARGET = {"type": "object", "properties": {"path": TEXT, "a.b": TEXT}}
MISSES = "none of the tools that it matches has"


def schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TOOLS: dict[str, dict[str, Any]] = {
    "remove": schema(path=TEXT, target=TARGET, names={"type": "array", "items": TARGET}),
    "move": schema(src=TEXT, dst=TEXT),
    "open": {"type": "object", "properties": {}, "additionalProperties": TEXT},
    "free": schema(
        opts={"type": "object"}, either={"anyOf": [TARGET, {"type": "null"}]}, listed={"type": ["object", "null"]}
    ),
}


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        ("remove(path='x')", ""), ("remove(pth='x')", f"{MISSES} the argument 'pth'. Did you mean 'path'?"),
        ("remove(zone='x')", f"{MISSES} the argument 'zone'."),
        ("remove(target.path='x')", ""), ("remove(target.a.b='x')", ""),
        ("remove(target.pth='x')", f"{MISSES} the argument 'target.pth'. Did you mean 'target.path'"),
        ("remove(path.x='x')", f"{MISSES} the argument 'path.x'. Did you mean 'path'?"),
        ("remove(names.path='x')", f"{MISSES} the argument 'names.path'."),  # a rule reads no fields of the items
        ("[rm]*(path='x', dst='y')", f"{MISSES} all its arguments together: path, dst"),
        ("move(src='x', dst='y')", ""), ("open(anything='x')", ""), ("*(anything='x')", ""),
        ("free(opts.anything='x')", ""), ("free(either.pth='x')", ""), ("free(listed.x='x')", ""),
    ],
)  # fmt: skip
def test_what_no_tool_has_is_told(rule: str, why: str) -> None:
    tools = as_tools([{"name": name, "parameters": parameters} for name, parameters in TOOLS.items()])
    told = list(Policy(deny=[rule]).unmatched(tools))
    assert [line.partition(": ")[2].startswith(why) for line in told] == ([True] if why else [])
