"""Reads the parameters of one call that are between tags. The difficulty is to find the end of a value, and to handle
departures from the dialect.

A closer counts only if something legal follows it: the next opener, a word that may come after the arguments, or the
end. Otherwise it is part of the value. If a closer is missing, two other things end a value: a line with the opener of
a key that the schema has and that was not given yet (in a value that is no string: at any place); and the closers of
the call in sequence up to the end of the text (or, from the start of a line, three such words). Text that quotes less
than that stays text. A whole call in a value belongs to it; if one only begins there, the value may have lost its
closer, and the call is doubtful (`inner_calls`). A parameter in tags of another spelling is read if its key is certain
(`parameter_tag_variants`). Anything else after the parameters that may not follow a call makes the call malformed.

A single parameter with a known name for all arguments, which the schema does not have, has them as a JSON object.

A key that comes twice keeps its first value, since that has been emitted already; the second becomes a note. The tags
around a key may be repeated, and a call without parameters may have the closer of one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from ...schema.kinds import ANY, OF_NAME, STRING, Kinds, Shapes
from ..dialect import Tagged
from ..reading.json_tokens import quoted
from ..reading.lookahead import ahead, token_ahead
from ..reading.source import SPACE, Malformed, Scan, at, blank, expect, peek
from ..reading.state import State
from .damaged_tags import lost_closer, lost_opener
from .inner_calls import InnerCalls
from .parameter_tag_variants import CLOSERS, QUOTES, SpelledOpener, object_members, opener, unquoted
from .quoted_value import QuotedValue
from .tag_words import TagWords
from .typed import text_until, value
from .untyped import UntypedValues

WORD = re.compile(r"[\w.\[\] |,-]*").fullmatch
"""Matches what may be a type; it may be unknown."""
RUN = 3
"""So many words that may follow a call, in sequence from the start of a line, end a value that has no closer."""
WRAPPERS = frozenset(["arguments", "input", "parameters", "properties"])
"""Names of a parameter in which models put all arguments."""


class TagReader:
    """The parameters of one call."""

    __slots__ = (
        "begun",
        "ends",
        "hole",
        "inner_calls",
        "inside",
        "keys",
        "odd",
        "s",
        "schema",
        "shapes",
        "swallowed",
        "unclosed",
        "unsure",
        "untyped",
        "went_on",
        "words",
    )

    def __init__(self, s: State, hole: Tagged, words: TagWords, schema: Mapping[str, Any]) -> None:
        self.s, self.hole, self.words, self.schema = s, hole, words, schema
        self.shapes = Shapes(schema)
        self.untyped = UntypedValues(s, self.shapes)
        self.inner_calls = InnerCalls(s, words.call, words.follow[:1])
        self.ends = words.ends
        self.odd: tuple[str, ...] = ()
        self.keys: set[str] = set()
        self.begun: list[tuple[str, int]] = []
        self.unsure: set[str] = set()
        self.swallowed = ""
        """The tool whose call begins inside a value, or what else may not belong to the value."""
        self.went_on = self.unclosed = False
        self.inside = 0
        """Openers in the value that have no closer yet."""

    def parameter(self) -> Scan[None]:
        """Reads from an opener, which is present, to after the closer."""
        s, words = self.s, self.words
        s.pos = SPACE(s.text, s.pos).end()
        token = yield from token_ahead(s, len(words.opener), words.key_ends)
        if token is None or words.close in token[0] + token[1]:
            return (yield from self.respelled((yield from self.with_value())))
        key = self.key(self.once(token[0].strip()))
        if self.has_attributes(key):
            if other := (yield from opener(s, 0, lambda name: name not in self.keys)):
                return (yield from self.respelled(other))
            raise Malformed(f"{key[:40]!r} is no key")
        if not self.may_be_key(key):
            raise Malformed(f"{key[:40]!r} is no key")
        s.pos += len(words.opener) + len(token[0]) + len(token[1])
        word = yield from self.type_word(token[1])
        twice, known = key in self.keys, self.named(key)
        if all((not known, key in WRAPPERS, not self.keys, self.schema.get("properties"))):
            return (yield from self.wrapper(key, word))
        if words.mid[-1].startswith("<"):
            yield from self.skip(words.mid[-1], "repeated-tag")
        if not twice:
            self.begin(key)
        self.close_with(key if known else "")
        yield from self.lead()
        if twice:
            return (yield from self.drop(key))
        return (yield from self.value(key, self.allowed(key, word)))

    def with_value(self) -> Scan[SpelledOpener]:
        """The opener ahead of a key that has no end and has its value behind a `=`."""
        words = self.words
        token = yield from token_ahead(self.s, len(words.opener), ("=", words.close))
        tag = words.opener + ("".join(token) if token else "")
        key = tag[len(words.opener) : -1].strip()
        marked = yield from ahead(self.s, len(tag), words.mid)
        if any((tag[-1] != "=", marked > 0, not self.wanted(key))):
            raise Malformed("expected a key")
        return SpelledOpener(tag, len(tag), key, "", ())

    def may_be_key(self, key: str) -> bool:
        """Whether this may be a key: it has no marks in it."""
        return not any((key == "", self.words.close in key, self.words.opener in key))

    def has_attributes(self, key: str) -> bool:
        """Whether this is a key and further attributes of its tag: `k" type="string`."""
        quote = self.words.opener[-1]
        return all((quote in QUOTES, quote in key)) and not self.named(key)

    def skip(self, tag: str, rule: str) -> Scan[None]:
        """Skips a tag, with a note, as often as it stands here."""
        if (yield from at(self.s, tag)):
            self.s.note(rule, tag)
            while (yield from at(self.s, tag)):
                pass

    def once(self, written: str) -> str:
        """The key without further openers before it."""
        bare = written
        while bare.startswith(self.words.opener):
            bare = bare[len(self.words.opener) :].lstrip()
        if bare != written:
            self.s.note("repeated-tag", written)
        return bare

    def key(self, written: str) -> str:
        """The key without quotes and entities that are not its own."""
        bare = unquoted(written)
        if bare == written or self.named(written) or not (self.named(bare) or written[0] in QUOTES):
            return written
        self.s.note("quoted-key", written)
        return bare

    def named(self, key: str) -> bool:
        """Whether the schema has the key."""
        return self.shapes.names(self.schema, key)

    def wanted(self, key: str) -> bool:
        """Whether the schema has the key, and it was not given yet."""
        return key not in self.keys and self.named(key)

    def begin(self, key: str) -> None:
        """The value of this key comes next."""
        self.s.emit_arguments(f"{', ' if self.keys else ''}{quoted(key)}: ")
        self.keys.add(key)

    def close_with(self, key: str) -> None:
        """Sets what may end the value: also a closer in another spelling, or one with the name of a known key."""
        self.went_on = self.unclosed = False
        self.inside = 0
        words = self.words
        named = (f"</{key}>", f"</parameter={key}>", f"</param={key}>") if key else ()
        closers = (word for word in (*CLOSERS, *named) if word != words.close)
        self.odd = tuple(dict.fromkeys(mark + word for word in closers for mark in ("", words.space)))
        self.ends = (*words.ends, *self.odd)

    def lead(self) -> Scan[None]:
        """Consumes the line break before a value that is on lines of its own."""
        s, words = self.s, self.words
        if words.lead and (yield from peek(s, len(words.lead))) == words.lead:
            s.pos += len(words.lead)
        elif words.lead == "\n" and (yield from peek(s, 2)) == "\r\n":
            s.pos += 2  # Windows line ends, also the one before the closer
            self.ends = (*self.ends, *("\r" + word for word in self.ends if word[0] == "\n"), "\r\n" + words.close)

    def other(self, offset: int = 0) -> Scan[SpelledOpener | None]:
        """A parameter in tags of another spelling `offset` characters ahead, if there is one with a wanted key."""
        return (yield from opener(self.s, offset, self.wanted))

    def respelled(self, opener: SpelledOpener) -> Scan[None]:
        """Reads a parameter in such tags, from its opener."""
        s, words = self.s, self.words
        s.pos += opener.end
        s.note("other-tags", opener.tag)
        self.begin(opener.key)
        self.ends = (*opener.ends(words.close, words.space), *words.follow, words.opener, *words.call[:1])
        yield from self.lead()
        allowed = self.allowed(opener.key, opener.type)
        closes = partial(self.closes_respelled, opener)
        yield from value(s, self.ends, closes, allowed, self.untyped.of_key(opener.key, allowed))

    def closes_respelled(self, opener: SpelledOpener, hit: str) -> Scan[str | None]:
        """Whether a mark closes such a parameter. Its first closer must, otherwise this is no call."""
        if hit in self.words.call and (inner := (yield from self.call_in_value(hit, opener.closers[0]))):
            return inner
        if hit.strip() not in opener.ends(self.words.close, ""):
            self.s.pos -= len(hit)
            raise Malformed(f"{opener.tag} is not closed")
        if (yield from self.goes_on()):
            return None
        raise Malformed(f"it is not sure where {opener.tag} ends")

    def goes_on(self) -> Scan[bool]:
        """Whether another parameter follows, or something that may follow the call, or the end."""
        words = self.words
        return not words.follow or bool((yield from ahead(self.s, 0, words.legal)) or (yield from self.other()))

    def wrapper(self, key: str, word: str) -> Scan[None]:
        """A parameter that may contain all arguments as one object; it is held back until its end."""
        s = self.s
        self.close_with("")
        yield from self.lead()
        parts: list[str] = []
        yield from text_until(s, self.ends, self.closes, parts.append)
        text = "".join(parts)
        self.check_end(text)
        alone = not (yield from at(s, self.words.opener, eat=False)) and not (yield from self.other())
        if alone and (inner := object_members(text, self.named)) is not None:
            s.emit_arguments(inner)
            return s.note("wrapped-arguments", key)
        self.begin(key)
        allowed = self.allowed(key, word)
        return s.emit_arguments(self.untyped.of_key(key, allowed)(text, allowed, s.note))

    def ended(self) -> Scan[None]:
        """Raises Malformed unless what follows may follow the arguments: it may be further arguments."""
        s, words = self.s, self.words
        if not self.keys:
            yield from self.skip(words.close, "stray-closer")
        if not words.follow or (yield from at(s, *words.follow, "}", "]", eat=False)):
            return
        if (yield from blank(s)):
            raise Malformed("no parameter")

    def type_word(self, hit: str) -> Scan[str]:
        """The type after the key, "" for none; consumes up to the value."""
        s, words = self.s, self.words
        rest, word = words.mid[1:], ""
        if words.before and hit == words.before[0]:
            if (yield from at(s, words.before[1], words.mid[-1], eat=False)) == words.mid[-1]:
                rest = words.mid[-1:]  # the type is missing
            else:
                for expected in words.before[1:]:
                    yield from expect(s, expected)
                token = yield from token_ahead(s, 0, words.mid[:1])
                word = token[0].strip() if token else "<"
                if not WORD(word):
                    raise Malformed("expected a type")
                s.pos += sum(map(len, token)) if token else 0
        if rest:
            yield from self.skip(hit, "repeated-tag")
        for expected in rest:
            yield from expect(s, expected)
        return word

    def allowed(self, key: str, word: str) -> Kinds:
        """The types that a value may have, by the word beside it or by the schema."""
        typed = self.hole.typed
        if typed and word == typed.string:
            return STRING
        if typed and not typed.other and word in ANY:
            return OF_NAME[word]
        kinds = self.shapes.kinds(self.shapes.member(self.schema, key))
        if typed and word == typed.other != "":
            return kinds - STRING or ANY - STRING
        if word not in ("", *kinds):
            self.s.note("odd-type", word)
        return OF_NAME[word] if word in kinds else kinds

    def value(self, key: str, allowed: Kinds) -> Scan[None]:
        s, quote = self.s, self.hole.quote
        convert = self.untyped.of_key(key, allowed)
        if quote is None or not (yield from at(s, quote[0])):
            closes = self.closes_text if "string" in allowed else self.closes
            return self.check_end((yield from value(s, (*self.ends, self.words.opener), closes, allowed, convert)))
        closes = QuotedValue(s, self.words, quote).closes
        yield from value(s, quote[::-1], closes, STRING if "string" in allowed else allowed, convert)
        if not (yield from at(s, self.words.close)):
            s.note("missing-closer", self.words.close)
        return None

    def check_end(self, end: str) -> None:
        """The call is doubtful if a value without its closer is empty, or if the last tag in it was meant to end it."""
        if self.unclosed:
            unsure = any((self.went_on, not end))
            if tag := self.words.close if unsure else lost_closer(end, self.words.tags, self.named):
                self.s.note("trailing-text", tag)

    def drop(self, key: str) -> Scan[None]:
        """The value of a key that was given before: it is noted, not emitted."""
        parts: list[str] = []
        yield from text_until(self.s, self.ends, self.closes, parts.append)
        self.s.note("doubled-key", f"{key}: {''.join(parts)[:200]}")

    def closes_text(self, hit: str) -> Scan[str | None]:
        """The same for a text. Keys of openers in it that have a value and no closer are `begun`."""
        s, words = self.s, self.words
        if hit == words.opener:
            self.inside += 1
            if key := (yield from self.next_key(0)):
                token = yield from token_ahead(s, 0, words.mid[-1:])
                self.begun.append((key, s.offset + s.pos + sum(map(len, token or ()))))
            return hit
        end = s.offset + s.pos - len(hit)
        text = yield from self.closes(hit)
        if text is None:
            self.unsure.update(key for key, start in self.begun if start < end)
            self.begun.clear()
        elif self.begun and hit.endswith(words.close):
            self.begun.pop()
        return text

    def closes(self, hit: str) -> Scan[str | None]:
        """Whether a mark ends the value. If it stands in for a missing closer, it is given back."""
        s, words = self.s, self.words
        self.inside += hit in (words.line, words.opener, *words.same_tag)
        if hit.endswith(words.close):
            return (yield from self.closes_itself(hit))
        if hit in words.same_tag:
            return hit
        if hit.lstrip() in self.odd:
            return None if (yield from self.closes_oddly(hit)) else hit
        if hit in words.parts:
            self.went_on = True  # as text, unless no closer follows
            return hit
        inner = (yield from self.call_in_value(hit, words.close)) if hit in words.call else ""
        if inner:
            return inner
        size = len(hit)
        s.pos -= size
        if hit in (words.line, words.opener):
            ended = bool((yield from self.next_key(size)))
        else:
            ended = yield from self.runs_out(size, RUN if hit[0] == "\n" else 0)
        if ended:
            s.note("missing-closer", words.close)
            self.unclosed = True
            return None
        s.pos += size
        return hit

    def closes_itself(self, hit: str) -> Scan[str | None]:
        """Whether the closer that was just read ends the value. If it does not, it closes an opener in the value, or what
        follows may be a parameter."""
        if (yield from self.goes_on()):
            return None
        self.went_on = True
        if not self.inside:
            self.swallowed = (yield from lost_opener(self.s, self.words, self.wanted)) or self.swallowed
        self.inside = max(0, self.inside - 1)
        return hit

    def call_in_value(self, hit: str, close: str) -> Scan[str]:
        """The call whose first word was just read, as far as it belongs to the value, which ends with `close`; "" if the
        word may end that."""
        rest = yield from self.inner_calls.rest(close)
        if lone := self.inner_calls.lone:
            self.swallowed = lone
        return hit + rest if any((rest, hit not in self.words.follow[:1])) else ""

    def closes_oddly(self, hit: str) -> Scan[bool]:
        """Whether a closer in another spelling ends the value: the next parameter follows, or only closers."""
        s, words = self.s, self.words
        opens = yield from ahead(s, 0, (words.opener,))
        if opens > 0:
            ended = bool((yield from self.next_key(opens)))
        else:
            ended = bool((yield from self.other())) or (yield from self.runs_out(0, RUN - 1))
        if ended:
            s.note("other-tags", hit.strip())
        return ended

    def next_key(self, offset: int) -> Scan[str]:
        """The key of an opener at `offset`, if the schema has it and it was not given yet."""
        token = yield from token_ahead(self.s, offset, self.words.key_ends)
        key = unquoted(token[0].strip()) if token else ""
        return key if self.wanted(key) else ""

    def runs_out(self, offset: int, enough: int) -> Scan[bool]:
        """Whether from `offset` on there are only words that may follow a call, or `enough` of them."""
        follow = self.words.follow
        for count in range(1, len(follow) + 1):
            offset = yield from ahead(self.s, offset, follow)
            if offset <= 0 or count + 1 == enough:
                return offset != 0
        return False
