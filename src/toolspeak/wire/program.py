"""What follows from a dialect, worked out once: what may open what, what may come after what, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from .scan import Marks, literal_words, marks
from .syntax import NAME, Dialect, Header, Json, JsonCall, Keywords, Maybe, Part, Slot, Tagged, Thinking, Tree

CALL, TEXT, CODE, HEAD, END, FRAME = "call", "text", "code", "head", "end", "frame"
THINK, UNTHINK, THOUGHT = "think", "unthink", "thought"
Form = tuple[Part, ...]

HEAD_WORD = re.compile(r"[^\s<>|^$]+").findall
BARE_HEAD = re.compile(r"[\w.:/-]{0,64}").fullmatch
FENCE = "```"
QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "«": "»"}
"""Quotation marks, and what ends what stands between them."""
LEADS = ("", "\n", ">", "]")
"""What may stand before the opener of a thought."""
CONTROL = re.compile(r"<\|[^\s<>|]{1,60}\|>|</s>|<[a-z]+_of_turn>|\[/?[A-Z_]{3,}\]|\n(?i:user|assistant|human):")
"""What ends or begins a turn in some layout."""
TAIL = 1000
"""How far back, in characters, a prompt is searched for what it left open."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A word with which calls may begin, and what comes after it.

    `rest` are the words that complete the section's opener, `close` what closes it; `eaten` is how many words of the
    first call are behind it. `forms` are the shapes that a call may have, in order. A `strict` entry counts only for
    an offered tool; it is `formal` where the dialect opens its calls so.
    """

    forms: tuple[Form, ...]
    rest: tuple[str, ...] = ()
    close: str = ""
    eaten: int = 0
    formal: bool = True
    strict: bool = False
    section: bool = False
    listed: bool = False


class Program:
    """The words that a reader of the dialect looks for. `calls`: calls are among them; `split`: thoughts are told apart.

    `entries` open calls, `fences` stand around them. `fresh` maps what may come first (in a reply, or after a call or
    a thought) to its kind, `inside` what may come in a text, `block` what in a block of code. `after` may follow a call,
    `legal` one that was not closed, `again` begins another call between the marks of one, `beyond` a frame; `named`: a
    message may begin with nothing but a tool's name; `unframed` ends a thought that was none. `closers` end a thought,
    `drafts` begin a call in one, `opening` are both. `strays` are the closers that a model may write once too often.
    `starts` begin messages, `ends` end them; `bare` may begin a message that lacks its start, where nothing but a name comes between it and the body.
    `shown` maps what begins a quotation to what ends it; `element` is that which stands between calls in a list as well.
    """

    def __init__(self, d: Dialect, calls: bool, split: bool) -> None:
        self.d = d
        self.calls = calls
        self.split = split
        self.entries = _entries(d) if calls else {}
        self.shown: dict[str, str] = {}
        self.element = ""
        self.openers = tuple(self.entries)
        self.fences = {o: c for o, c in d.fences if o not in self.entries} if self.entries else {}
        kinds = dict.fromkeys((*self.entries, *self.fences), CALL)
        formal = [w for w, e in self.entries.items() if e.formal]
        self.fresh = dict(kinds)
        self.inside = kinds | {d.before + w: CALL for w in kinds}
        space = d.open[: len(d.open) - len(d.open.lstrip())]
        self.inside |= {space + w: CALL for w in formal}
        self._messages(d.header, calls)
        self._quotations()
        self.frames = (*(w.strip() for w in d.frame), *d.stop)
        self.closers: Marks | None = None
        self.opening: Marks | None = None
        self.drafts: tuple[str, ...] = ()
        self.unthink: tuple[str, ...] = ()
        self._control(d)
        self._thoughts(d, calls)
        self.beyond = tuple(self.fresh)
        self.marks = marks(tuple(self.inside), "\n") if self.inside else None
        talk = (CALL, CODE, HEAD)
        self.block = marks((*(w for w, kind in self.inside.items() if kind not in talk), FENCE), "\n")
        self.after = _after(d)
        behind = (*self.fresh, *self.after, *self.unthink, *(c for _, c in d.fences), *literal_words(d.close))
        self.legal = tuple(w for w in dict.fromkeys(behind) if len(w) > 1 or w in self.entries)
        self.strays = _strays(d) if calls else ()
        self.again = _again(d)
        self.unframed = (*(w for w, kind in self.fresh.items() if kind == FRAME), *(formal if not d.guard else ()))

    def _messages(self, header: Header | None, calls: bool) -> None:
        """How messages begin and end, where they say in their heads what they are."""
        self.starts: tuple[str, ...] = ()
        self.ends: tuple[str, ...] = ()
        self.heads: tuple[str, ...] = ()
        self.bare: tuple[str, ...] = ()
        self.vocabulary = frozenset[str]()
        self.named = False
        if header is None:
            return
        self.vocabulary, self.ends = _vocabulary(header), header.ends
        heads = _bare_heads(header)
        self.bare = () if header.also else heads  # all of a start may be missing, but for whom the message goes to
        if calls:
            self.starts, self.heads = (header.start.strip(), *header.also), heads
            self.named = self.d.guard and ("^", "call") in header.routes
            self.inside |= {} if self.fences else {FENCE: CODE}

    def _quotations(self) -> None:
        """Where a text shows something and does not do it: code, quotations, comments."""
        if not self.openers and not self.starts:
            return
        lines = {"~~~": "\n~~~", ">": "\n", "    ": "\n", "\t": "\n"}
        self.shown |= {"\n" + word: end for word, end in lines.items()} | {"``": "``", "<!--": "-->"}
        self.shown |= {word: lines[word] for word in ("~~~", ">")}
        if self.starts and self.starts[0][0] == ">":  # a message begins like a line that is quoted
            self.shown["\n> "] = self.shown.pop("\n>")
            del self.shown[">"]
        self._quoted_calls()
        words = set(self.shown).difference(lines)
        begun = ("`" + w for w in (*self.entries, *self.starts))
        self.inside |= dict.fromkeys(("`", *begun, *words), CODE)
        self.fresh |= {w: CODE for w in ("~~~", ">") if w in self.shown and w not in self.fresh}

    def _quoted_calls(self) -> None:
        """Calls in quotation marks, and lines that are indented as those in a list of calls."""
        between = self.d.items[1] if self.d.items else ""
        if between[1:] in self.shown:  # in a list that broke, the next element stands so
            self.element = between
            self.shown[between] = "\n"
        for word, entry in self.entries.items():
            close = (literal_words(entry.close) or [""])[-1] if len(word) > 1 else ""
            self.shown |= {quote + word: close + end for quote, end in QUOTES.items()}
        for word in self.starts:  # a message ends in it, before the quotation does
            self.shown |= {quote + word: (self.ends or ("",))[-1] + end for quote, end in QUOTES.items()}

    def _control(self, d: Dialect) -> None:
        """Frames, ends of turns, the heads of messages."""
        words = dict.fromkeys(self.frames, FRAME)
        if d.header:
            words |= dict.fromkeys((d.header.start.strip(), *d.header.also), HEAD)
            words |= dict.fromkeys(d.header.ends, END)
            role = d.header.start.rpartition("|>")[2].strip()  # the mark before it may be missing
            words |= dict.fromkeys((role + mark for mark in d.header.also if role and mark[0] == "<"), HEAD)
            words |= dict.fromkeys(self.bare, HEAD)
        for word, kind in words.items():
            self.fresh.setdefault(word, kind)
            self.inside.setdefault(word, kind)

    def _thoughts(self, d: Dialect, calls: bool) -> None:
        """What opens a thought, and what ends it."""
        ends: list[str] = [w for w, kind in self.inside.items() if kind in (HEAD, END)]
        if d.thinking:
            word, close = d.thinking.open.strip(), d.thinking.close.strip()
            for opener in filter(None, (word, *d.thinking.also)):
                self.fresh[opener] = self.inside["\n" + opener] = THINK
            if close:
                self.fresh.setdefault(close, UNTHINK)
                self.inside.setdefault("\n" + close, UNTHINK)
                if self.split:
                    self.inside.setdefault(close, FRAME)
                    self.inside.setdefault(word or close, THOUGHT)
            lines = ("\n" + close,) if close and d.thinking.close.startswith("\n") else ()
            self.unthink = (close or d.thinking.close, *lines)
            ends += self.unthink
            if d.thinking.frame_ends:
                ends += [w for w in map(str.strip, d.frame) if len(w) > 1]
        self.drafts = tuple(w if len(w) > 1 else "\n" + w for w, e in self.entries.items() if len(w) > 1 or e.formal)
        self.closers = marks(tuple(ends)) if ends else None
        self.opening = marks((*ends, *self.drafts)) if ends else None

    def begins(self, prompt: str) -> str:
        """What the prompt leaves open: a thought (THINK), a message's head (HEAD), its body (TEXT), or nothing ("")."""
        d, tail = self.d, prompt[-TAIL:].rstrip()
        if d.thinking and (word := d.thinking.open.strip()) and tail.endswith(word):
            line = d.thinking.close.isspace() and d.thinking.close in prompt.rpartition(word)[2]
            return "" if line else THINK
        if d.header:
            return self._message(d.header, prompt.rstrip())
        if d.thinking and d.thinking.open.strip():
            return THINK if _thinking(d, d.thinking, prompt) else ""
        return ""

    def opened(self, prompt: str) -> str:
        """The end of the prompt that opens a call already, or a part of such an opener; "" where none does."""
        first = self.d.call[0]
        for word, entry in self.entries.items():
            words = literal_words(first) if entry.eaten and isinstance(first, str) else [word, *entry.rest]
            for n in range(len(words) if len(word) > 1 and words[0] == word else 0, 0, -1):
                if seed := _ending(prompt[-TAIL:], words[:n]):
                    return seed
        return ""

    def _message(self, header: Header, tail: str) -> str:
        if tail.endswith(header.start.strip()):
            return HEAD
        starts = [i for w in (header.start, *header.also) if (i := tail.rfind(w)) >= 0]
        if not starts:
            return ""
        last = tail[tail.rfind(header.start) if header.start in tail else max(starts) :]
        words, stop, body = last.partition(header.stop)
        if not stop or any(end in body for end in header.ends):
            return ""
        return THINK if route(header, words)[1] == "thought" else TEXT


