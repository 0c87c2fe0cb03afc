"""The playground: one turn of a conversation with a model, shown as it happens, and the calls that the model wants.

A turn is a decision as in `ts.decide`: nothing is run. The user runs the calls or types their results, and then
requests the next turn. With a policy, a turn is a run as in `ts.run`, up to the calls that need approval. It continues
with the answers as in `ts.resume`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Any

from ..drive import Done
from ..errors import GenerationError, ToolspeakError
from ..events import ArgumentsDelta, CallEnd, CallResult, CallStart, Event, Finished, TextDelta, ThoughtDelta
from ..models.base import Model
from ..models.fallback import look
from ..models.pool import Pool
from ..models.speaker import Speaker
from ..models.strategy import Strategy
from ..models.wrapper import within
from ..plan.decide import decide
from ..plan.loop import loop
from ..resume import Answers, play, read_paused
from ..toolbox import Toolbox
from ..types import Message, Reply, Request, ToolCall
from ..verbs import Job, Options, job
from .event_rows import Row, event_row, reply_row, request_row, result_row, score_row
from .model_tap import listening
from .prompt_parts import RequestParts


def strategy_of(model: Model) -> Strategy | None:
    """Return the model's strategy for calls, None if it takes tools natively."""
    inner: Any = model
    while inner is not None:
        if isinstance(strategy := getattr(inner, "strategy", None), Strategy):
            return strategy
        inner = inner.upstreams[0].model if isinstance(inner, Pool) else getattr(inner, "model", None)
    return None


def written(event: Event) -> str:
    """Return the text that a model wrote for an event, as closely as its server reports it."""
    match event:
        case TextDelta(text) | ThoughtDelta(text):
            return text
        case CallStart(name):
            return f"\n→ {name} "
        case ArgumentsDelta(text):
            return text
        case CallEnd():
            return "\n"
        case _:
            return ""


class Teller:
    """Turns a model's requests and output into rows, each with the milliseconds since the start."""

    def __init__(self, conversation: RequestParts, tell: Any) -> None:
        self._conversation = conversation
        self._tell = tell
        self._began = perf_counter()
        self.prompt_tokens = 0

    def row(self, row: Row) -> None:
        self._tell(row | {"at": round(1000 * (perf_counter() - self._began), 1)})

    def request(self, model: Model, request: Request) -> None:
        self.row(request_row(model, request, self._conversation.question(request)))

    def event(self, event: Event) -> None:
        if text := written(event):
            self.row({"row": "raw", "text": text})
        elif isinstance(event, Finished):
            self.row({"row": "raw-end", "finish": event.finish})

    def happened(self, event: Event) -> None:
        """Add an event of the run. From now on a call's result is part of the conversation."""
        if isinstance(event, CallResult):
            self._conversation.result(event.result.text)
        self.row(event_row(event))

    def scored(self, prompt: str, continuations: Sequence[str], scores: Sequence[float]) -> None:
        self.row(score_row(prompt, continuations, scores, self._conversation.parts(prompt)))


async def turn(model: Model, messages: Sequence[Message], tools: Toolbox, options: Options) -> AsyncGenerator[Row]:
    """Yield the rows of a turn, ending with a reply or an error. Raises UsageError before the first row for an invalid
    request."""
    task = job(list(messages), tools, {**options, "model": model})
    task.box.check_injected()
    async with aclosing(_rows(model, task.request.messages, tools, _played(task))) as rows:
        async for row in rows:
            yield row


async def resumed(
    model: Model, paused: Mapping[str, Any], answers: Answers, tools: Toolbox, options: Options
) -> AsyncGenerator[Row]:
    """Yield the rows of a run that continues with answers to its pending calls. Raises UsageError before the first row
    for an invalid run."""
    messages, _ = read_paused(paused)
    events = play(paused, answers, tools=tools, **{**options, "model": model})
    async with aclosing(_rows(model, messages, tools, events)) as rows:
        async for row in rows:
            yield row


async def _played(task: Job) -> AsyncGenerator[Event | Done[Reply]]:
    """Yield the events of a decision, or of a run if there is a policy."""
    task = await task.ready()
    if task.policy is None:
        plan = decide(task.request, **task.again(None))
    else:
        plan = loop(task.request, task.limits, task.reask.strategies)
    async with aclosing(task.play(plan)) as events:
        async for event in events:
            yield event


async def _rows(
    model: Model, messages: Sequence[Message], tools: Toolbox, events: AsyncGenerator[Event | Done[Reply], None]
) -> AsyncGenerator[Row]:
    """Yield the rows of these events, and of the model requests meanwhile."""
    strategy = strategy_of(model)
    dialect = strategy.dialect if strategy else None
    rows: asyncio.Queue[Row | None] = asyncio.Queue()
    teller = Teller(RequestParts(messages, tuple(tools), dialect), rows.put_nowait)
    working = asyncio.create_task(_work(model, tools, events, teller))
    working.add_done_callback(lambda _: rows.put_nowait(None))
    try:
        while (row := await rows.get()) is not None:
            yield row
        working.result()
    finally:
        working.cancel()


async def _work(
    model: Model, tools: Toolbox, events: AsyncGenerator[Event | Done[Reply], None], teller: Teller
) -> None:
    with listening(teller):
        try:
            if len(tools):
                await look(model)
            teller.row({"row": "strategy", "line": strategy_line(model)})
            async with aclosing(events):
                async for event in events:
                    if isinstance(event, Done):
                        teller.row(reply_row(event.value, tuple(tools)))
                    else:
                        teller.happened(event)
        except ToolspeakError as error:
            teller.row(error_row(error))


def strategy_line(model: Model) -> str:
    """Return the model's strategy for calls, and the reason for it, in one line."""
    strategy = strategy_of(model)
    if strategy:
        return strategy.line
    return "prompted" if within(model, Speaker) else "native: the model takes tools itself"


def error_row(error: ToolspeakError) -> Row:
    """Return an error as a row, with the replies before it."""
    attempts = error.attempts if isinstance(error, GenerationError) else ()
    tries = [{"why": one.error, "reply": reply_row(one.reply)} for one in attempts]
    return {"row": "error", "type": type(error).__name__, "message": str(error), "attempts": tries}


async def run_call(box: Toolbox, name: str, arguments: dict[str, Any], id_: str) -> Row:
    """Run a call and return its result as a row. Errors and invalid arguments are shown as the model would read them."""
    call = ToolCall(id_, name, arguments, json.dumps(arguments, ensure_ascii=False))
    (result,) = await box.arun((call,))
    return result_row(result)
