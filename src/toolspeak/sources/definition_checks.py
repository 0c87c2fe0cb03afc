"""Refuses hostile tool definitions from other sources. `refuse_hostile` says which rule one breaks, and where.

Names, descriptions and schemas go into the model's prompt, and a person who reads them should see what the model sees.
So texts may not contain invisible characters, characters that change the writing direction, or control marks of chat
formats. Definitions that are too large, names that no API accepts, and schemas that cannot be checked in bounded time
are refused too. All checks take linear time.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn, cast

from ..errors import DuplicateTool, InvalidTool, ToolError
from ..schema.phrases import short
from ..schema.walk import DEPTH, MANY, escape, resolve
from ..wire.prompt.known_markers import SHAPES, WELL_KNOWN

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-/:]{0,127}")
DESCRIPTION = 32_000
"""The most characters of a description."""
SCHEMA = 256_000
"""The most characters of a schema as JSON."""
EXPANSIONS = 10_000
"""The most schemas that may apply to one value."""

_UNSEEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # control characters, except tab, line feed and carriage return
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff\ud800-\udfff]"
    "|[\ufe00-\ufe0f]{2,}"  # variation selectors: one after a letter is normal, several in a row hide a text
)
_JOINERS = "\u200c\u200d"
_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_MARKER = re.compile("|".join([*map(re.escape, WELL_KNOWN), *SHAPES]))

# Keywords with schemas that apply to the same value as the schema around them.
_IN_PLACE = ("not", "if", "then", "else")


def refuse_hostile(name: object, description: object = "", schema: object = None, **others: object) -> None:
    """Raise InvalidTool, with the reason and `path`, if a foreign definition may not be shown to a model.

    `schema` is the JSON Schema of the arguments; `others` is further JSON data of the definition, such as `title` and
    `annotations`. The schema need not be valid: that is for `as_tool` to check.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        _refuse(
            name if isinstance(name, str) else "",
            "/name",
            f"no API takes {_ascii_name(name)} as a tool's name: expected ASCII letters, digits, _ - . / : (a letter or _ "
            "first, 128 at most)",
        )
    _marked(name, "/name", name)
    if description is not None:
        if not isinstance(description, str):
            _refuse(name, "/description", f"its description must be text; got {short(description)}")
        if len(description) > DESCRIPTION:
            _refuse(
                name,
                "/description",
                f"its description has {len(description):,} characters; at most {DESCRIPTION:,} are taken",
            )
        _unclean(description, "/description", name)
    for part, value in (("schema", schema), *others.items()):
        _small(value, f"/{part}", name)
        for text, path in _texts(value, f"/{part}"):
            _unclean(text, path, name)
    if isinstance(schema, Mapping):
        _bounded(cast("Mapping[str, Any]", schema), name)


