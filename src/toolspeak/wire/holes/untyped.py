"""Chooses between the two readings of a value that is written without its type: as JSON, or as a string.

If a schema allows a string and other types, the text `[1, 2]` may be a list or a string. It is JSON unless that is not
valid and the string is. Usually the schema of the parameter decides, at the end of the value. If alternatives for all
arguments give the parameter several types, only the whole arguments decide, such as `{"kind": "text", "value": 7}`: they
are held back until the end of the call then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from itertools import combinations
from typing import Any

from ...schema.coerce import fits
from ...schema.kinds import STRING, Kinds, Shapes
from ...schema.nonblocking_json import loads
from ..reading.json_tokens import AddNote, quoted
from ..reading.source import Malformed
from ..reading.state import State
from .typed import Convert, as_json

MOST = 6
"""The most values with two readings in a call, whose combinations are all validated."""
LENGTH = 2_000_000
"""The most characters that are validated, in all combinations together."""


class UntypedValues:
    """The values of one call, whose arguments are emitted in a `with` block. `texts` maps positions in the arguments that
    are held back to the strings that may be meant."""

    __slots__ = ("s", "shapes", "texts")

    def __init__(self, s: State, shapes: Shapes) -> None:
        self.s, self.shapes = s, shapes
        self.texts: dict[int, str] = {}

    def __enter__(self) -> None:
        if self.shapes.types_depend():
            self.s.defer_arguments()

    def __exit__(self, error: type[BaseException] | None, *_: object) -> None:
        if error is None:
            self._choose()
        if error in (None, Malformed):
            self.s.release_arguments()

    def of_key(self, key: str, allowed: Kinds) -> Convert:
        """Converts the text of an argument, which may be of these types, to JSON."""
        return self.converter(self.shapes.member(self.shapes.root, key), allowed) if allowed > STRING else as_json

    def converter(self, schema: object, allowed: Kinds) -> Convert:
        """The same for any value with this schema."""
        return partial(self._convert, schema) if allowed > STRING and isinstance(schema, Mapping) else as_json

    def _convert(self, schema: Mapping[str, Any], text: str, allowed: Kinds, note: AddNote) -> str:
        notes: list[tuple[str, str]] = []
        json = as_json(text, allowed, lambda rule, detail, _=None: notes.append((rule, detail)))
        if json != (string := quoted(text)):
            if (deferred := self.s.deferred_arguments) is not None:
                self.texts[len(deferred)] = string
            elif not self._fits(schema, json) and self._fits(schema, string):
                return string
        for rule, detail in notes:
            note(rule, detail)
        return json

    def _choose(self) -> None:
        """Chooses the valid reading with the fewest strings. If that is not one, all values stay JSON."""
        pieces, count = self.s.deferred_arguments, len(self.texts)
        if pieces is None or not 0 < count <= MOST:
            return
        for strings in range(count + 1 if sum(map(len, pieces)) << count <= LENGTH else 0):
            valid = [places for places in combinations(self.texts, strings) if self._valid(pieces, places)]
            if valid:
                for place in valid[0] if len(valid) == 1 else ():
                    pieces[place] = self.texts[place]
                return

    def _valid(self, pieces: list[str], strings: Iterable[int]) -> bool:
        """Whether the arguments are valid with strings at these places."""
        json = "".join(self.texts[i] if i in strings else piece for i, piece in enumerate(pieces))
        return self._fits(self.shapes.root, json)

    def _fits(self, schema: Mapping[str, Any], json: str) -> bool:
        try:
            return fits(self.shapes.root, schema, loads(json))
        except (ValueError, RecursionError):
            return True  # not known: it is validated before the call runs
