"""The words of a dialect at which the reader stops: what opens calls, thoughts and messages, and what may follow each."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ..dialect import NAME, Dialect, Header, Keywords
from ..thought_tags import THOUGHT_TAGS, thought_tags
from ..turn_heads import MODEL_LABEL, USER_LABELS, turn_heads
from .call_closers import call_closers, stray_closers, visible_closers
from .call_form_words import first_words, value_closers, words_before_names
from .emphasized_tags import BEGINNINGS, emphasized_tags
from .head_words import bare_heads, body_begins, channels, route, vocabulary
from .marks import Marks, marks
from .openers import Entry, call_openers, spelled
from .prompt_tail import ending, within_thought
from .quoting_signs import ELEMENTS, HTML_COMMENT, LINE_COMMENTS, QUOTES
from .source import literal_words
from .unbalanced_closers import patterns_of

CALL, TEXT, CODE, HEAD, END, FRAME = "call", "text", "code", "head", "end", "frame"
THINK, UNTHINK, TAG = "think", "unthink", "tag"
TURN, OTHER = "turn", "other"
"""The head of another role's turn, where a turn begins, and in a text."""

FENCE = "```"
COMMENT_LINES = {line + sign: "\n\n" for sign in LINE_COMMENTS for line in ("", "\n")}
MARK = re.compile(r"<[^<>\s!][^<>\n]*>|\[/?[A-Z][A-Z_]*\]")
"""Matches anything that looks like a control marker, and is no comment."""
MARKER = re.compile(r"[^\w\s`*].{2,}").fullmatch
"""Matches an opener that is no word, with Markdown or without, no fence and no bracket alone."""
TAIL = 1000
"""Characters at the end of a prompt that are searched for what it left open."""


