"""Removes the user's own secrets (`auth=`, `headers=`, a key) from what a server sends, before anybody reads it.

Secrets are found as they are, in the escapes of JSON, XML and URLs, in base64 of a text that contains them, and in
hexadecimal digits. Not found are a secret that a server splits, reverses, or encodes twice or in another code, and a short
one in a successful answer, where it may occur by chance.
"""

from __future__ import annotations

import base64
import dataclasses
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from html.entities import codepoint2name
from itertools import accumulate, islice
from typing import Any, cast

EXACT = 8
"""The shortest secret that is removed from successful answers."""
LONGEST = 1_000
"""The longest secret that is searched in other notations."""
PIECE = 50_000
"""The characters that are searched in one step. The library for patterns lets no other thread run during a step."""
VALUES = 500
"""The most values of injected objects that are searched for texts."""
SPELLED = 2_000
"""The most characters of injected texts that are searched in other notations. Their pattern takes about 0.2 s to compile."""
INJECTED = "secret"
"""The name of what is a secret whatever it contains."""
SECRET = re.compile(r"pass|pwd|secret|token|key|auth|cred|cookie|session|signature|private|dsn|pin\b", re.IGNORECASE)
"""Matches a part of the name of a secret."""
WORD, PARTS = re.compile(r"[A-Za-z]?[a-z]{0,14}|[A-Z]{1,15}|[0-9]{1,5}"), re.compile(r"[\W_]+")
BROKEN = (ArithmeticError, AttributeError, LookupError, OSError, RuntimeError, TypeError, ValueError)
"""What an object may raise when it is looked at. Then nothing in it is searched."""
ESCAPED = dict(zip("\"\\/'\n\r\t\b\f", "\"\\/'nrtbf", strict=True))
"""Characters that JSON and Python write as a backslash and a letter."""
NAMED = {**codepoint2name, ord("'"): "apos"}
"""The names of characters in HTML and XML."""
WIDEST = 20
"""The most characters for one character of a secret."""


def in_header(value: str) -> Iterator[str]:
    """Yield the secrets in a header's value: the whole value, the part after `Bearer` or similar, and the content of
    `Basic`."""
    yield value
    scheme, _, rest = value.strip().partition(" ")
    if not rest:
        return
    yield rest.strip()
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(rest, validate=True).decode()
        except ValueError:
            return
        yield pair
        yield pair.partition(":")[2]


def redact(text: str, secrets: Iterable[str]) -> str:
    """Return the text with every secret replaced, and every word that starts like a long secret: servers echo keys,
    even masked. One of fewer than 8 characters may also be a part of usual words, in which it stays."""
    for secret in sorted({s for s in secrets if len(s) >= 4}, key=len, reverse=True):
        text = _short(secret).sub("[hidden]", text) if len(secret) < 8 else text.replace(secret, "[hidden]")
        if len(secret) >= 16:
            text = re.sub(re.escape(secret[:8]) + r"[^\s\"'<>,;]*", "[hidden]", text)
    return text


def _short(secret: str) -> re.Pattern[str]:
    """A pattern of a short secret that is no part of a longer word."""
    begins, ends = (r"(?<![^\W_])" if secret[0].isalnum() else "", r"(?![^\W_])" if secret[-1].isalnum() else "")
    return re.compile(begins + re.escape(secret) + ends)


class Secrets:
    """Secrets that must not appear in answers: servers echo keys, and escape what they echo."""

    def __init__(self, secrets: Iterable[str], spelled: int | None = None) -> None:
        """Of all secrets together, at most `spelled` characters are searched in other notations."""
        self._secrets = list(dict.fromkeys(filter(None, secrets)))
        long = [one for one in self._secrets if EXACT <= len(one) <= LONGEST]
        if spelled is not None:
            long = [one for one, total in zip(long, accumulate(map(len, long)), strict=True) if total <= spelled]
        long.sort(key=len, reverse=True)
        forms = [form for one in long for form in ("".join(map(_any_form, one)), *_coded_forms(one))]
        self._escaped = re.compile("|".join(forms)) if forms else None
        self._longest = WIDEST * max(map(len, long), default=0)

    def out_of(self, text: str, *, exact: bool = False) -> str:
        """Return the text without the secrets in any escaped form. Unless `exact`, also without text that looks like a
        secret."""
        text = "".join(self._pieces(text))
        return text if exact else redact(text, self._secrets)

    def _pieces(self, text: str) -> Iterator[str]:
        """Yield the text without the secrets, in pieces."""
        at = 0
        while self._escaped and at < len(text):
            end = at + PIECE
            match = self._escaped.search(text, at, end + self._longest)
            if match is None or match.start() >= end:
                yield text[at:end]
                at = end
            else:
                yield text[at : match.start()] + "[hidden]"
                at = match.end()
        yield text[at:]

    def out_of_data(self, value: Any) -> Any:
        """Return JSON data of the same shape without the secrets. A number that contains one becomes a text."""
        if not self._escaped:
            return value
        text = json.dumps(value, ensure_ascii=False)
        clean = self.out_of(text, exact=True)
        return value if clean == text else self._out_of_parts(value)

    def _out_of_parts(self, value: Any) -> Any:
        """Return JSON data without the secrets in its texts: in the JSON of all, the end of a secret could hide the end of a
        text."""
        if isinstance(value, str):
            return self.out_of(value, exact=True)
        if isinstance(value, Mapping):
            rows = cast("Mapping[str, Any]", value).items()
            return {self.out_of(name, exact=True): self._out_of_parts(part) for name, part in rows}
        if isinstance(value, list | tuple):
            return [self._out_of_parts(part) for part in cast("Iterable[Any]", value)]
        text = json.dumps(value)
        clean = self.out_of(text, exact=True)
        return value if clean == text else clean


