"""A form: one way of asking a model for calls. By its server's own tools, by likelihood, or in a dialect."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from ..dialects import get
from ..errors import UsageError
from .base import Model
from .speaker import DEFAULT, Speaker, speaking

if TYPE_CHECKING:
    from .abilities import Abilities
    from .http import Http

Way = Literal["native", "likelihood", "template", "dialect"]
"""native: as its server takes tools. likelihood: decided by how likely texts are. template: by its own chat template,
which knows tools. dialect: in messages."""
WAYS: tuple[Way, ...] = get_args(Way)
PLAIN = ("tool-json", "function-name", "hermes", "functools", "pythonic")
"""Dialects that any model may take to, each asked in another way: an object in words; nothing but one call; between tags,
which most models that know tools were taught; a list in JSON; Python."""
UNSERVED = ("found", "template", "models", "at")
"""What of a server's abilities no form needs."""


@dataclass(frozen=True, slots=True)
class Form:
    """A way of asking, with its `dialect` where it has one. Not `held`, a reply is free even where the model takes a
    grammar. `server` is what must be known of a server for that: fields of `Abilities`."""

    way: Way
    dialect: str = ""
    held: bool = True
    server: dict[str, Any] = field(default_factory=dict[str, Any], compare=False)

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise UsageError(f"way: expected {', '.join(WAYS)}, received {self.way!r}")
        if self.way == "dialect":
            get(self.dialect)  # a name that is none is told now

    @property
    def label(self) -> str:
        """What tables call it: `likelihood`, `hermes`, `hermes, free`."""
        return (self.dialect if self.way == "dialect" else self.way) + ("" if self.held else ", free")


def asked(model: Model, form: Form) -> Model:
    """The model, which is a text model or a server's, asked in that form. Raises UsageError where it cannot be."""
    from .http import Http
    from .wrap import NativeOrSpoken

    if isinstance(model, Http):
        return NativeOrSpoken(model) if form.way == "native" else _served(model, form)
    match form.way:
        case "dialect":
            return Speaker(model, form.dialect, held=form.held)
        case "likelihood" if "score" in model.capabilities:
            return Speaker(model)
        case "template":
            return speaking(model)
        case _:
            raise UsageError(f"{model.name} cannot be asked in the form {form.label!r}")


def _served(model: Http, form: Form) -> Model:
    from .abilities import Abilities
    from .likelihood import Way as ScoreWay
    from .likelihood import Weighing
    from .modes import in_mode

    names = {each.name for each in fields(Abilities)}.difference(UNSERVED)
    told = {name: value for name, value in form.server.items() if name in names}
    usual: dict[str, Any] = {"address": model.address.shown, "model": model.model or "", "api": model.api}
    known = Abilities(**{**usual, **told})
    spoken = cast("Speaker", in_mode("chat", model, dialect=form.dialect or DEFAULT, known=known))
    if form.way == "dialect":
        return Speaker(spoken.model, form.dialect, held=form.held)
    if form.way != "likelihood" or not known.score_way:
        raise UsageError(f"{model.name} cannot be asked in the form {form.label!r}")
    return Speaker(Weighing(cast("Http", spoken.model), cast("ScoreWay", known.score_way), known.slots))


def server_of(known: Abilities) -> dict[str, Any]:
    """What a form has to know of a server."""
    return {
        each.name: value for each in fields(known) if each.name not in UNSERVED and (value := getattr(known, each.name))
    }
