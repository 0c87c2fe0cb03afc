"""Reads the strategies that a user names for asking again (`reask=`), and finds the models that they need. `plan.reask`
carries them out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ..dialects import get
from ..errors import UsageError
from ..plan.reask import ReaskStrategy, usual
from ..schema.suggestions import did_you_mean, near
from ..wire.detect import ANY
from .base import Around, Model
from .fallback import Adaptive
from .resolve import model as named_model
from .speaker import Speaker
from .strategy import Strategy
from .tool_calling import calling

OTHER = "hermes"
"""The other dialect of a model that is asked in ANY already: the one that most models have seen."""
KINDS = ("told", "alone", "dialect", "sampling", "model")


@dataclass(frozen=True, slots=True)
class ReaskPolicy:
    """The strategies for one model, and the other models that are asked in them by name."""

    strategies: tuple[ReaskStrategy, ...]
    others: dict[str, Model] = field(default_factory=dict[str, Model])


def reask_policy(strategies: Sequence[str | Model] | None, model: Model) -> ReaskPolicy:
    """Return the policy for a model that calls tools. None stands for the usual strategies of the model, () for none.

    Each strategy is `told`, `alone`, `dialect`, `dialect:NAME`, `sampling`, `model:NAME` or a model. Raises UsageError
    for any other, and for an unknown model or dialect. No request is sent and no model is loaded. Wrappers around the
    model are also put around the other models.
    """
    if isinstance(model, Around):
        inner = reask_policy(strategies, model.model)
        return ReaskPolicy(inner.strategies, {name: model.around(other) for name, other in inner.others.items()})
    if strategies is None:
        return ReaskPolicy(usual(model.capabilities))
    ordered: list[ReaskStrategy] = []
    others: dict[str, Model] = {}
    by, voice = "", model
    for one in _listed(strategies):
        kind, name = _read(one)
        if kind in ("dialect", "model"):
            other = (
                _in_dialect(voice, name)
                if kind == "dialect"
                else calling(named_model(name) if isinstance(one, str) else one)
            )
            if other is None:
                continue
            voice = other
            label = voice.dialect.name if kind == "dialect" and isinstance(voice, Speaker) else voice.name
            kind = by = _unique_name(f"{kind}:{label}", others)
            others[by] = voice
        ordered.append(ReaskStrategy(kind, by, "scored" in voice.capabilities))
    return ReaskPolicy(tuple(ordered), others)


def _listed(strategies: str | Sequence[str | Model]) -> Sequence[str | Model]:
    """The strategies, also of one word. Raises UsageError for what is no list."""
    if isinstance(strategies, str):
        return [strategies]
    if not isinstance(strategies, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"reask: expected words and models, received {type(strategies).__name__}; {_known()}")
    return strategies


def _read(one: str | Model) -> tuple[str, str]:
    """The kind of a strategy, and the name behind it."""
    if not isinstance(one, str):
        if isinstance(one, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
            return "model", ""
        raise UsageError(f"reask: expected words and models, received {type(one).__name__}; {_known()}")
    kind, colon, name = one.strip().partition(":")
    if kind not in KINDS or (colon and kind not in ("dialect", "model")):
        meant = near(kind, KINDS) if kind not in KINDS else (kind,)
        raise UsageError(f"reask: received {one!r}.{did_you_mean(meant)} {_known()}")
    if kind == "model" and not name:
        raise UsageError("reask: expected the name of a model after model:, such as model:ollama:NAME")
    return kind, name


def _known() -> str:
    return "There are told, alone, dialect, dialect:NAME, sampling, model:NAME, and models themselves"


def _in_dialect(model: Model, name: str) -> Speaker | None:
    """The model with its tools told in a dialect; without a name, in one that it is not asked in so far. None where
    that changes nothing."""
    if isinstance(model, Adaptive):
        model = model.model if isinstance(model.model, Speaker) else model.http
    if not isinstance(model, Speaker):
        return Speaker(model, name or ANY)
    now = model.strategy
    spoken = "" if now.way == "scored" else model.dialect.name
    wanted = get(name or (OTHER if spoken == ANY else ANY))
    other = Strategy("prompted", "it is asked again", wanted, exact=now.exact, explicit=now.explicit)
    return None if wanted.name == spoken else Speaker(model.model, strategy=other)


def _unique_name(name: str, others: dict[str, Model]) -> str:
    """Return the name, with a number behind `#` if another model has it already."""
    same = sum(other.partition("#")[0] == name for other in others)
    return f"{name}#{same + 1}" if same else name
