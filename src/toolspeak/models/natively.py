"""A server that is asked with tools as its API has them: markers in what others wrote are broken on the way to it, too.

Engines put the texts of a request into their chat template and read the whole as tokens, those of a user's text as
well. What is broken is made whole again in the reply. Hosted APIs, which tell texts and markers apart, are asked as it is.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace
from typing import cast

from ..events import Event
from ..types import Note, Request
from ..wire.markers import cleaned_messages, cleaned_tools, control_markers, was_broken
from ..wire.restoring import Restorer
from ..wire.syntax import Dialect
from .base import Model
from .http import Http
from .providers import hosted

THOUGHT = ("<think>", "</think>")
"""How most templates tell a thought in an earlier reply."""


def guarded(model: Http, request: Request, dialect: Dialect | None = None) -> Request:
    """The request as it is sent: with the markers in its texts broken, those of the model's own dialect among them."""
    if request.prompt is not None or hosted(model.address.shown):
        return request
    markers, notes = control_markers(dialect), list[Note]()
    thinking = dialect.thinking if dialect else None
    thought = (thinking.open.strip(), thinking.close.strip()) if thinking else THOUGHT
    tools = cleaned_tools(request.tools, markers, notes) if request.tools else request.tools
    choice = request.choice
    if request.tools and tools and choice not in ("auto", "none", "required"):
        renamed = {old.name: new.name for old, new in zip(request.tools, tools, strict=True)}
        choice = renamed.get(choice, choice)
    messages = cleaned_messages(request.messages, markers, thought)
    return replace(request, messages=messages, tools=tools, choice=choice)


async def natively(
    model: Http, request: Request, dialect: Dialect | None = None, *, by: Model | None = None
) -> AsyncGenerator[Event]:
    """The events of the reply to a request that is sent `guarded`, what was broken in it whole again; `by` is a model
    around `model` that it goes through."""
    request = guarded(model, request, dialect)
    rows = [(tool.name, tool.description, tool.parameters) for tool in request.tools or ()]
    restorer = Restorer() if was_broken(request.messages) or was_broken(rows) else None
    async with aclosing(cast("AsyncGenerator[Event]", (by or model).stream(request))) as events:
        async for event in events:
            if restorer is None:
                yield event
            else:
                for one in restorer.feed((event,)):
                    yield one
