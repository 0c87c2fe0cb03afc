"""A form: one way of asking a model for calls. Natively, scored, or prompted in a dialect."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from ..dialects import get
from ..errors import UsageError
from .base import Model
from .speaker import Speaker
from .strategy import WAYS, Known, Way, known_of, strategy

if TYPE_CHECKING:
    from .abilities import Abilities
    from .http import Http

PLAIN = ("tool-json", "function-name", "hermes", "functools", "pythonic")
"""Dialects that any model may take to, each asked in another way: an object in words; nothing but one call; between tags,
which most models that know tools were taught; a list in JSON; Python."""
UNSERVED = ("found", "template", "models", "at")
"""What of a server's abilities no form needs."""


@dataclass(frozen=True, slots=True)
class Form:
    """A way of asking, with its `dialect` where it has one; without one a prompted model is asked by its own chat
    template, which knows tools. Not `held`, a reply is free even where the model takes a grammar. `server` is what must be
    known of a server for that: fields of `Abilities`."""

    way: Way
    dialect: str = ""
    held: bool = True
    server: dict[str, Any] = field(default_factory=dict[str, Any], compare=False)

    def __post_init__(self) -> None:
        if self.way not in WAYS:
            raise UsageError(f"way: expected {', '.join(WAYS)}, received {self.way!r}")
        if self.dialect:
            get(self.dialect)  # a name that is none is told now

    @property
    def label(self) -> str:
        """What tables call it: `scored`, `hermes`, `hermes, free`."""
        name = (self.dialect or "template") if self.way == "prompted" else self.way
        return name + ("" if self.held else ", free")


def asked(model: Model, form: Form, profile: str = "") -> Model:
    """The model, which is a text model or a server's, asked in that form, as the file `profile` says. Raises UsageError
    where it cannot be."""
    from .http import Http

    if isinstance(model, Http):
        return _served(model, form, profile)
    if form.way == "native":
        raise UsageError(f"{model.name} cannot be asked in the form {form.label!r}")
    known = Known() if form.dialect else replace(known_of(model), tools=None)
    chosen = strategy(known, way=form.way, dialect=form.dialect or None)
    why = f"as it was tuned: {profile}" if profile else chosen.why
    return Speaker(model, strategy=replace(chosen, why=why, constrained=form.held, profile=profile))


def _served(model: Http, form: Form, profile: str) -> Model:
    from .abilities import Abilities
    from .adaptive import Adaptive

    names = {each.name for each in fields(Abilities)}.difference(UNSERVED)
    told = {name: value for name, value in form.server.items() if name in names}
    usual: dict[str, Any] = {"address": model.address.shown, "model": model.model or "", "api": model.api}
    if form.way == "native":
        return Adaptive(model, look=False, profile=profile)
    return Adaptive(
        model, way=form.way, exact=None if form.way == "scored" else False, dialect=form.dialect or None,
        constrained=form.held, abilities=Abilities(**{**usual, **told}), profile=profile,
    )  # fmt: skip


def server_of(known: Abilities) -> dict[str, Any]:
    """What a form has to know of a server."""
    return {
        each.name: value for each in fields(known) if each.name not in UNSERVED and (value := getattr(known, each.name))
    }
