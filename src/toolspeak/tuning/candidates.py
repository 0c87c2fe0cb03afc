"""The forms that are worth trying with a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..dialects import names
from ..errors import UsageError
from ..models.base import Model
from ..models.forms import PLAIN, Form, asked, server_of
from ..models.http import Http
from ..models.probe import abilities
from ..models.speaker import DEFAULT, HOLDS
from ..models.strategy import known_of, strategy
from ..wire.detect import by_template, detect


@dataclass(frozen=True, slots=True)
class Candidate:
    """A form to try; `usual`: it is what the model is asked in without a profile."""

    form: Form
    usual: bool = False


async def candidates(model: Model, dialects: Sequence[str] = ()) -> list[Candidate]:
    """The forms to try with a text model or a server, the usual one first. `dialects` take the place of PLAIN and of the
    model's own.

    A server is probed first, unless that was done within a day. Raises the ModelError of one that cannot be asked.
    """
    if isinstance(model, Http):
        return await _of_server(model, dialects)
    if "tools" in model.capabilities:
        raise UsageError(f"{model.name} takes tools by itself, and there is no other form to try")
    known = known_of(model)
    forms = [Form("prompted")] if known.template and by_template(known.template) else []
    forms += [Form("scored")] if known.scores else []
    first = strategy(known)
    usual = Form(first.way, "" if first.template or first.way == "scored" or not first.dialect else first.dialect.name)
    return _with_dialects(usual, forms, dialects or PLAIN, bool(HOLDS & model.capabilities), {})


async def _of_server(model: Http, dialects: Sequence[str]) -> list[Candidate]:
    known = await abilities(model)
    server = server_of(known)
    forms = [Form("native", server=server)] if known.can("tools") else []
    forms += [Form("scored", server=server)] if known.score_way else []
    if not known.can("chat"):
        raise UsageError(f"{model.name} answers no conversation, and only forms inside one are tried")
    own = detect(known.template or None, known.model).name if known.template or known.model else DEFAULT
    tried = dialects or list(dict.fromkeys([*([own] if own in names() else []), *PLAIN]))
    first = strategy(replace(known.known, completes=False))
    usual = Form(
        first.way, first.dialect.name if first.dialect and first.dialect.name in names() else "", server=server
    )
    return _with_dialects(usual, forms, tried, _can_hold(model, server), server)


def _can_hold(model: Http, server: dict[str, Any]) -> bool:
    return bool(HOLDS & asked(model, Form("prompted", DEFAULT, server=server)).capabilities)


def _with_dialects(
    usual: Form, forms: Sequence[Form], dialects: Sequence[str], holds: bool, server: dict[str, Any]
) -> list[Candidate]:
    """The forms and those in dialects, held and free where there is a difference, the usual one first."""
    every = list(forms)
    first = [] if usual in forms else [usual.dialect or DEFAULT]
    for dialect in dict.fromkeys([*first, *dialects]):
        every += [Form("prompted", dialect, held, server) for held in ((True, False) if holds else (True,))]
    usual = usual if usual in every else every[0]
    return [Candidate(usual, True), *(Candidate(form) for form in every if form != usual)]
