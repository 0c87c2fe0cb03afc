"""The public functions run, stream, decide, call, generate and conclude. Each has an async twin with the
prefix `a`.

Every verb builds a request, takes its plan, and hands both to a driver; the sync ones run the awaited
ones. They work in a notebook (a loop already running) and from threads.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, TypeVar, Unpack, cast

from . import drive
from .approvals import Approve
from .errors import UsageError
from .events import Event
from .models.base import Around, Model
from .models.fallback import calling, look
from .models.reask import ReaskPolicy, reask_policy
from .models.resolve import model as named_model
from .models.sampling import check_options, checked_setting, sampling
from .plan import checked, decide as deciding, summarize as concluding
from .plan.effects import Plan, Run
from .plan.extract import with_output
from .plan.loop import Limits, loop
from .plan.prompted import offered
from .plan.reask import ReaskStrategy
from .plan.result_pages import LONGEST
from .policy.policy import Policy, checked_policy
from .schema.infer import as_tools
from .schema.suggestions import did_you_mean, near
from .tool_results import LIMIT
from .toolbox import Ended, Toolbox
from .types import Message, Reply, Request, ToolCall, ToolResult

T = TypeVar("T")
Prompt = str | Sequence[Message]


class Sampled(TypedDict, total=False):
    """How tokens are chosen, and how many; see `models.sampling`."""

    temperature: float | None
    max_tokens: int | None
    top_p: float | None
    top_k: int | None
    extra_body: Mapping[str, Any] | None
    seed: int | None
    stop: str | Sequence[str]


class Settings(Sampled, total=False):
    """What every verb that asks a model takes.

    `system` is a system message; `limits` a Limits or a dict of its fields; `approve` is asked before each
    call is run and may be async: it gets the checked call and returns True, or False, or the reason
    against it. `policy` says which calls run, which are asked about and which are refused; see `Policy`. `choice` is auto, none, required or a tool's name. `reask` is how the model is asked again where its
    reply is wrong: "told", "alone", "dialect", "sampling", "model:NAME" or a model, in that or another order; see
    `plan.reask`; `ladder` is its older name. `extra_body` is a dict of further fields for the model's server, such as
    `{"min_p": 0.1}`. The rest is passed on to the model too; a setting that it has no place for is a UsageError.
    """

    system: str | None
    limits: Limits | Mapping[str, Any] | None
    approve: Approve | None
    policy: Policy | None
    reask: Sequence[str | Model] | None
    ladder: Sequence[str | Model] | None
    choice: str
    parallel: bool


class Options(Settings, total=False):
    """Settings, and the `model`: a name or a Model (None: $TOOLSPEAK_MODEL, else `local`)."""

    model: str | Model | None


class ReaskOptions(TypedDict):
    """How often a reply is asked for at most, in which ways, and for how many tokens."""

    tries: int
    rungs: Sequence[ReaskStrategy]
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Job:
    """A request, who answers it, who runs its calls, how it is asked again, how far it may go."""

    request: Request
    model: Model
    box: Toolbox
    limits: Limits
    approve: Approve | None
    policy: Policy | None
    reask: ReaskPolicy
    decided: Callable[[], tuple[Model, ReaskPolicy]]

    async def ready(self) -> Job:
        """The job once it is known what its model can do, for how it is shown tools and asked again depends on that."""
        if self.request.tools:
            await look(self.model)
        model, reask = self.decided()
        return replace(self, model=model, reask=reask)

    def play(self, plan: Plan[T]) -> AsyncGenerator[Event | drive.Done[T], None]:
        return drive.play(
            plan,
            self.model,
            self._run,
            others=self.reask.others,
            seconds=self.limits.seconds,
            level=logging.INFO,
        )

    async def value(self, plan: Plan[T]) -> T:
        return await drive.value(self.play(plan))

    def again(self, tries: int | None) -> ReaskOptions:
        """How it is asked again, and how often: where nothing is said, 3 times or until each rung had its turn."""
        if tries is not None and tries < 1:
            raise UsageError(f"tries: expected 1 or more, received {tries}")
        rungs = self.reask.strategies
        return {
            "tries": max(3, 1 + len(rungs)) if tries is None else tries,
            "rungs": rungs,
            "tokens": self.limits.tokens,
        }

    async def _run(self, effect: Run) -> tuple[ToolResult, ...]:
        return await self.run_calls(effect.calls, effect.messages, policy=self.policy, approve=self.approve)

    async def run_calls(
        self,
        calls: Sequence[ToolCall],
        messages: Sequence[Message],
        *,
        policy: Policy | None,
        approve: Approve | None,
        ended: Ended | None = None,
    ) -> tuple[ToolResult, ...]:
        """The results of calls behind these messages, as long as the model can read; `ended` is told each at once."""
        limit = LIMIT if "scored" in self.model.capabilities else LONGEST
        parallel = 8 if self.request.parallel else 1
        return await self.box.arun(
            calls, approve=approve, parallel=parallel, limit=limit, policy=policy, messages=messages, ended=ended
        )  # fmt: skip


def job(prompt: Prompt, tools: Any, options: Options) -> Job:
    """What a verb's parameters come to. Raises UsageError for what cannot be."""
    check_options(options, Options.__annotations__, "a verb")
    index = tools if hasattr(tools, "search") and not callable(tools) else None
    box = tools if isinstance(tools, Toolbox) else Toolbox.of(as_tools(tools) or () if index is None else index)
    settings = sampling(options)
    request = Request(
        messages=_messages(prompt, options.get("system")),
        tools=tuple(box),
        choice=options.get("choice", "auto"),
        parallel=options.get("parallel", True),
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        seed=checked_setting("seed", options.get("seed")),
        stop=_stops(options.get("stop", ())),
        sampling=settings.more,
    )
    offered(request)
    asked = calling(named_model(options.get("model")))

    def decided() -> tuple[Model, ReaskPolicy]:
        model = _with_fitting_tools(asked, index, len(box))
        return model, reask_policy(options.get("reask", options.get("ladder")), model)

    model, again = decided()
    limits = _limits(options.get("limits"))
    return Job(
        request, model, box, limits, options.get("approve"), checked_policy(options.get("policy")), again, decided
    )


