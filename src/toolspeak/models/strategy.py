"""Decides how a model is asked for calls. Library, command line and gateway all use this one function.

From what is known of a model (`Known`) and what its user wants, `strategy` makes one of three ways, with the reason in
words. The first rule that fits counts:

1. What the user wants: a dialect, a way, a profile of `toolspeak tune`.
2. A server whose API has tools is offered them, unless it refuses them or was seen to drop them.
3. A model that reports likelihoods is scored where it is too weak to be prompted: the embedded one, and one that is known
   to have fewer than half a billion parameters and whose template knows no tools. A model of unknown size is prompted.
4. Any other is prompted: in the dialect of its chat template, by that template to the letter where it continues exact
   prompts; else in messages, in the dialect of models of its name; else in the one for any model.

Nothing here asks a model. What has to be found out first is `unseen`, and the strategy changes when it is seen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, Literal, get_args

from ..dialects import get
from ..errors import UsageError
from ..wire.detect import ANY, by_template, detect
from ..wire.dialect import Dialect
from .base import Model

Way = Literal["native", "prompted", "scored"]
"""native: tools as the server's API has them. prompted: tools stand in the prompt, and calls are read from the text.
scored: calls are decided by how likely texts are."""
WAYS: tuple[Way, ...] = get_args(Way)
PLAIN = ("tool-json", "function-name", "hermes", "functools", "pythonic")
"""Dialects that any model may take to, each asked in another way: an object in words; nothing but one call; between
tags, which most models that know tools were taught; a list in JSON; Python."""
SMALL = 500_000_000
"""Parameters below which a model is too weak to be prompted in a dialect that it was not taught."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a model; a field is empty where nobody knows.

    `name` is what its maker calls it. `tools` is whether a server takes tools, None for a model that has no API for them;
    `seen` is what was seen of that, "" for what was not looked at yet. `chats` and `completes` are whether it answers
    conversations and continues exact prompts, `scores` whether it reports likelihoods. `variables` are what its
    `template` asks for, such as `bos_token`.
    """

    name: str = ""
    template: str = ""
    parameters: int = 0
    embedded: bool = False
    tools: bool | None = None
    seen: str = ""
    chats: bool = True
    completes: bool = False
    scores: bool = False
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Preferences:
    """How its user wants a model to be asked; what is left open is decided by what is known of it.

    A `way`, a `dialect`, prompts by a `template`, and whether they are `exact`; `constrained` and `profile` are those of
    the Strategy.
    """

    way: Way | None = None
    dialect: str | Dialect | None = None
    template: str = ""
    exact: bool | None = None
    constrained: bool = True
    profile: str = ""


NO_PREFERENCES = Preferences()


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a model is asked, and why.

    A `dialect` is what calls are written and read in (None for the native way: the model's own, by its name). With a
    `template`, prompts with tools are laid out by it to the letter; `exact` is for a model that only continues prompts.
    `constrained` is whether a reply that may hold calls is held to the dialect's grammar, where the engine takes one.
    One that `toolspeak tune` chose names its file, the `profile`, and what the `server` can do as it was tried with, by
    the fields of `ServerCapabilities`. `explicit`: the user named the dialect.
    """

    way: Way
    why: str = field(default="", compare=False)
    dialect: Dialect | None = None
    template: str = ""
    exact: bool = False
    constrained: bool = True
    profile: str = ""
    server: Mapping[str, Any] = field(default_factory=dict[str, Any], compare=False)
    explicit: bool = field(default=False, compare=False)

    @property
    def label(self) -> str:
        """What tables call it: `scored`, `hermes`, `hermes, free`; `template` for the model's own chat template."""
        name = self.named or "template"
        return (name if self.way == "prompted" else self.way) + ("" if self.constrained else ", free")

    @property
    def named(self) -> str:
        """The name of its dialect, "" where it has none or that of the model's own template."""
        return self.dialect.name if self.dialect and not self.template else ""

    @property
    def reads_all_dialects(self) -> bool:
        """Whether calls in other dialects count: a model may write them in the one that it was trained on, instead of the
        one in which it is asked."""
        return self.way == "prompted" and not self.explicit

    @property
    def line(self) -> str:
        """One line for people: the way, the dialect, the reason."""
        if self.way != "prompted" or self.dialect is None:
            return f"{self.way}: {self.why}"
        how = "by its chat template" if self.template else "by an exact prompt" if self.exact else "in messages"
        return f"prompted in {self.dialect.name} {how}: {self.why}"