def _thinking(d: Dialect, thinking: Thinking, prompt: str) -> bool:
    """Does the prompt, which goes on from a message, end within a thought?"""
    before, word, behind = prompt.rpartition(thinking.open.strip())
    if not d.stop and (before[-1:] not in LEADS or CONTROL.search(behind)):
        return False  # whose turns end nobody knows how: the words may be a user's
    ends = (thinking.close.strip() or thinking.close, *d.stop, *d.control, d.layout.end.strip() if d.layout else "")
    return bool(word) and not any(end and end in behind for end in ends)


def _ending(text: str, words: Sequence[str]) -> str:
    """The end of the text, where it is these words with white space between."""
    rest = text
    for word in reversed(words):
        rest = rest.rstrip()
        if not rest.endswith(word):
            return ""
        rest = rest.removesuffix(word)
    return text[len(rest) :]


def route(header: Header, head: str) -> tuple[str, str]:
    """The needle that a head answers to, and what its message is: call, thought or text."""
    framed = f"^{head}$"
    return next(((needle, what) for needle, what in header.routes if needle in framed), ("", "text"))


def first_words(parts: Form, beyond: tuple[str, ...] = ()) -> tuple[str, ...]:
    """What may come first in the parts, or beyond them."""
    for i, part in enumerate(parts):
        rest = parts[i + 1 :]
        match part:
            case str():
                if part.strip():
                    return (literal_words(part)[0],)
            case Maybe():
                return (*first_words(part.parts), *first_words(rest, beyond))
            case Tagged():
                return (part.open.strip(), *first_words(rest, beyond))
            case Tree():
                return (part.mark + "<", *first_words(rest, beyond))
            case Keywords():
                return (part.open,)
            case Slot():
                return ()
            case _:
                return ("{",)
    return beyond


