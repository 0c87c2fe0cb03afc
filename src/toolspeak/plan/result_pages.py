"""Splits tool results that are too large for a model into pages: it sees the beginning and the end, and can read the
rest.

Nothing is stored. Clients send the whole conversation with every request, so a result is identified by a digest of its
text, and a page is read from the request itself. Any process can answer, nothing outlives the conversation, and a
client can only read what it sent.

A result is cut at the same places in every request, also before its tool is defined, so that the beginning of the
prompt stays the same. Results that were cleared (`plan.clearing`) can be read in the same way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ..api.json_stream import records
from ..policy.content_origin import framed_part
from ..schema.suggestions import free_name
from ..tool_results import fair_share
from ..types import Message, Tool
from .clearing import NOTE, clear_results
from .token_estimate import LETTERS, about

NAME = "read_more"
DESCRIPTION = (
    "Reads more of the result of a tool, where it was too long to be shown whole or was cleared to make room. The text that "
    "stands where something is missing says which `result`, and where to `start`."
)
PARAMETERS = {
    "type": "object",
    "properties": {
        "result": {"type": "string", "description": "The id of the result."},
        "start": {"type": "integer", "description": "The number of the character to begin with."},
        "find": {"type": "string", "description": "Begin where this text stands next instead."},
    },
    "required": ["result"],
}
LONGEST = 1_000_000
"""The most characters of one result that stay in a conversation, so that all of it can be read."""
LONGEST_IN_ALL = 4_000_000
"""The most characters of all results in a conversation."""
TAIL = 3
"""One part in so many of a page shows the end of a result; the rest shows its beginning."""
LISTED = 20
"""The most ids that a problem lists."""
GONE = "This result is no longer in the conversation: call its tool again."
BEFORE = 200
"""Characters that are shown before a search hit."""


@dataclass(frozen=True, slots=True)
class PageSize:
    """The size of a page: at most so many estimated `tokens` and so many `characters`. `together` is the token limit
    for all results of one turn."""

    tokens: int
    characters: int = LONGEST
    together: int = LONGEST

    def fits(self, text: str) -> bool:
        """Whether a text fits on one page."""
        if len(text) > self.characters:
            return False
        return len(text) <= self.tokens or about(text) <= self.tokens

    def within(self, text: str) -> int:
        """The number of characters at the beginning of a text that fit, at least one."""
        end = min(len(text), self.characters, LETTERS * self.tokens)
        while end > 1 and (tokens := about(text[:end])) > self.tokens:
            end = max(1, min(end - 1, end * self.tokens // tokens))
        return end

    def beside(self, texts: Sequence[str]) -> PageSize:
        """The page size for each of these texts, the results of one turn."""
        if sum(map(len, texts)) <= self.together:
            return self
        sizes = [min(self.tokens, about(text)) for text in texts]
        if sum(sizes) <= self.together:
            return self
        return PageSize(min(self.tokens, fair_share(sizes, self.together)), self.characters, self.together)

    def part(self, share: int, of: int) -> PageSize:
        """The given share of this size."""
        return PageSize(max(1, self.tokens * share // of), max(1, self.characters * share // of))


@dataclass(frozen=True, slots=True)
class TextPage:
    """A page of a result: the characters from `start` to `end`; or the `problem` of a call that reads nothing."""

    result: str
    start: int = 0
    end: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class PageRow:
    """A message as the model reads it. `whole` is the full text of a result that was cut; `read` marks a page that was
    read."""

    message: Message
    whole: str = ""
    read: bool = False

    @property
    def text(self) -> str:
        """The full text of a result."""
        return self.whole or "\n".join(_texts(self.message.get("content")))


def read_tool(names: Collection[str]) -> Tool[..., Any]:
    """The tool that reads pages, with a name that no other tool has."""
    return Tool(free_name(NAME, names), DESCRIPTION, PARAMETERS)


def too_large(messages: Sequence[Message], size: PageSize) -> bool:
    """Whether any result exceeds a page, or the results of a turn exceed their common limit."""
    turns = (texts_of(turn) for results, turn in groupby(messages, is_result) if results)
    return any(not size.beside(texts).fits(text) for texts in turns for text in texts)


def texts_of(results: Iterable[Message]) -> list[str]:
    """The texts of results."""
    return [text for message in results for text in _texts(message.get("content"))]


def is_result(message: Message) -> bool:
    """Whether a message is the result of a call."""
    return message.get("role") == "tool"


def page(texts: Mapping[str, str], arguments: Mapping[str, Any], size: PageSize) -> TextPage:
    """The page that a call reads. Small mistakes are accepted: a number as a string or out of range, an abbreviated
    id."""
    requested, start, find = _text(arguments, "result"), _number(arguments.get("start")), _text(arguments, "find")
    name = _named(texts, requested)
    if name is None:
        return TextPage(
            "", problem=f"There is no result {requested[:100]!r} to read. There are {', '.join([*texts][-LISTED:])}."
        )
    text = texts[name]
    at = text.find(find, min(start, len(text)))
    if at < 0:
        return TextPage("", problem=f"{find[:100]!r} does not stand in {name} from character {start} on.")
    start = max(start, at - BEFORE)
    if start >= len(text):
        return TextPage("", problem=f"{name} has {len(text)} characters: nothing follows character {start}.")
    return TextPage(name, start, start + size.within(text[start : start + size.characters]))


def page_text(texts: Mapping[str, str], read: TextPage, tool: str) -> str:
    """The text of a page for the model."""
    if read.problem:
        return read.problem
    text = texts.get(read.result)
    if text is None:
        return GONE
    rest = f'{tool}(result="{read.result}", start={read.end}) reads on' if read.end < len(text) else "this is the end"
    return (
        f"{framed_part(text, read.start, read.end)}\n[… characters {read.start} to {read.end} of {len(text)}; {rest} …]"
    )


def _named(texts: Mapping[str, str], key: str) -> str | None:
    """The full id; None if there is none, or if several match."""
    if key in texts:
        return key
    begun = [name for name in texts if name.startswith(key)]
    return begun[0] if len(begun) == 1 else None


def _text(arguments: Mapping[str, Any], name: str) -> str:
    value = arguments.get(name)
    return value.strip() if isinstance(value, str) else ""


class ResultPages:
    """The results of one conversation, cut and cleared.

    `tool` is the name of the tool that reads pages, "" if it cannot be called. `texts` are the readable results by id.
    """

    def __init__(self, size: PageSize, tool: str) -> None:
        self.texts: dict[str, str] = {}
        self._size = size
        self._tool = tool

    def cut(self, messages: Sequence[Message]) -> list[PageRow]:
        """The messages, with results cut that are too large."""
        rows: list[PageRow] = []
        for results, turn in groupby(messages, is_result):
            together = list(turn)
            size = self._size.beside(texts_of(together)) if results else self._size
            rows += [self._cut(message, size) if results else PageRow(message) for message in together]
        return rows

    def _cut(self, message: Message, size: PageSize) -> PageRow:
        content = message.get("content")
        if all(map(size.fits, _texts(content))):
            return PageRow(message)
        if isinstance(content, str):
            return PageRow({**message, "content": self._beginning_and_end(content, size)}, content)
        parts = [self._part(part, size) for part in records(content)]
        return PageRow({**message, "content": parts}, PageRow(message).text)

    def clear(self, rows: Sequence[PageRow], tokens: int, last: int) -> tuple[list[PageRow], int]:
        """The rows with old results cleared, and the number of cleared ones. See `plan.clearing`."""
        _, places = clear_results([row.message for row in rows], tokens, last)
        cleared = list(rows)
        for place in places:
            cleared[place] = self._cleared(rows[place])
        return cleared, len(places)

    def know(self, rows: Sequence[PageRow]) -> None:
        """Makes all these results readable, since any of them may have been cleared and read before."""
        for row in rows if self._tool else ():
            if row.message.get("role") == "tool":
                self._name(row.text)

    def first(self, rows: Sequence[PageRow]) -> int | None:
        """The index of the first message that refers to a readable result."""
        readable = rows if self._tool else ()
        return next((place for place, row in enumerate(readable) if row.whole), None)

    def _cleared(self, row: PageRow) -> PageRow:
        whole = "" if row.read else row.text
        if not self._tool or len(whole) <= len(NOTE):
            return PageRow({**row.message, "content": NOTE})
        message = f'This result was cleared to make room: {self._tool}(result="{self._name(whole)}") shows it again.'
        return PageRow({**row.message, "content": f"({message})"}, whole)

    def _part(self, part: dict[str, Any], size: PageSize) -> dict[str, Any]:
        text = part.get("text")
        return {**part, "text": self._beginning_and_end(text, size)} if isinstance(text, str) else part

    def _beginning_and_end(self, text: str, size: PageSize) -> str:
        if size.fits(text):
            return text
        start = size.part(TAIL - 1, TAIL).within(text)
        end = len(text) - size.part(1, TAIL).within(text[: start - 1 : -1])
        missing = f"characters {start} to {end} of {len(text)} are not shown"
        if self._tool:
            missing += f'; {self._tool}(result="{self._name(text)}", start={start}) reads on'
        return f"{text[:start]}\n[… {missing} …]\n{text[end:]}"

    def _name(self, text: str) -> str:
        """The id of a text, which becomes readable."""
        name = "r" + hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=5).hexdigest()
        self.texts[name] = text
        return name


def _texts(content: Any) -> list[str]:
    if isinstance(content, str):
        return [content]
    return [part["text"] for part in records(content) if isinstance(part.get("text"), str)]


def _number(value: Any) -> int:
    try:
        return max(0, int(value))
    except (TypeError, ValueError, OverflowError):
        return 0
