"""Logs each request to a model and each run of a tool: names and counts, and at DEBUG the texts and arguments."""

from __future__ import annotations

import logging
from typing import Any, cast

from ..events import Noted
from ..plan.effects import Ask, Effect, Run, Score, Tell
from ..types import Note, Reply, ToolResult
from .base import Model

log = logging.getLogger("toolspeak")
content = logging.getLogger("toolspeak.content")
"""The logger of texts and arguments. The gateway turns it off, because not every reader of logs may see them."""


notes = content.getChild("notes")
"""The logger of the details of notes, such as why a model is asked again. `-v` of a command turns it on."""


def _logs(level: int) -> bool:
    """Whether the level is logged: otherwise nothing needs to be formatted."""
    return log.isEnabledFor(level) or content.isEnabledFor(logging.DEBUG)


def log_effect(effect: Effect, model: Model, level: int) -> None:
    """Log the next step, at the level."""
    if not _logs(level):
        return
    match effect:
        case Ask(request):
            tools = 0 if request.tools is None else len(request.tools)
            log.log(level, "asking %s: %d messages, %d tools", model.name, len(request.messages), tools)
        case Score(pairs):
            log.log(level, "asking %s for the likelihoods of %d texts", model.name, len(pairs))
        case Run(calls):
            log.log(level, "running %s", ", ".join(call.name for call in calls))
        case Tell(events):
            for event in events:
                if isinstance(event, Noted):
                    _log_note(event.note, level)


def _log_note(note: Note, level: int) -> None:
    log.log(level, "%s", note.rule)
    if not content.disabled:
        notes.debug("%s: %s", note.rule, note.detail)


def log_outcome(outcome: Any, level: int) -> None:
    """Log the result of a step, at the level."""
    if not _logs(level):
        return
    if isinstance(outcome, Reply):
        wanted = ", ".join(call.name for call in outcome.calls)
        log.log(level, "%s: %d characters%s", outcome.finish, len(outcome.text), f", calls {wanted}" if wanted else "")
        content.debug("said %r", outcome.text)
        for note in outcome.notes:
            _log_note(note, level)
        for call in outcome.calls:
            content.debug("wants %s(%s)", call.name, call.json or call.arguments)
    elif isinstance(outcome, tuple):
        for result in cast("tuple[ToolResult, ...]", outcome):
            became = f"failed with {type(result.error).__name__}" if result.error else "done"
            log.log(level, "%s %s in %.2f s", result.name, became, result.seconds)
            content.debug("%s gave %s", result.name, result.text)