class Program:
    """The words that a reader of the dialect searches for. `calls`: they include those of calls; `split`: thoughts are
    separated.

    - `entries` open calls, `fences` surround them
    - `fresh` maps words that may come first (in a reply, or after a call or thought) to their kind; `inside` those in
      a text, `block` those in a code block
    - `after` may follow a call, `legal` a call that was not closed; `again` begins another call between the same
      marks, and `call_words` come before a call's name, for each form; `value_closers` close a value between tags
    - `unbalanced` matches openers and closers in a text, for calls whose values may contain them
    - `frames` are around texts, `beyond` may follow one, `beyond_fence` a call in a fence at the end of a reply; `frame_space` maps those of the dialect, with the newline that
      belongs to them, to the number of whitespace characters after them
    - `tags` maps the openers of a thought to their closers; `quotable` are they and all other words that a quotation may show
    - `body_opener` comes between the head of a message and its body, if a mark ends the body; otherwise it is ""
    - `named`: a message may begin with only a tool's name
    - `turns` begin the turn of another role, with the words of which one follows them there; `turn_words` are they, and labels
    - `foreign` maps the openers of thoughts in tags that are none of the dialect to their closers; `around` ends one too;
      `emphasized` are these and the dialect's own, in lower case, in lines that begin with one of BEGINNINGS
    - `lone_closers` maps the closers of thoughts, also of those, to their openers
    - `unframed` ends a thought that was none; `closers` end a thought, `drafts` begin a call in one, `opening` are
      both
    - `separators` may stand between calls; `comment_ends` end a comment beside calls that are Python
    - `markers_of_calls` open calls and are no words, `closers_of_calls` close a call, `visible_closers` those that stay text where they do not; `strays` are closers that a model may write once too often
    - `starts` begin messages, `ends` end them; `bare` may begin a message without its start, with only a name before
      the body; `body` begins the body of a call
    - `quotations` maps what begins a quotation to what ends it; `element` is the one that also separates calls in a list
    """

    def __init__(self, d: Dialect, calls: bool, split: bool) -> None:
        self.d = d
        self.calls, self.split = calls, split
        self.entries = call_openers(d) if calls else {}
        self.quotations: dict[str, str] = {}
        self.element = ""
        self.openers = tuple(self.entries)
        self.marked = _marked(self.entries)
        self.tags: Mapping[str, str] = thought_tags(d.thinking) if d.thinking else {}
        self.spelled = spelled(d)
        self.fences = {o: c for o, c in d.fences if o not in self.entries} if self.entries else {}
        kinds = dict.fromkeys((*self.entries, *self.fences), CALL)
        formal = [w for w, e in self.entries.items() if e.formal]
        self.fresh = dict(kinds)
        self.inside = kinds | {d.before + w: CALL for w in kinds}
        space = d.open[: len(d.open) - len(d.open.lstrip())]
        self.inside |= {space + w: CALL for w in formal}
        self._messages(d.header, calls)
        self.thoughts = tuple(filter(None, self.tags))
        self.quotable = (*self.openers, *self.starts, *self.thoughts)
        self._quotations()
        self.frames = (*(w.strip() for w in d.frame), *d.stop)
        self.frame_space = {f: len(w) - len(w.rstrip()) for w in d.frame for f in (w.strip(), w.rstrip())}
        self.closers: Marks | None = None
        self.opening: Marks | None = None
        self.drafts: tuple[str, ...] = ()
        self.unthink: tuple[str, ...] = ()
        self._control(d)
        self._thoughts(d, calls)
        self._other_turns(d)
        self.beyond = _beyond(self.fresh)
        self.beyond_fence = (*d.stop, *dict.fromkeys(self.fences.values()))
        self.after = _after(d)
        self.legal = self._after_unclosed(d)
        self._foreign_thoughts()
        self.marks = marks(tuple(self.inside), "\n") if self.inside else None
        self.block = self._in_block()
        self.strays = stray_closers(d) if calls else ()
        self.closers_of_calls = call_closers(d)
        self.visible_closers = visible_closers(d)
        self.markers_of_calls = _markers(self.entries, whole=not self.visible_closers) - {*self.frames}
        self.again = _again(d)
        self.comment_ends = _comment_ends(d)
        self.separators = _separators(d)
        self.value_closers = value_closers(d.call)
        self.call_words = words_before_names((*self.spelled, *d.forms, d.call), self.starts[:1])
        self.unbalanced = patterns_of(self.call_words, d.stop)
        self.unframed = (*(w for w, kind in self.fresh.items() if kind == FRAME), *(formal if not d.guard else ()))

    def _in_block(self) -> Marks:
        """What may end a code block, or the text that it is in. Tags of thoughts in it are shown; but a label (`Thought:`) may
        begin a reply that is all in a block."""
        text = {word for word, kind in self.inside.items() if kind in (CALL, CODE, HEAD, OTHER, TAG)}
        if not any(word[:1].isalpha() for word in self.tags):
            text.update(word for word, kind in self.inside.items() if kind in (THINK, UNTHINK))
            text.update(self.tags.values())
        text.update((*map("\n".__add__, (*self.foreign, *self.lone_closers)), *self.lone_closers))
        return marks((*(word for word in self.inside if word not in text), self.body_opener, FENCE), "\n")

    def _after_unclosed(self, d: Dialect) -> tuple[str, ...]:
        """What may follow a call that was not closed. A comment may belong to it."""
        first = (word for word, kind in self.fresh.items() if kind not in (CODE, TURN))
        behind = (
            *first,
            *map(str.strip, self.after),
            *self.unthink,
            *(c for _, c in d.fences),
            *literal_words(d.close),
        )
        return tuple(w for w in dict.fromkeys(behind) if len(w) > 1 or w in self.entries)

    def _messages(self, header: Header | None, calls: bool) -> None:
        """The starts and ends of messages, if these have heads."""
        self.starts: tuple[str, ...] = ()
        self.ends: tuple[str, ...] = ()
        self.heads: tuple[str, ...] = ()
        self.bare: tuple[str, ...] = ()
        self.vocabulary = frozenset[str]()
        self.named = False
        self.body: tuple[str, ...] = ()
        self.body_opener = ""
        if header is None:
            return
        self.body_opener = header.stop.strip() if header.ends else ""
        self.body = first_words((self.d.open, *self.d.call)) if header.stop.strip() and calls else ()
        self.vocabulary, self.ends = vocabulary(header), header.ends
        heads = bare_heads(header)
        self.bare = () if header.also else heads  # the whole start may be missing, except for the recipient
        if calls:
            self.starts, self.heads = (header.start.strip(), *header.also), (*heads, *channels(header))
            self.named = self.d.guard and ("^", "call") in header.routes
            self.inside |= {} if self.fences else {FENCE: CODE}
        if self.d.guard:  # a prompt that nobody gave has the start
            self.heads += (header.text + header.stop,) if header.text else ()

    def _quotations(self) -> None:
        """Where a text shows calls without making them: code, quotations, comments."""
        if not self.openers and not self.starts:
            return
        lines = {"~~~": "\n~~~", ">": "\n", "    ": "\n", "\t": "\n"}
        self.quotations |= {"\n" + word: end for word, end in lines.items()} | {"``": "``"} | HTML_COMMENT
        self.quotations |= {word: lines[word] for word in ("~~~", ">")}
        if self.starts and self.starts[0][0] == ">":  # messages begin like a quoted line
            self.quotations["\n> "] = self.quotations.pop("\n>")
            del self.quotations[">"]
        self._quoted_calls()
        self.quotations |= COMMENT_LINES | ELEMENTS
        words = set(self.quotations).difference(lines, LINE_COMMENTS)
        begun = ("`" + w for w in self.quotable)
        self.inside |= dict.fromkeys(("`", *begun, *words), CODE)
        for word in self.quotations.keys() & {"~~~", ">", *LINE_COMMENTS, *ELEMENTS}:
            self.fresh.setdefault(word, CODE)

    def _quoted_calls(self) -> None:
        """Calls and thoughts in quotation marks, and lines with the indentation of a list of calls."""
        between = self.d.items[1] if self.d.items else ""
        if between[1:] in self.quotations:  # in a broken list, the next element begins like this
            self.element = between
            self.quotations[between] = "\n"
        for word, entry in self.entries.items():
            close = (literal_words(entry.close) or [""])[-1] if len(word) > 1 else ""
            self.quotations |= {quote + word: close + end for quote, end in QUOTES.items()}
        for word in self.thoughts:
            self.quotations |= {quote + word: end for quote, end in QUOTES.items()}
        for word in self.starts:  # the message inside ends before the quotation
            self.quotations |= {quote + word: (self.ends or ("",))[-1] + end for quote, end in QUOTES.items()}

    def _control(self, d: Dialect) -> None:
        """Frames, ends of turns, and heads of messages."""
        words = dict.fromkeys(self.frames, FRAME)
        if d.header:
            words |= dict.fromkeys((d.header.start.strip(), *d.header.also), HEAD)
            words |= dict.fromkeys(d.header.ends, END)
            role = d.header.start.rpartition("|>")[2].strip()  # the mark before the role may be missing
            words |= dict.fromkeys((role + mark for mark in d.header.also if role and mark[0] == "<"), HEAD)
            words |= dict.fromkeys(self.bare, HEAD)
        for word, kind in words.items():
            self.fresh.setdefault(word, kind)
            self.inside.setdefault(word, kind)
        calls = tuple(w for w in self.inside if w[0] == "\n")
        lines = (*self.frame_space, *("\n" + w for w in self.frames if ("\n" + w).startswith(calls)))
        self.inside |= {w: FRAME for w in lines if w[0] == "\n"}  # longer than the opener of a call in it, so it counts

    def _thoughts(self, d: Dialect, calls: bool) -> None:
        """What opens and what ends a thought."""
        ends: list[str] = [w for w, kind in self.inside.items() if kind in (HEAD, END)]
        if d.thinking:
            for opener in filter(None, (d.thinking.open.strip(), *d.thinking.also)):
                self.fresh[opener] = self.inside["\n" + opener] = THINK
            closers = [*filter(None, self.tags.values())]
            for one in closers:
                self.fresh.setdefault(one, UNTHINK)
                self.inside.setdefault("\n" + one, UNTHINK)
            if closers and self.split:
                self.inside = dict.fromkeys(closers, FRAME) | self.inside
                self.inside.setdefault(FENCE, CODE)
            lines = map("\n".__add__, closers if d.thinking.close[0] == "\n" else ())
            self.unthink = (*closers, *lines) or (d.thinking.close,)
            ends += self.unthink
            if d.thinking.frame_ends:
                ends += [w for w in map(str.strip, d.frame) if len(w) > 1]
        self.drafts = tuple(w if len(w) > 1 else "\n" + w for w, e in self.entries.items() if len(w) > 1 or e.formal)
        self.closers = marks(tuple(ends)) if ends else None
        self.opening = marks((*ends, *self.drafts)) if ends else None

    def _other_turns(self, d: Dialect) -> None:
        """What begins the turn of another role, if it is nothing else."""
        self.turns: dict[str, tuple[str, ...]] = {}
        self.turn_words = frozenset[str]()
        if not self.calls:
            return
        calls = tuple(word for word in self.inside if word[0] == "\n")
        for word, roles in (turn_heads(d) | dict.fromkeys(USER_LABELS, ())).items():
            if {self.fresh.get(word, FRAME), self.inside.get(word, FRAME)} == {FRAME}:
                self.turns[word] = roles
                self.fresh.setdefault(word, TURN)
                if word not in USER_LABELS:
                    self.inside.setdefault(word, OTHER)
                if ("\n" + word).startswith(calls):  # longer than the opener of a call in it, so it counts
                    self.turns["\n" + word] = roles
                    self.inside.setdefault("\n" + word, OTHER)
        for label in (*USER_LABELS, MODEL_LABEL):
            self.inside.setdefault("\n" + label, OTHER)
        self.turn_words = frozenset((*self.turns, *(word for word, kind in self.inside.items() if kind == OTHER)))

    def _foreign_thoughts(self) -> None:
        """What opens a thought in tags that are none of the dialect. A call that is a message of its own is in no thought."""
        known = {*self.fresh, *self.inside, *self.tags.values()}
        tags = THOUGHT_TAGS if self.openers and not self.d.header else dict[str, str]()
        self.foreign = {word: close for word, close in tags.items() if not {word, "\n" + word, close} & known}
        ends = (word for word, kind in self.inside.items() if kind in (FRAME, THINK))
        self.around = tuple(word for word in ends if word not in self.tags.values())
        self.emphasized = emphasized_tags({**tags, **self.tags} if tags else {})
        kinds = dict.fromkeys(self.foreign, THINK) | dict.fromkeys(BEGINNINGS if tags else (), TAG)
        self.fresh |= kinds
        self.inside |= {"\n" + word: kind for word, kind in kinds.items()}
        self._lone_closers()

    def _lone_closers(self) -> None:
        """What closes a thought that the prompt opened, in any tags."""
        tags = {**THOUGHT_TAGS, **self.tags} if any((self.openers, self.starts)) else dict[str, str]()
        pairs = {close: word for word, close in tags.items() if close}
        ends = {UNTHINK, FRAME}
        self.lone_closers = {
            close: word
            for close, word in pairs.items()
            if {self.fresh.get(close, FRAME), self.inside.get(close, FRAME)} <= ends
        }
        calls = tuple(word for word in self.inside if word[0] == "\n")
        for closer in self.lone_closers:
            self.fresh.setdefault(closer, UNTHINK)
            self.inside.setdefault(closer, UNTHINK)
            if ("\n" + closer).startswith(calls):  # longer than the opener of a call in it, so it counts
                self.inside.setdefault("\n" + closer, UNTHINK)

    def anew(self, now: str, prompt: str) -> bool:
        """Whether the reply, which begins in state `now`, starts something new rather than continuing a text."""
        return now != TEXT or body_begins(self.d.header, prompt)

    def begins(self, prompt: str) -> str:
        """What the prompt leaves open: a thought (THINK), a message's head (HEAD), its body (TEXT), or nothing ("")."""
        d, tail, thinking = self.d, prompt[-TAIL:].rstrip(), self.d.thinking if prompt else None
        if thinking and (word := next(filter(tail.endswith, filter(None, self.tags)), "")):
            line = thinking.close.isspace() and thinking.close in prompt.rpartition(word)[2]
            return "" if line else THINK
        if thinking and within_thought(d, thinking, prompt):
            return THINK
        return self._message(d.header, prompt.rstrip()) if d.header else ""

    def lead(self, word: str) -> tuple[str, ...]:
        """The words that complete the opener that begins with this word."""
        entry = self.entries.get(word)
        if entry is None:
            return ()
        first = entry.forms[0][0]
        return entry.rest or (literal_words(first)[entry.eaten :] if entry.eaten and isinstance(first, str) else ())

    def opened(self, prompt: str) -> str:
        """The end of the prompt that opens a call already, or a part of such an opener; "" if there is none."""
        if not prompt:
            return ""
        first = self.d.call[0]
        for word, entry in self.entries.items():
            words = literal_words(first) if entry.eaten and isinstance(first, str) else [word, *entry.rest]
            for n in range(len(words) if len(word) > 1 and words[0] == word else 0, 0, -1):
                if seed := ending(prompt[-TAIL:], words[:n]):
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


