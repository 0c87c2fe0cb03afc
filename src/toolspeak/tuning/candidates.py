"""The forms that are worth trying with a model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..dialects import names
from ..errors import UsageError
from ..models.base import Model
from ..models.forms import PLAIN, Form, asked, server_of
from ..models.http import Http
from ..models.modes import abilities
from ..models.speaker import DEFAULT, HOLDS, Templated
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
    template = model.template[0] if isinstance(model, Templated) else ""
    forms = [Form("template")] if template and by_template(template) else []
    if "score" in model.capabilities:
        forms.append(Form("likelihood"))
    return _with_dialects(forms, dialects or PLAIN, bool(HOLDS & model.capabilities), {})


async def _of_server(model: Http, dialects: Sequence[str]) -> list[Candidate]:
    known = await abilities(model)
    server = server_of(known)
    forms = [Form("native", server=server)] if known.can("tools") else []
    if known.score_way:
        likely = Form("likelihood", server=server)
        forms = [likely, *forms] if known.weighs and not forms else [*forms, likely]
    if not known.can("chat"):
        raise UsageError(f"{model.name} answers no conversation, and only forms inside one are tried")
    own = detect(known.template or None, known.model).name if known.template or known.model else DEFAULT
    tried = dialects or list(dict.fromkeys([*([own] if own in names() else []), *PLAIN]))
    usual = bool(forms) and (forms[0].way == "native" or known.weighs)
    return _with_dialects(forms, tried, _can_hold(model, server), server, usual=usual)


def _can_hold(model: Http, server: dict[str, Any]) -> bool:
    spoken: Any = asked(model, Form("dialect", DEFAULT, server=server))
    return bool(HOLDS & spoken.model.capabilities)


def _with_dialects(
    forms: Sequence[Form], dialects: Sequence[str], holds: bool, server: dict[str, Any], *, usual: bool = True
) -> list[Candidate]:
    """The forms and those in dialects, held and free where there is a difference, the usual one first: the first of
    `forms`, if the usual one is among them, else DEFAULT."""
    every = list(forms)
    usual = usual and bool(forms)
    for dialect in dialects if usual else dict.fromkeys([DEFAULT, *dialects]):
        every += [Form("dialect", dialect, held, server) for held in ((True, False) if holds else (True,))]
    first = every[0] if usual else next(form for form in every if form.way == "dialect")
    return [Candidate(first, True), *(Candidate(form) for form in every if form is not first)]
