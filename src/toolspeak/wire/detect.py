"""Which dialect a model speaks, by its chat template or its name."""

from __future__ import annotations

from dataclasses import replace

from ..dialects import get, names
from ..errors import UnknownDialect
from .syntax import Dialect
from .template import abilities, literals, speaks

ANY = "tool-json"


def detect(template: str | None = None, model: str | None = None) -> Dialect:
    """The dialect whose calls the template writes, else that of models so named; `origin` says which it was.

    A template that writes calls of no known dialect is believed more than a name. Raises UnknownDialect where
    neither tells.
    """
    known = [get(name) for name in names()]
    if template:
        scores = [(_score(template, d), -i) for i, d in enumerate(known)]
        score, i = max(scores)
        if score:
            return replace(known[-i], origin="by its chat template")
    if model and not (template and abilities(template).calls):
        name = model.lower().replace("_", "-").replace(" ", "-")
        scores = [(max((len(part) for part in d.models if part in name), default=0), -i) for i, d in enumerate(known)]
        score, i = max(scores)
        if score:
            return replace(known[-i], origin=f"by the model's name, {model}")
    what = " and ".join(w for w, given in (("chat template", template), (f"model name {model!r}", model)) if given)
    raise UnknownDialect(
        f"no known dialect in this {what or 'question: give a template or a model'}; "
        f"name one ({', '.join(names())}), {ANY} does for any model that follows instructions"
    )


def _score(template: str, d: Dialect) -> int:
    """How much of a call of the dialect the template writes, in characters; 0 unless all of it.

    A template that renders shows its calls; of another only the text can be searched.
    """
    words = literals(d)
    spoken = speaks(template, d) if abilities(template).sample else all(word in template for word in words)
    return sum(map(len, words)) if spoken else 0
