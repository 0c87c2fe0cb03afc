"""The prompt of a row: a column, or a text with columns in braces."""

from __future__ import annotations

import string
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, cast

from ..errors import UsageError
from .row import Messages, is_empty, is_null, is_unicode


@dataclass(frozen=True, slots=True)
class Prompt:
    """A template for prompts. `parts` are texts, each with the column that follows it, or None.

    A `column` may contain a text or a list of messages.
    """

    source: str
    column: str = ""
    parts: tuple[tuple[str, str | None], ...] = ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that it needs."""
        return (self.column,) if self.column else tuple(name for _, name in self.parts if name is not None)

    def missing(self, columns: Collection[str]) -> str:
        """Return what rows with these columns lack; "" for nothing."""
        absent = next((name for name in self.columns if name not in columns), None)
        return "" if absent is None else f"no column {absent!r}; the columns are: {', '.join(map(str, columns))}"

    def messages(self, data: Mapping[str, Any]) -> Messages:
        """Return the messages for a row. Raises UsageError if a column is missing, or if all of them are empty.

        An empty cell beside others inserts nothing.
        """
        if wrong := self.missing(data):
            raise UsageError(wrong)
        if self.columns:
            _check_not_empty(self.columns, data)
        if self.column:
            value = data[self.column]
            if isinstance(value, list):
                return cast("Messages", value)
            return [{"role": "user", "content": _text(self.column, value)}]
        content = "".join(text + ("" if name is None else _text(name, data[name])) for text, name in self.parts)
        return [{"role": "user", "content": content}]


def prompt(source: str) -> Prompt:
    """Return the prompt for a column's name, or for a text with columns in braces (`{{` is a literal brace).

    Raises UsageError for any other text.
    """
    if not isinstance(source, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"prompt: expected a column's name or a text with columns in braces, received {source!r:.80}")
    if not set("{}") & set(source):
        return Prompt(source, column=source)
    try:
        parsed = list(string.Formatter().parse(source))
    except ValueError as error:
        raise UsageError(f"prompt: {source!r:.80}: {error}; write {{{{ for a literal brace") from None
    for _, name, spec, conversion in parsed:
        if name is not None and (name, spec, conversion) != (name or None, "", None):
            raise UsageError(f"prompt: expected a column's name in braces, as in {{title}}, received {source!r:.80}")
    return Prompt(source, parts=tuple((text, name) for text, name, _, _ in parsed))


def _check_not_empty(columns: Collection[str], data: Mapping[str, Any]) -> None:
    if all(is_empty(data[name]) for name in columns):
        quoted = ", ".join(map(repr, dict.fromkeys(columns)))
        what = f"column {quoted} is" if len(set(columns)) == 1 else f"columns {quoted} are"
        raise UsageError(f"the {what} empty")


def _text(name: str, value: Any) -> str:
    if is_null(value):
        return ""
    text = value if isinstance(value, str) else str(value)
    if not is_unicode(text):
        raise UsageError(f"the column {name!r} is not UTF-8")
    return text
