"""What a decision asked of the model below it, and what came: prompts, texts, likelihoods, exactly.

A model that writes calls in a dialect, or decides by likelihoods, asks a text model under it. The recorder stands
between the two, so that what is recorded is what the text model itself was given.
"""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import Any, cast

from ..errors import ModelError, UsageError
from ..events import Event
from ..explain import Remote
from ..models.adaptive import Adaptive, calling
from ..models.base import Capability, Counter, Model, Scorer
from ..models.speaker import Speaker
from ..types import Reply, Request, Usage
from ..wire.collect import add_usage, collect

Step = dict[str, Any]
"""One thing asked, as JSON. `ask` is what was sent and `came` what came; or `score` holds `prompt`, `texts`, `scores`."""


@dataclass(slots=True)
class Tape:
    """What was asked while it ran, and of which model."""

    steps: list[Step] = field(default_factory=list[Step])
    asked: list[Model] = field(default_factory=list[Model])

    async def usage(self) -> Usage:
        """The tokens of everything asked: as told with replies; those of likelihoods are counted now, the prompt once
        for each text, where the model can count."""
        spent = Usage()
        for step, model in zip(self.steps, self.asked, strict=True):
            if "came" in step:
                spent = add_usage(spent, Usage(**step["came"].get("usage", {})))
            elif "score" in step and isinstance(model, Counter):
                score = step["score"]
                with contextlib.suppress(ModelError, UsageError):  # it cannot tell: what was asked stands
                    sent = [await model.count(Request(prompt=score["prompt"] + text)) for text in score["texts"]]
                    spent = add_usage(spent, Usage(prompt_tokens=sum(n or 0 for n in sent)))
        return spent


_tape: ContextVar[Tape | None] = ContextVar("tape", default=None)


@contextlib.contextmanager
def recording() -> Generator[Tape]:
    """A tape of what recorded models are asked in this context."""
    tape = Tape()
    token = _tape.set(tape)
    try:
        yield tape
    finally:
        _tape.reset(token)


def recorded(model: Model) -> Model:
    """The model as one that calls tools, with a recorder before whatever is asked in the end; the given one stays as
    it is."""
    model = calling(model)
    if isinstance(model, Adaptive):
        return model.wrapped(Recorder)
    if not isinstance(model, Speaker):
        return Recorder(model)
    made = copy.copy(model)
    made.model = Recorder(model.model)
    return made


class Recorder:
    """A model that passes everything on to another and keeps it on the tape that runs, if any does."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self.name = model.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        return self.model.capabilities

    async def stream(self, request: Request) -> AsyncGenerator[Event]:
        step: Step = {"ask": _told(self.model, request)}
        self._keep(step)
        heard: list[Event] = []
        stream = cast("AsyncGenerator[Event]", self.model.stream(request))
        try:
            async with aclosing(stream):
                async for event in stream:
                    heard.append(event)
                    yield event
        finally:
            step["came"] = _came(collect(heard))

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        if not isinstance(self.model, Scorer):
            raise ModelError(f"{self.name} gives no likelihoods")
        scores = await self.model.score(prompt, continuations)
        self._keep({"score": {"prompt": prompt, "texts": list(continuations), "scores": list(scores)}})
        return scores

    async def count(self, request: Request) -> int | None:
        return await self.model.count(request) if isinstance(self.model, Counter) else None

    async def aclose(self) -> None:
        await close(self.model)

    def _keep(self, step: Step) -> None:
        tape = _tape.get()
        if tape is not None:
            tape.steps.append(step)
            tape.asked.append(self.model)


async def load(model: Model) -> None:
    """Loads what a model loads on its first request, so that this does not count as the time of an answer."""
    inner: Any = model
    while isinstance(inner, (Speaker, Recorder)):
        inner = inner.model
    if hasattr(inner, "load"):
        await inner.load()


async def close(model: Model) -> None:
    """Lets go of a model's connections, if it has any."""
    inner: Any = model.model if isinstance(model, Speaker) else model
    if hasattr(inner, "aclose"):
        await inner.aclose()


def _told(model: Model, request: Request) -> dict[str, Any]:
    """What is sent: the very body that a server gets, else the request without what it leaves open."""
    if isinstance(model, Remote):
        return {"url": model.endpoint, "body": json.loads(model.body(request))}
    told = {each.name: getattr(request, each.name) for each in fields(request)}
    if request.prompt is not None:
        del told["messages"]
    if request.tools is not None:
        told["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ]
    open_ = {"choice": "auto", "parallel": True, "whole": False}
    return {name: value for name, value in told.items() if value not in (None, (), {}, open_.get(name))}


def _came(reply: Reply) -> dict[str, Any]:
    usage = {each.name: value for each in fields(Usage) if (value := getattr(reply.usage, each.name))}
    calls = [{"name": call.name, "json": call.json} for call in reply.calls]
    told = {"text": reply.text, "thought": reply.thought, "calls": calls, "usage": usage}
    return {name: value for name, value in told.items() if value} | {"finish": reply.finish}


# ------------------------------------------------------------------ many prompts with the same beginning


def packed(steps: Sequence[Step]) -> list[Step]:
    """The steps with each score's prompt as its `rest` after the first `head` characters of the first score's."""
    first = next((step["score"]["prompt"] for step in steps if "score" in step), "")
    out: list[Step] = []
    begun = False
    for step in steps:
        if "score" in step and begun:
            score = dict(step["score"])
            prompt = score.pop("prompt")
            head = _shared(first, prompt)
            step = {"score": {"head": head, "rest": prompt[head:], **score}}
        begun = begun or "score" in step
        out.append(step)
    return out


def unpacked(steps: Sequence[Step]) -> list[Step]:
    """The steps with whole prompts again."""
    first = next((step["score"]["prompt"] for step in steps if "score" in step), "")
    out: list[Step] = []
    for step in steps:
        if "head" in step.get("score", {}):
            score = dict(step["score"])
            prompt = first[: score.pop("head")] + score.pop("rest")
            step = {"score": {"prompt": prompt, **score}}
        out.append(step)
    return out


def _shared(one: str, other: str) -> int:
    """How many characters two texts begin with in common; by halves, since they are long."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
