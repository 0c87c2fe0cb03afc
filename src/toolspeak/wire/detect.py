"""Finds the dialect of a model by its chat template, its declared response template, or its name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache, lru_cache
from typing import Any

from ..dialects import get
from ..errors import TemplateError, UnknownDialect
from ..types import Note, Reply, ToolCall
from .dialect import Dialect
from .finding.drafting import draft, reads
from .finding.model_names import by_name, known, named, plain
from .finding.probe import BOTH, Probe, call, probe
from .finding.response_template import from_response_template
from .finding.thinkers import with_thoughts
from .prompt.calls import write_calls
from .prompt.jinja import render_template
from .prompt.template_capabilities import literals
from .reading.lexicon import MARK

ANY = "tool-json"
"""For a model of which nothing is known: it is asked in words, so any model that follows instructions can answer."""


def detect(
    template: str | None = None, model: str | None = None, *, response_template: Mapping[str, Any] | None = None
) -> Dialect:
    """The dialect that a model speaks; `origin` says how it was found.

    In this order: the `response_template` that its tokenizer declares (HuggingFace's form); the dialect whose calls
    its chat `template` writes; a draft of one that is not known, read off what the template writes; the dialect of
    models so named; and for a model that none of them tells of, one that works by prompt alone. A template is
    believed more than a name. Raises UnknownDialect if nothing is given, and for a response template that no dialect
    can say.
    """
    if response_template is not None:
        return from_response_template(response_template)
    if not (template or model):
        raise UnknownDialect("expected a chat template, a model's name or a response template to tell the dialect by")
    found = by_template(template, plain(model or "")) if template else None
    found = found or (by_name(model) if model else None)
    if found:
        return with_thoughts(found, template, plain(model or ""))
    sources = [*(["its chat template"] if template else []), *([f"its name, {model},"] if model else [])]
    verb = "tells" if len(sources) == 1 else "tell"
    return replace(get(ANY), origin=f"by default: {' and '.join(sources)} {verb} no dialect")


def unrendered(source: str, found: Dialect) -> str:
    """Why a template that shows no calls cannot be rendered, "" where it can be."""
    if found.origin in ("by its chat template", "drafted from its chat template"):
        return ""
    try:
        render_template(source, [{"role": "user", "content": "Hello"}], None)
    except TemplateError as error:
        return str(error)
    return ""


@lru_cache(64)
def by_template(template: str, name: str = "") -> Dialect | None:
    """The dialect that the template writes, a draft if it is not known; None where the template tells none.

    Of dialects that write the same calls, the one whose models are called `name` or like it.
    """
    p = probe(template)
    if p is None:  # it writes no calls: what it says of them in words is all there is
        scores = [
            (_coverage(template, d), named(d, name), _share(template, d), len(d.models), -i)
            for i, d in enumerate(known())
        ]
        best = max(scores)
        return replace(known()[-best[-1]], origin="by the words of its chat template") if any(best[0]) else None
    shown, drafted = p.show(BOTH) + p.show(call(), call(1)), draft(template)
    found: list[tuple[int, int, float, int, int]] = []
    for i, d in enumerate(known()):
        if all(word in shown for word in literals(d)) and (reply := reads(p, replace(d, forms=()))):
            likeness = _likeness(p, d, drafted) + (not reply.notes)
            words = -1 if _left_over(reply) else sum(map(len, _words(d)))
            found.append((words, named(d, name), likeness, len(d.models), -i))
    if drafted and found and max(found)[0] < 0:
        return drafted  # the known ones leave something of the calls over
    return replace(known()[-max(found)[-1]], origin="by its chat template") if found else drafted


def _left_over(reply: Reply) -> list[ToolCall | Note]:
    """What of the calls a dialect did not read: the calls in doubt, and the markers around them that are not its own."""
    doubtful = (call for call in reply.calls if not call.whole)
    return [*doubtful, *(note for note in reply.notes if note.rule == "other-markers")]


def _words(d: Dialect) -> tuple[str, ...]:
    """The literals of a call, without the keys of a JSON object: any object may have those."""
    return tuple(word for word in literals(d) if not word.startswith('"'))


def _likeness(p: Probe, d: Dialect, drafted: Dialect | None) -> float:
    """How like the template's rest is to the dialect, of those that write the same marks around a call.

    Variants differ in blanks, which two calls written in full show; in what stands before them, around thoughts
    and texts, and ends a turn, which the draft tells; and in the other markers of their prompts.
    """
    exact = sum(write_calls(calls, d) in p.show(*calls) for calls in ([BOTH], [call(), call(1)]))
    same = 0
    if drafted:
        same = (d.before == drafted.before) + (d.thinking == drafted.thinking) + (d.frame[:2] == drafted.frame[:2])
        same += 2 * any(mark in d.stop for mark in drafted.stop)
    return exact / 2 + 1.5 * _share(p.template, d) + same / 4


@cache
def _marks(d: Dialect) -> frozenset[str]:
    """The markers around turns, texts, thoughts and results."""
    thinking = (d.thinking.open, d.thinking.close) if d.thinking else ()
    layout = (*d.layout.head, d.layout.end) if d.layout else ()
    results = (d.speech.results, d.speech.native_results)
    told = (part for r in results if r for part in (*r.each, r.open, r.close) if isinstance(part, str))
    return frozenset(
        m for text in (*thinking, *layout, *d.frame, *d.stop, *d.control, *told) for m in MARK.findall(text)
    )


def _share(template: str, d: Dialect) -> float:
    """How many of the dialect's other markers the template has, of all that it could have."""
    marks = _marks(d)
    return sum(mark in template for mark in marks) / len(marks) if marks else 0.0


def _coverage(template: str, d: Dialect) -> tuple[int, int]:
    """How much of the dialect's call stands in the template's words: all its markers, or nothing counts; and how much
    of other markers of tools, for a template that shows no call."""
    text = " ".join((d.open, d.close, *(part for part in d.call if isinstance(part, str))))
    marks = MARK.findall(text)
    others = _standing(template, (mark for mark in _marks(d) if "tool" in mark.lower()))
    if not marks or not all(mark in template for mark in marks):
        return 0, others
    rest = re.findall(r"[\w`=]{3,}", MARK.sub(" ", text))
    return sum(map(len, marks)) + _standing(template, rest), others


def _standing(template: str, words: Iterable[str]) -> int:
    """How many characters have those of the words that stand in the template."""
    return sum(len(word) for word in words if word in template)
