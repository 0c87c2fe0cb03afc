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
from .finding.always_thinking import with_thoughts
from .finding.drafting import draft, reads
from .finding.model_names import by_name, known, named, plain
from .finding.probe import BOTH, Probe, call, probe
from .finding.response_template import from_response_template
from .prompt.calls import write_calls
from .prompt.jinja import render_template
from .prompt.template_capabilities import literals
from .reading.lexicon import MARK

ANY = "tool-json"
"""The dialect for an unknown model: it works by prompt alone, so any model that follows instructions can use it."""


def detect(
    template: str | None = None, model: str | None = None, *, response_template: Mapping[str, Any] | None = None
) -> Dialect:
    """The dialect of a model; `origin` says how it was found.

    The sources, in this order: the `response_template` that its tokenizer declares (HuggingFace's format); the dialect
    whose calls the chat `template` writes, or a draft of one from what the template writes; the dialect of models with
    this name; and otherwise one that works by prompt alone. A template is more reliable than a name. Raises
    UnknownDialect if nothing is given, and TemplateError for a response template that no dialect can express.
    """
    if response_template is not None:
        return from_response_template(response_template)
    if not (template or model):
        raise UnknownDialect(
            "expected a chat template, a model's name or a response template to detect the dialect from"
        )
    dialect = by_template(template, plain(model or "")) if template else None
    dialect = dialect or (by_name(model) if model else None)
    if dialect:
        return with_thoughts(dialect, template, plain(model or ""))
    sources = [*(["its chat template"] if template else []), *([f"its name, {model},"] if model else [])]
    verb = "identifies" if len(sources) == 1 else "identify"
    return replace(get(ANY), origin=f"by default: {' and '.join(sources)} {verb} no dialect")


def unrendered(source: str, dialect: Dialect) -> str:
    """Why a template that shows no calls cannot be rendered; "" if it can be."""
    if dialect.origin in ("by its chat template", "drafted from its chat template"):
        return ""
    try:
        render_template(source, [{"role": "user", "content": "Hello"}], None)
    except TemplateError as error:
        return str(error)
    return ""


@lru_cache(64)
def by_template(template: str, name: str = "") -> Dialect | None:
    """The dialect that the template writes, a draft if it is unknown; None if the template shows none.

    Of dialects with the same call format, the one for models with a `name` like this one.
    """
    p = probe(template)
    if p is None:  # it renders no calls; it can only be recognized by the markers in its source
        scores = [
            (_coverage(template, d), named(d, name), _share(template, d), len(d.models), -i)
            for i, d in enumerate(known())
        ]
        best = max(scores)
        return replace(known()[-best[-1]], origin="by the words of its chat template") if any(best[0]) else None
    rendered, drafted = p.show(BOTH) + p.show(call(), call(1)), draft(template)
    ranked: list[tuple[int, int, float, int, int]] = []
    for i, d in enumerate(known()):
        if all(word in rendered for word in literals(d)) and (reply := reads(p, replace(d, forms=()))):
            likeness = _likeness(p, d, drafted) + (not reply.notes)
            words = -1 if _left_over(reply) else sum(map(len, _words(d)))
            ranked.append((words, named(d, name), likeness, len(d.models), -i))
    if drafted and ranked and max(ranked)[0] < 0:
        return drafted  # every known dialect leaves a part of the calls unread
    return replace(known()[-max(ranked)[-1]], origin="by its chat template") if ranked else drafted


def _left_over(reply: Reply) -> list[ToolCall | Note]:
    """What a dialect did not read of the calls: doubtful calls, and markers around them that it does not have."""
    doubtful = (call for call in reply.calls if not call.whole)
    return [*doubtful, *(note for note in reply.notes if note.rule == "other-markers")]


def _words(d: Dialect) -> tuple[str, ...]:
    """The literals of a call without the keys of a JSON object, since any object may have those."""
    return tuple(word for word in literals(d) if not word.startswith('"'))


def _likeness(p: Probe, d: Dialect, drafted: Dialect | None) -> float:
    """The similarity of the rest of the template to a dialect, among those with the same markers around a call.

    Variants differ in whitespace, which two calls written in full show; in what precedes them, surrounds thoughts and
    texts and ends a turn, which the draft shows; and in the other markers of their prompts.
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
    words = (part for r in results if r for part in (*r.each, r.open, r.close) if isinstance(part, str))
    return frozenset(
        m for text in (*thinking, *layout, *d.frame, *d.stop, *d.control, *words) for m in MARK.findall(text)
    )


def _share(template: str, d: Dialect) -> float:
    """The fraction of the dialect's other markers that the template has."""
    marks = _marks(d)
    return sum(mark in template for mark in marks) / len(marks) if marks else 0.0


def _coverage(template: str, d: Dialect) -> tuple[int, int]:
    """How much of the dialect's call occurs in the template's source (0 unless all its markers do); and how much of
    its other markers for tools, for a template that renders no call."""
    text = " ".join((d.open, d.close, *(part for part in d.call if isinstance(part, str))))
    marks = MARK.findall(text)
    others = _standing(template, (mark for mark in _marks(d) if "tool" in mark.lower()))
    if not marks or not all(mark in template for mark in marks):
        return 0, others
    rest = re.findall(r"[\w`=]{3,}", MARK.sub(" ", text))
    return sum(map(len, marks)) + _standing(template, rest), others


def _standing(template: str, words: Iterable[str]) -> int:
    """The number of characters in those of the words that occur in the template."""
    return sum(len(word) for word in words if word in template)
