"""Records every raw request to the underlying text model, with its replies and log probabilities.

A model that writes calls in a dialect, or decides by likelihoods, calls an underlying text model. The recorder sits
between the two and records exactly what the text model gets.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from typing import Any

from ..errors import ModelError, UsageError
from ..explain import Remote
from ..models.base import Model, TokenCounter
from ..models.recording import Recorder, StreamOutcome
from ..models.tool_calling import around_innermost, calling
from ..models.wrapper import within
from ..types import Reply, Request, Usage
from ..wire.reading.collect import add_usage, collect

Step = dict[str, Any]
"""One recorded request, as JSON. Either `ask` is the request and `came` the reply, or `score` holds `prompt`, `texts`
and `scores`."""


@dataclass(slots=True)
class TraceTape:
    """The recorded requests, and the model that each was sent to."""

    steps: list[Step] = field(default_factory=list[Step])
    models: list[Model] = field(default_factory=list[Model])

    async def usage(self) -> Usage:
        """The tokens of all requests. Replies report theirs; tokens of likelihood requests are counted now, with the
        prompt once for each text, if the model can count tokens."""
        spent = Usage()
        for step, model in zip(self.steps, self.models, strict=True):
            if "came" in step:
                spent = add_usage(spent, Usage(**step["came"].get("usage", {})))
            elif "score" in step and isinstance(model, TokenCounter):
                score = step["score"]
                with contextlib.suppress(ModelError, UsageError):  # it cannot count: use the figures of the replies
                    sent = [await model.count(Request(prompt=score["prompt"] + text)) for text in score["texts"]]
                    spent = add_usage(spent, Usage(prompt_tokens=sum(n or 0 for n in sent)))
        return spent


_tape: ContextVar[TraceTape | None] = ContextVar("tape", default=None)


@contextlib.contextmanager
def recording() -> Generator[TraceTape]:
    """Records the requests of recorded models in this context, as a tape."""
    tape = TraceTape()
    token = _tape.set(tape)
    try:
        yield tape
    finally:
        _tape.reset(token)


def recorded(model: Model) -> Model:
    """A copy of the model, made able to call tools, whose innermost model is recorded. The original is unchanged."""
    return around_innermost(calling(model), lambda inner: Recorder(inner, _RunningTape()))


class _RunningTape:
    """Writes to the tape that is running in this context, if any."""

    def begin(self, model: Model, request: Request) -> Callable[[StreamOutcome], None]:
        step: Step = {"ask": _request_record(model, request)}
        self._add(model, step)

        def end(outcome: StreamOutcome) -> None:
            step["came"] = _reply_record(collect(outcome.events))

        return end

    def score(self, model: Model, prompt: str, continuations: Sequence[str], scores: Sequence[float]) -> None:
        self._add(model, {"score": {"prompt": prompt, "texts": list(continuations), "scores": list(scores)}})

    def count(self, model: Model, request: Request, tokens: int | None) -> None:
        """Records nothing: counting tokens generates no text."""

    def _add(self, model: Model, step: Step) -> None:
        tape = _tape.get()
        if tape is not None:
            tape.steps.append(step)
            tape.models.append(model)


def _request_record(model: Model, request: Request) -> dict[str, Any]:
    """The exact body that is sent to a server; for other models the fields of the request that are set."""
    if remote := within(model, Remote):
        return {"url": remote.endpoint, "body": json.loads(remote.body(request))}
    row = {each.name: getattr(request, each.name) for each in fields(request)}
    if request.prompt is not None:
        del row["messages"]
    if request.tools is not None:
        row["tools"] = [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.tools
        ]
    open_ = {"choice": "auto", "parallel": True, "whole": False}
    return {name: value for name, value in row.items() if value not in (None, (), {}, open_.get(name))}


def _reply_record(reply: Reply) -> dict[str, Any]:
    usage = {each.name: value for each in fields(Usage) if (value := getattr(reply.usage, each.name))}
    calls = [{"name": call.name, "json": call.json} for call in reply.calls]
    row = {"text": reply.text, "thought": reply.thought, "calls": calls, "usage": usage}
    return {name: value for name, value in row.items() if value} | {"finish": reply.finish}


# ------------------------------------------------------------------ many prompts with the same beginning


def packed(steps: Sequence[Step]) -> list[Step]:
    """The steps with shared prompts stored once: each later score has the length of the part that it shares with the
    first (`head`), and the `rest`."""
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
    """The steps with their full prompts: the inverse of `packed`."""
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
    """The length of the common prefix of two texts, found by bisection since they are long."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[:middle] == other[:middle]:
            low = middle
        else:
            high = middle - 1
    return low