def refuse_duplicates(names: Iterable[str], source: str) -> None:
    """Raise DuplicateTool if a source offers a name twice: the order must not decide which tool is called."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DuplicateTool(
                f"{source} offers two tools named {_ascii_name(name)}: leave them out, or have one renamed", name=name
            )
        seen.add(name)


def refuse_unsendable(arguments: Mapping[str, Any]) -> None:
    """Raise ToolError if arguments cannot be sent because of a lone surrogate, which has no UTF-8 form."""
    for text, path in _texts(arguments, ""):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ToolError(
                f"the arguments cannot be sent: half a character, U+{ord(text[error.start]):04X}, at {path or '/'}"
            ) from None


# ------------------------------------------------------------------ texts


def _unclean(text: str, path: str, tool: str) -> None:
    """Refuse a text with invisible characters, or with control marks of a chat format."""
    if not text.isascii() or not text.isprintable():
        for match in _UNSEEN.finditer(text):
            if not _joins(text, match.start()):
                _refuse(
                    tool,
                    path,
                    f"{_called(match[0][0])} at character {match.start()}, near {_near(text, match.start())}",
                )
    _marked(text, path, tool)


def _marked(text: str, path: str, tool: str) -> None:
    if match := _MARKER.search(text):
        _refuse(tool, path, f"the control mark {short(match[0])} of a chat format at character {match.start()}")


def _joins(text: str, at: int) -> bool:
    """Whether a joiner stands between characters of a script, or of an emoji, that use joiners."""
    if text[at] not in _JOINERS or not 0 < at < len(text) - 1:
        return False
    return all(ord(c) > 0x2FF and not (_UNSEEN.match(c)) for c in (text[at - 1], text[at + 1]))


def _called(character: str) -> str:
    code = f"U+{ord(character):04X}"
    if character in _BIDI:
        return f"{code}, which turns the direction of writing,"
    if 0xD800 <= ord(character) <= 0xDFFF:
        return f"half a character, {code},"
    kind = "a control character" if unicodedata.category(character) == "Cc" else "which cannot be seen"
    return f"{code}, {kind}," if kind.startswith("which") else f"{kind}, {code},"


def _ascii_name(name: object) -> str:
    """Return a name with all non-ASCII characters escaped."""
    return json.dumps(name[:80]) if isinstance(name, str) else short(name)


def _near(text: str, at: int) -> str:
    """Return the text around a position, with unusual characters escaped."""
    return ascii(text[max(0, at - 20) : at + 20])


def _small(value: object, path: str, tool: str) -> None:
    """Refuse data that is not JSON, nested too deep or too large."""
    deepest = _depth(value)
    if deepest > DEPTH:
        _refuse(tool, path, f"it is nested deeper than {DEPTH} levels")
    try:
        size = len(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        _refuse(tool, path, f"it is not JSON: {error}")
    if size > SCHEMA:
        _refuse(tool, path, f"it has {size:,} characters; at most {SCHEMA:,} are taken")


def _depth(value: object) -> int:
    """Return the nesting depth of data, counting no further than the first level that is too deep."""
    level, depth = [value], 0
    while level and depth <= DEPTH:
        inner: list[object] = []
        for one in level:
            if isinstance(one, Mapping):
                inner += cast("Mapping[str, object]", one).values()
            elif isinstance(one, list | tuple):
                inner += cast("list[object]", one)
        level, depth = inner, depth + 1
    return depth


def _texts(value: object, path: str) -> Iterator[tuple[str, str]]:
    """Yield (text, JSON pointer) for every string in JSON data, including field names. An unclean field name is yielded
    before a pointer is made of it."""
    if isinstance(value, str):
        yield value, path
    elif isinstance(value, Mapping):
        for key, part in cast("Mapping[Any, Any]", value).items():
            yield str(key), path
            yield from _texts(part, f"{path}/{escape(str(key))}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(cast("list[Any]", value)):
            yield from _texts(part, f"{path}/{index}")


# ------------------------------------------------------------------ schemas that are expensive to check


def _bounded(root: Mapping[str, Any], tool: str) -> None:
    """Refuse a schema that refers to itself for the same value, so that a check would never end, and one that expands
    into too many schemas for one value."""
    counted: dict[int, int] = {}
    under_way: set[int] = set()

    def count(node: object, path: str) -> int:
        if not isinstance(node, Mapping):
            return 1
        known = counted.get(id(cast("object", node)))
        if known is not None:
            return known
        if id(cast("object", node)) in under_way:
            _refuse(
                tool,
                path,
                "the schema comes back to itself without going deeper into the value: checking it would never end",
            )
        if len(under_way) > DEPTH:
            _refuse(tool, path, f"the schema refers on more than {DEPTH} times")
        under_way.add(id(cast("object", node)))
        total = 1
        for part, where in _beside(cast("Mapping[str, Any]", node), root, path):
            total += count(part, where)
            if total > EXPANSIONS:
                _refuse(tool, path, f"the schema expands into more than {EXPANSIONS:,} for one value")
        under_way.discard(id(cast("object", node)))
        counted[id(cast("object", node))] = total
        return total

    for node, path in _dicts(root, "/schema"):
        count(node, path)


def _beside(node: Mapping[str, Any], root: Mapping[str, Any], path: str) -> Iterator[tuple[object, str]]:
    """Yield (schema, JSON pointer) for the schemas that apply to the same value as `node`."""
    for key in ("$ref", "$dynamicRef"):
        if isinstance(node.get(key), str):
            yield resolve(root, node[key]), f"{path}/{key}"
    for key in _IN_PLACE:
        if key in node:
            yield node[key], f"{path}/{key}"
    for key in MANY - {"prefixItems"}:
        if isinstance(node.get(key), list):
            for index, part in enumerate(node[key]):
                yield part, f"{path}/{key}/{index}"
    if isinstance(node.get("dependentSchemas"), Mapping):
        for name, part in node["dependentSchemas"].items():
            yield part, f"{path}/dependentSchemas/{escape(str(name))}"


def _dicts(value: object, path: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    """Yield every dict in JSON data with its JSON pointer; any of them may be used as a schema through a reference."""
    if isinstance(value, Mapping):
        node = cast("Mapping[str, Any]", value)
        yield node, path
        for key, part in node.items():
            yield from _dicts(part, f"{path}/{escape(str(key))}")
    elif isinstance(value, list | tuple):
        for index, part in enumerate(cast("list[Any]", value)):
            yield from _dicts(part, f"{path}/{index}")


def _refuse(tool: str, path: str, why: str) -> NoReturn:
    raise InvalidTool(f"the tool {_ascii_name(tool)} is refused, at {path}: {why}", tool=tool, path=path)
