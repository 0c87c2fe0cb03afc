"""A value whose own closer is missing, and which ends with something like a tag: that was probably meant to close it."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from spoken import TALKING, wire
from wire_cases import read_in_pieces, told

from toolspeak.types import Tool
from toolspeak.wire.dialect import Dialect, Tagged, Tree

PROPERTIES = {"path": {"type": "string"}, "dry_run": {"type": "boolean"}, "content": {"type": "string"}}
TOOLS: tuple[Tool[..., Any], ...] = (
    Tool("write", "", {"type": "object", "properties": PROPERTIES, "required": ["path"]}),
)
IN_TAGS = [d for d in TALKING if any(isinstance(part, (Tagged, Tree)) for part in d.call)]
BY_TAGS = pytest.mark.parametrize("d", IN_TAGS, ids=lambda d: d.name)
PAGE = "<html>\n<body>\n" + "<p>Some <b>bold</b> words &amp; more.</p>\n" * 30 + "</body>\n</html>"
PARTS = "<parameters>\n" + "<part>1</part>\n" * 50

read = partial(read_in_pieces, tools=TOOLS)


def closer(d: Dialect) -> str:
    own = next(part for part in d.call if isinstance(part, (Tagged, Tree)))
    return own.close.strip() if isinstance(own, Tagged) else f"{own.mark}</path>"


def written(d: Dialect, value: str, end: str, **others: bool) -> str:
    """A call with a value that ends otherwise than with its closer."""
    whole = wire(d, ("write", {"path": "VALUE", **others}))
    before, _, behind = whole.partition("VALUE")
    return before + value + behind.replace(closer(d), end, 1)


def wrong(d: Dialect) -> list[str]:
    own, tags = closer(d), ["</file_path>", "</value>", "</arg>", "</argvalue>", "</parameter_name>", "</paramater>"]
    i = max(own.rfind("</"), 0)
    name = own[i + 2 : -1]
    if name and own.startswith("</", i):
        tags += [
            f"</{name}s>",
            f"</{name}_name>",
            f"</{name.title()}>",
            f"</ {name}>",
            f"</{name}",
            f"/{name}>",
            f"<{name}>",
        ]
    else:
        tags += [own.replace("end", "ends").replace("close", "closed")]
    tags += [own[:at] + own[at + 1 :] for at in range(i, len(own))]
    return [tag for tag in tags if tag not in own]


@BY_TAGS
def test_a_wrong_closer_is_no_part_of_a_value(d: Dialect) -> None:
    for tag in wrong(d):
        for text in (written(d, "/data", tag), written(d, "/data\n", tag), written(d, "/data", tag, dry_run=True)):
            whole = [call.arguments for call in read(d, text).calls if call.whole]
            assert [arguments["path"].strip() for arguments in whole] in ([], ["/data"]), text


@BY_TAGS
def test_a_long_value_ends_with_a_closer_of_a_call(d: Dialect) -> None:
    for tag in ("</parameters>", "</arg_value>", "</content>"):
        whole = [call for call in read(d, written(d, PAGE + "\n", tag)).calls if call.whole]
        assert tag in closer(d) or whole == [], tag


@BY_TAGS
@pytest.mark.parametrize(
    "value",
    [
        "",
        "/data",
        "<div>x</div>",
        "<a/>\n<b>1</b>",
        "x <y",
        "List<String>",
        PAGE,
        PARTS + "</parameters>",
        "a > b",
        "n/a",
    ],
)
def test_a_value_may_end_with_its_own_tags(d: Dialect, value: str) -> None:
    value = f"value: {value}"
    for line in ("", "\n"):
        reply = read(d, written(d, value + line, ""))
        assert [(name, arguments["path"].strip(), whole) for name, arguments, whole in told(reply)] == [
            ("write", value.strip(), value[7:] != PARTS + "</parameters>")
        ]