FEW = 10
"""Tools that any model is shown at once, whatever they are: see `search.router`, which is not loaded for them."""


def _with_fitting_tools(model: Model, index: Any, count: int) -> Model:
    """The model, shown a part of large results, and those of many tools that fit; the index that the tools came as, if
    they did, finds them."""
    model = _paged(model)
    if count <= FEW and index is None:
        return model
    from .search.router import ToolRouter

    routed = model if isinstance(model, ToolRouter) else ToolRouter(model, strict=False)
    # one that decides by likelihood tells tools apart better than headings: see docs/how-to/hierarchy.md
    if getattr(index, "groups", ()) and not isinstance(model, ToolRouter) and "scored" not in model.capabilities:
        from .search.hierarchy import HierarchyRouter

        routed = HierarchyRouter(model, strict=False)
    return routed if index is None or routed.index is not None else routed.searching(index)


def _paged(model: Model) -> Model:
    """The model, shown a part of each large result."""
    from .search.paged_results import PagedResults

    if isinstance(model, PagedResults):
        return model
    return model.around(_paged(model.model)) if isinstance(model, Around) else PagedResults(model)


def _stops(value: object) -> tuple[str, ...]:
    """One stop string, or several. Raises UsageError for what is neither."""
    rows = list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(row, str) and row for row in rows):
        raise UsageError(f"stop: expected a string or a list of strings, none of them empty, got {value!r:.100}")
    return tuple(str(row) for row in rows)


ROLES = ("system", "developer", "user", "assistant", "tool", "function")
"""Who speaks in a message; `function` is how OpenAI's API called `tool` first."""


def _messages(prompt: Prompt, system: str | None) -> list[Message]:
    first: list[Message] = [{"role": "system", "content": system}] if system else []
    if isinstance(prompt, str):
        return [*first, {"role": "user", "content": prompt}]
    if not isinstance(prompt, Sequence):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"expected a question or a list of messages, received {type(prompt).__name__}")
    messages = list(prompt)
    for i, message in enumerate(messages):
        role = message.get("role") if isinstance(message, Mapping) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if not isinstance(role, str):
            raise UsageError(
                f"message {i}: expected a dict with a role, such as {{'role': 'user', 'content': 'Hi'}}, "
                f"received {str(message)[:80]!r}"
            )
        if role not in ROLES:
            meant = did_you_mean(near(role, ROLES))
            raise UsageError(f"message {i}: expected a role of {', '.join(ROLES)}, got {role!r:.80}.{meant}")
    if not messages:
        raise UsageError("expected a question or at least one message, received an empty list")
    return [*first, *messages]


def _limits(given: Limits | Mapping[str, Any] | None) -> Limits:
    if isinstance(given, Limits):
        return given
    if given is not None and not isinstance(given, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"limits: expected steps, seconds, tokens or calls, received {str(given)[:80]}")
    check_options(given or {}, [one.name for one in fields(Limits)], "limits")
    return Limits(**(given or {}))


# ------------------------------------------------------------------ the loop


def _to_run(prompt: Prompt, tools: Any, options: Options) -> Job:
    """A job whose calls will be run: what the application must give is there before the model is asked."""
    task = job(prompt, tools, options)
    task.box.check_injected()
    return task


async def arun(prompt: Prompt, *, tools: Any = (), output: Any = None, **options: Unpack[Options]) -> Reply:
    """As `run`, awaited."""
    task = await _to_run(prompt, tools, options).ready()
    plan = loop(task.request, task.limits, task.reask.strategies)
    return await task.value(plan if output is None else with_output(plan, task.request, output, **task.again(None)))