def strategy(known: Known, preferred: Preferences = NO_PREFERENCES) -> Strategy:
    """How a model of which this is known is asked; see the head of this file.

    Raises UsageError for a way that the model does not have, UnknownDialect for a name that means no dialect.
    """
    if preferred.way is not None and preferred.way not in WAYS:
        raise UsageError(f"way: expected {', '.join(WAYS)}, received {preferred.way!r}")
    chosen = _chosen(known, preferred)
    why = f"as it was tuned: {preferred.profile}" if preferred.profile else chosen.why
    return replace(chosen, why=why, constrained=preferred.constrained, profile=preferred.profile)


def _chosen(known: Known, preferred: Preferences) -> Strategy:
    way, template, exact = preferred.way, preferred.template, preferred.exact
    dialect = None if preferred.dialect is None else get(preferred.dialect)
    if way in ("scored", "native"):
        return _by_way(known, way, dialect)
    if dialect is not None:
        return Strategy("prompted", "the dialect was given", dialect, template, bool(exact), explicit=True)
    if way is None and exact is None and not template:
        if known.tools:
            why = known.seen or "its API has tools; whether the model gets them was not checked yet"
            return Strategy("native", why)
        if known.scores and (why := _weak(known)):
            return Strategy("scored", why)
    return _prompted(known, template, exact)


def _by_way(known: Known, way: Way, dialect: Dialect | None) -> Strategy:
    """The way that was chosen, where the model has it."""
    model = known.name or "the model"
    if way == "native":
        if known.tools is None:
            raise UsageError(f"{model} has no API that takes tools, so it cannot be asked natively")
        return Strategy("native", "it was chosen", dialect)
    if dialect is not None:
        raise UsageError("a model that is scored writes its calls in no dialect: pass a way or a dialect")
    if not known.scores:
        raise UsageError(f"{model} gives no likelihoods, so its calls cannot be scored")
    return Strategy("scored", "it was chosen")


def _weak(known: Known) -> str:
    """Why a model is scored rather than prompted; "" where it is not."""
    if known.embedded:
        return "the embedded model was not trained on tools"
    if 0 < known.parameters < SMALL and not (known.template and by_template(known.template)):
        size = f"{known.parameters / 1e6:.0f} million parameters"
        return f"it has {size}, fewer than {SMALL // 10**6}, and its template has no place for tools"
    return ""


def _prompted(known: Known, template: str, exact: bool | None) -> Strategy:
    """The prompt for a model whose user named no dialect."""
    refused = (
        f"; tools go into the prompt, because none reach the model otherwise: {known.seen}"
        if known.tools is False
        else ""
    )
    always = exact if exact is not None else not known.chats
    text = template or known.template
    if text and (choice := _dialect_of_template(text, known.name, always)):
        spoken, why = choice
        by_letter = bool(template) or always or (exact is None and known.completes)
        return Strategy("prompted", why + refused, spoken, text if by_letter else "", always)
    if named := by_its_name(known.name):
        why = f"its name, {known.name}, identifies the dialect"
        return Strategy("prompted", why + refused, named, "", always)
    return Strategy("prompted", f"its dialect is unknown{refused}", get(ANY), "", always)


def _dialect_of_template(template: str, name: str, always: bool) -> tuple[Dialect, str] | None:
    """The dialect of a template, and why; where it tells none, one is found for a prompt that is `always` its."""
    if own := by_template(template, name.lower()):
        return own, "its template identifies the dialect"
    return (detect(template, name or None), "its template identifies no dialect") if always else None


@lru_cache(256)
def by_its_name(name: str | None) -> Dialect | None:
    """The dialect that models of this name speak, None where the name tells none."""
    dialect = detect(model=name) if name else None
    return dialect if dialect and dialect.models else None


def known_of(model: Model) -> Known:
    """What is known of a model without asking it."""
    known: Any = getattr(model, "known", None)
    if isinstance(known, Known):
        return known
    can = model.capabilities
    return Known(completes="prompt" in can, scores="score" in can, tools=True if "tools" in can else None)
