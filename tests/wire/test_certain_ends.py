"""A call that is wrong but has a certain end: an unknown tool, a wrong key, a wrong type, arguments that are no JSON. The
next call is whole."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from spoken import TALKING, wire
from wire_cases import read_in_pieces

from toolspeak.dialects import get
from toolspeak.types import Tool
from toolspeak.wire.dialect import Dialect

TEXT = {"type": "string"}


def tool(name: str, *keys: str) -> Tool[..., Any]:
    return Tool(name, "", {"type": "object", "properties": dict.fromkeys(keys, TEXT), "required": list(keys)})


TOOLS = (tool("delete_file", "path"), tool("write", "path", "content"))
DELETE = ("delete_file", {"path": "/data"})
BAD = [("unknown", {"path": "/a"}), ("write", {"pth": "/a", "content": "b"}), ("write", {"path": 1, "content": [2]})]
BARE_LISTS = ("pythonic", "llama4-pythonic")
SEVERAL = [d for d in TALKING if d.between or d.items or d.close]

read = partial(read_in_pieces, tools=TOOLS)


@pytest.mark.parametrize("d", SEVERAL, ids=lambda d: d.name)
@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_wrong_call_with_a_certain_end_loses_no_other(d: Dialect, bad: tuple[str, dict[str, Any]]) -> None:
    if d.name in BARE_LISTS and bad[0] == "unknown":
        pytest.skip("a list without marks is one of calls if its first tool is offered")
    assert DELETE in [(call.name, call.arguments) for call in read(d, wire(d, bad, DELETE)).calls if call.whole]


@pytest.mark.parametrize("broken", ['{"path": , "content": "b"}', '{"path": "/a" "content" "b"}', '{"path": ["/a"}'])
@pytest.mark.parametrize("name", ["hermes", "kimi-k2", "deepseek-v3", "deepseek-v31", "internlm2", "nemotron-nano-v2"])
def test_arguments_that_are_no_json_lose_no_other_call(name: str, broken: str) -> None:
    d = get(name)
    text = wire(d, ("write", {"path": "PATH"}), DELETE).replace('{"path": "PATH"}', broken)
    assert broken in text
    assert [(call.name, call.whole) for call in read(d, text).calls] == [("write", False), ("delete_file", True)]