def _marked(entries: Mapping[str, Entry]) -> tuple[str, ...]:
    """The marks with which calls regularly begin, without brackets."""
    return tuple(word for word, entry in entries.items() if entry.formal and len(word) > 2)


def _beyond(fresh: Mapping[str, str]) -> tuple[str, ...]:
    """What may follow a frame; `[` may begin a mark of another family."""
    return tuple(word for word, kind in fresh.items() if kind != TURN and word != "[")


def _after(d: Dialect) -> tuple[str, ...]:
    """What may follow a call that has ended, besides the end of the text."""
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
    """The text between the mark of a call and its name; "" if there is none."""
    word = d.call[1] if not d.open and d.call[2:3] == (NAME,) else ""
    return word if isinstance(word, str) and word.endswith(":") else ""


def turn_ends(d: Dialect) -> tuple[str, ...]:
    """The marks of the end of a reply that close no call."""
    closers = (d.call[-1] if d.call else "", d.close, *(d.header.ends if d.header else ()))
    return tuple(word for word in d.stop if word not in closers)


def _separators(d: Dialect) -> tuple[str, ...]:
    """What may stand between calls."""
    return (",", *((";",) if _comment_ends(d) else ()), *literal_words(d.between))


def _comment_ends(d: Dialect) -> tuple[str, ...]:
    """What ends a comment beside calls that are written as Python; () if they are not."""
    holes = [part for part in d.call if isinstance(part, Keywords)]
    if not any((hole.escapes, hole.assign) == (True, "=") for hole in holes):
        return ()
    ends = ("\n", FENCE, *call_closers(d))
    return (*ends, *(d.items[2].strip() + end for end in ends)) if d.items else ends


def _markers(entries: Mapping[str, Entry], *, whole: bool) -> frozenset[str]:
    """The regular openers of calls that are no words. `whole`: they alone open a call."""
    formal = (word for word, entry in entries.items() if entry.formal > (whole & bool(entry.rest)))
    return frozenset(filter(MARKER, formal))


@lru_cache(512)
def program(d: Dialect, calls: bool, split: bool = True) -> Program:
    """The program of a dialect, computed once. `calls`: they are searched for; `split`: thoughts are separated."""
    return Program(d, calls, split)