def name_ends(parts: Form, beyond: tuple[str, ...]) -> tuple[str, ...]:
    """What ends a name that stands before the parts. A word of letters ends it on a line of its own alone, and any
    tag where parameters in tags come."""
    first = next((part for part in parts if not isinstance(part, str) or part.strip()), None)
    if isinstance(first, Json) and first.plain:
        return ("\n", "{")
    ends = first_words(parts, beyond)
    if isinstance(first, str) and first[0] == "\n" and ends[0][0].isalnum():
        return ("\n" + ends[0],)
    if isinstance(first, str) and ends[0] == '">':
        return (*ends, '"/>', '" />')  # a tag may close itself
    return (*ends, "<") if isinstance(first, Tagged) and ends[0][0] == "<" else ends


def words_of(parts: Form) -> tuple[str, ...]:
    """Every literal word in the parts: what may come after a value that has ended."""
    return tuple(w for part in parts if isinstance(part, str) for w in literal_words(part))


def _entries(d: Dialect) -> dict[str, Entry]:
    """The words with which calls may begin."""
    forms = (d.call, *d.forms)
    if d.header:  # a message that does not say to whom it goes
        head, *rest = literal_words(d.open) or [""]
        return {head: Entry(forms, tuple(rest), d.close, section=True, strict=True)} if head and NAME in d.call else {}
    first = d.call[0]
    words = tuple(literal_words(first)) if isinstance(first, str) else ()
    found: dict[str, Entry] = {}
    for opener, closer in ((d.open, d.close), *d.also):
        if opener.strip():
            head, *rest = literal_words(opener)
            found.setdefault(head, Entry(forms, tuple(rest), closer, section=True))
    if not d.open:
        if words:
            found[words[0]] = Entry(tuple(f for f in forms if first_words(f) == words[:1]), eaten=1)
        elif d.items:
            found[d.items[0].strip()] = Entry(forms, listed=True)
    for form in d.forms:
        if isinstance(form[0], str) and (word := literal_words(form[0])[0]) not in found:
            found[word] = Entry((form,), eaten=1)
    for shape in (d.call, *d.forms) if d.guard else d.forms:
        if isinstance(shape[0], JsonCall):
            guarded = d.guard or shape is d.call
            found.setdefault("{", Entry((shape,), eaten=1, formal=guarded, strict=not d.guard))
            named = (d.call,) if d.items and d.call[0] is NAME else ()  # calls in a list, that may lack its marks
            found.setdefault("[", Entry((*named, shape), formal=guarded, strict=not d.guard, listed=True))
            break
    return found | {w: e for w, e in _inner(d, words).items() if w not in found}