def run(prompt: Prompt, *, tools: Any = (), output: Any = None, **options: Unpack[Options]) -> Reply:
    """The model's last answer after every call it wanted was run; `.messages` to go on from, `.steps` to see how.

    `prompt` is a question or a list of messages; `tools` functions, Tools, OpenAI-style dicts, a Toolbox or a
    ToolIndex, of any number: of many the model is shown those that fit (see `search.router`). A tool's error is told to
    the model; a limit ends in `finish="limit"`. `output` is a type, or a JSON Schema: `.output` is then the answer as a
    value of it, extracted as by `extract`. Raises ModelError when the model cannot be asked, UsageError for what
    cannot be.
    """
    return drive.run_sync(arun(prompt, tools=tools, output=output, **options))


async def astream(prompt: Prompt, *, tools: Any = (), **options: Unpack[Options]) -> AsyncGenerator[Event, None]:
    """As `stream`, for `async for`."""
    task = await _to_run(prompt, tools, options).ready()
    async with aclosing(task.play(loop(task.request, task.limits, task.reask.strategies))) as events:
        async for event in events:
            if not isinstance(event, drive.Done):
                yield event


def stream(prompt: Prompt, *, tools: Any = (), **options: Unpack[Options]) -> Iterator[Event]:
    """The events of a run as they happen: text, calls, their results. Leaving early stops the run."""
    return drive.iterate_sync(astream(prompt, tools=tools, **options))


# ------------------------------------------------------------------ decisions: nothing is executed


async def adecide(prompt: Prompt, *, tools: Any = (), tries: int | None = None, **options: Unpack[Options]) -> Reply:
    """As `decide`, awaited."""
    task = await job(prompt, tools, options).ready()
    return await task.value(deciding.decide(task.request, **task.again(tries)))


def decide(prompt: Prompt, *, tools: Any = (), tries: int | None = None, **options: Unpack[Options]) -> Reply:
    """The checked calls that a request wants (none, one, several), or a text. Nothing is executed.

    A model whose calls do not fit is asked again: told what is wrong, then with the one tool alone, or as the
    `reask` says; `tries` replies in all at most (3, or as many as a longer list needs), fewer where it repeats a reply
    though it was told. Then GenerationError carries every attempt. `.steps` and `.notes` tell how often, and in which way.
    """
    return drive.run_sync(adecide(prompt, tools=tools, tries=tries, **options))


async def acall(prompt: Prompt, *, tools: Any = (), tries: int | None = None, **options: Unpack[Options]) -> ToolCall:
    """As `call`, awaited."""
    options.setdefault("choice", "required")
    options.setdefault("parallel", False)
    task = await job(prompt, tools, options).ready()
    return await task.value(deciding.call(task.request, **task.again(tries)))


def call(prompt: Prompt, *, tools: Any = (), tries: int | None = None, **options: Unpack[Options]) -> ToolCall:
    """Exactly one checked call, not executed. Raises NoCall, which says what came instead."""
    return drive.run_sync(acall(prompt, tools=tools, tries=tries, **options))


# ------------------------------------------------------------------ words and values


async def agenerate(model: str | Model | None, prompt: Prompt, **settings: Unpack[Settings]) -> str:
    """As `generate`, awaited."""
    task = await job(prompt, (), {"model": model, **settings}).ready()
    return (await task.value(checked.generate(task.request))).text


def generate(model: str | Model | None, prompt: Prompt, **settings: Unpack[Settings]) -> str:
    """The model's answer in words."""
    return drive.run_sync(agenerate(model, prompt, **settings))


async def agenerate_checked(
    model: str | Model | None,
    transform: Callable[[str], T],
    prompt: Prompt,
    *,
    tries: int | None = None,
    **settings: Unpack[Settings],
) -> T:
    """As `generate_checked`, awaited."""
    task = await job(prompt, (), {"model": model, **settings}).ready()
    return await task.value(checked.generate_checked(task.request, transform, **task.again(tries)))


def generate_checked(
    model: str | Model | None,
    transform: Callable[[str], T],
    prompt: Prompt,
    *,
    tries: int | None = None,
    **settings: Unpack[Settings],
) -> T:
    """`transform(answer)`, where the transform returns a value or raises: what it raised goes back to the model.

    A transform refuses with ValueError and its like (also LookupError, TypeError, AssertionError, or any
    error of toolspeak, so `Toolbox.transform` serves as one). After `tries` answers (3, or as many as a longer `reask`
    needs), or the same one again, GenerationError carries every attempt.
    """
    return drive.run_sync(agenerate_checked(model, transform, prompt, tries=tries, **settings))


async def aconclude(question: str, result: Any, *, language: str = "English", **options: Unpack[Options]) -> Reply:
    """As `conclude`, awaited."""
    task = await job(question, (), options).ready()
    return await task.value(concluding.conclude(question, result, language))


def conclude(question: str, result: Any, *, language: str = "English", **options: Unpack[Options]) -> Reply:
    """A question and a tool's result in words, in `language`.

    The words carry every number and string of the result and no number of their own; when the model
    cannot manage that, the result is stated plainly, with a note `stated-plainly`.
    """
    return drive.run_sync(aconclude(question, result, language=language, **options))