def injected_texts(values: Iterable[object]) -> Secrets:
    """Return the texts in injected values as secrets: the injected texts themselves, and those that may be secrets in
    containers and in fields of data classes and models, at any depth, and in the attributes of an injected object
    itself. At most `VALUES` values are searched.
    """
    todo = [(INJECTED, value) for value in values]
    own, seen = {id(value) for _, value in todo}, set[int]()
    texts: list[str] = []
    for name, value in todo:  # grows
        if isinstance(value, str | bytes | bytearray):
            text = value if isinstance(value, str) else value.decode("utf-8", "replace")
            texts += [text] if SECRET.search(name) or not _in_words(text) else []
        elif id(value) not in seen:
            seen.add(id(value))
            with suppress(*BROKEN):
                todo += islice(_parts(name, value, attributes=id(value) in own), max(0, VALUES - len(todo)))
    return Secrets(texts, SPELLED)


def _in_words(text: str) -> bool:
    """Whether a text consists of usual words and short numbers, such as `utf-8`, `orders` or `/srv/notes`: hiding them would make
    an error unreadable."""
    return len(text) <= LONGEST and all(map(WORD.fullmatch, PARTS.split(text)))


def _parts(name: str, value: object, *, attributes: bool) -> Iterable[tuple[str, object]]:
    """Return the values in a container, or the fields of a record, with their names; with `attributes`, those of any
    object. `name` is that of the container."""
    if isinstance(value, Mapping):
        return ((str(key), part) for key, part in cast("Mapping[Any, object]", value).items())
    name = "" if name == INJECTED else name
    if isinstance(value, list | tuple | set | frozenset):
        return ((name, part) for part in cast("Iterable[object]", value))
    if hasattr(type(value), "get_secret_value"):
        return ((INJECTED, cast("Any", value).get_secret_value()),)
    return _fields(value, attributes=attributes)


def _fields(value: object, *, attributes: bool) -> Iterable[tuple[str, object]]:
    kind = type(value)
    if dataclasses.is_dataclass(value):
        return ((field.name, getattr(value, field.name, None)) for field in dataclasses.fields(value))
    if attributes or hasattr(kind, "__pydantic_fields__") or hasattr(kind, "__attrs_attrs__"):
        slots = [slot for one in kind.__mro__ for slot in getattr(one, "__slots__", ())]
        return [*getattr(value, "__dict__", {}).items(), *((slot, getattr(value, slot, None)) for slot in slots)]
    return ()


def _coded_forms(secret: str) -> list[str]:
    """Return patterns of a secret in hexadecimal digits, and in base64 at each of its three alignments; characters that
    it shares with its neighbors are left out."""
    raw = secret.encode()
    forms = [f"(?i:{raw.hex()})"]
    for before in range(3):
        text = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        whole = text[(before * 8 + 5) // 6 : (before + len(raw)) * 8 // 6]
        forms.append("".join({"+": _any_letter("+-"), "/": _any_letter("/_")}.get(letter, letter) for letter in whole))
    return forms


def _any_letter(letters: str) -> str:
    return f"(?:{'|'.join(map(_any_form, letters))})"


@lru_cache(1024)
def _any_form(character: str) -> str:
    """Return a pattern of all notations of a character in JSON, XML and URLs."""
    code = ord(character)
    digits = _any_case(f"{code:x}")
    forms = [re.escape(character), f"&#0{{0,4}}{code};", f"&#[xX]0{{0,4}}{digits};"]
    units = character.encode("utf-16-be", "surrogatepass").hex()  # JSON writes an emoji as two halves
    halves = [units[at : at + 4].lstrip("0") or "0" for at in range(0, len(units), 4)]
    forms += ["".join(rf"\\{{1,4}}u0{{0,3}}{_any_case(half)}" for half in halves)]
    forms += [rf"\\{{1,4}}{re.escape(letter)}"] if (letter := ESCAPED.get(character)) else []
    forms += [f"&{named};"] if (named := NAMED.get(code)) else []
    forms += [r"\+"] if character == " " else []  # in forms and queries
    forms += ["".join(f"%(?:25)?{_any_case(f'{byte:02x}')}" for byte in character.encode("utf-8", "replace"))]
    return f"(?:{'|'.join(forms)})"


def _any_case(digits: str) -> str:
    """Return a pattern of hexadecimal digits in small letters and capitals."""
    return "".join(f"[{c}{c.upper()}]" if c.isalpha() else c for c in digits)