def _inner(d: Dialect, words: tuple[str, ...]) -> dict[str, Entry]:
    """Entries for a model that leaves the first words of the opener out; only an offered tool counts there."""
    forms = (d.call, *d.forms)
    opener = literal_words(d.open)
    out = {w: Entry(forms, tuple(opener[i + 1 :]), d.close, 0, False, True, True) for i, w in enumerate(opener) if i}
    for i, word in enumerate(words):
        if i or opener:
            out.setdefault(word, Entry((d.call,), (), d.close, i + 1, False, True, bool(opener)))
    fences = [mark for pair in d.fences for mark in pair]
    return {w: e for w, e in out.items() if len(w) > 1 and not w[0].isalnum() and w not in fences}


def _after(d: Dialect) -> tuple[str, ...]:
    """What may come after a call that has ended, besides the end of the text."""
    words = [
        *literal_words(d.close)[:1],
        *literal_words(d.between)[:1],
        *first_words(d.call),
        *(w.strip() for w in d.frame),
        *d.stop,
    ]
    if d.items:
        words += [d.items[1].strip(), d.items[2].strip()]
    if d.header:
        words += [*d.header.ends, d.header.start.strip(), *d.header.also]
    if d.thinking:
        words.append(d.thinking.open.strip())
    return tuple(dict.fromkeys(w for w in words if w))


def _again(d: Dialect) -> str:
    """What stands between the mark of a call and its name; "" where nothing does."""
    first = d.call[0] if not d.open and d.call[1:2] == (NAME,) else ""
    mark, _, word = first.rpartition(">") if isinstance(first, str) else ("", "", "")
    return word if mark and word.endswith(":") else ""


def _strays(d: Dialect) -> tuple[str, ...]:
    """The closers that a model may write once too often after a call."""
    last = d.call[-1]
    ends = literal_words(last)[-1:] if isinstance(last, str) else ["}"] if isinstance(last, JsonCall) else []
    words = (*ends, *literal_words(d.close)[-1:])
    return (*words, d.items[2].strip()) if d.items else words


def is_bare(head: str) -> bool:
    """May this be all that stands between the first word of a message that lacks its start and its body?"""
    return BARE_HEAD(head) is not None


def head_words(head: str) -> list[str]:
    """The words of a head, its marks told apart."""
    return HEAD_WORD(head)


def _vocabulary(header: Header) -> frozenset[str]:
    """The words that heads are made of."""
    heads = (*map(str, header.call), header.thought, header.text, *(n for n, _ in header.routes), *header.also)
    return frozenset(w for head in heads for w in head_words(head))


def _bare_heads(header: Header) -> tuple[str, ...]:
    """What a message that lacks its start, or whose start stood in an unknown prompt, may begin with."""
    needles = (needle for needle, what in header.routes if what == "call" and needle[:1] != "^")
    return tuple(dict.fromkeys(needle.strip() for needle in needles if needle.strip()))


@lru_cache(512)
def program(d: Dialect, calls: bool, split: bool = True) -> Program:
    """The program of a dialect, made once. `calls`: they are looked for; `split`: thoughts are told apart."""
    return Program(d, calls, split)
