"""The public functions run, stream, decide, call, generate and conclude, each with an async twin with the prefix `a`.

Every function builds a request and its plan, and passes both to a driver; the sync ones run the async ones. They work
in a notebook (inside a running loop) and from threads.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, fields, replace
from typing import Any, TypedDict, TypeVar, Unpack, cast, overload

from . import drive
from .approvals import Approve
from .errors import UsageError
from .events import Event
from .models.base import Around, Model
from .models.fallback import look
from .models.reask_policy import ReaskPolicy, reask_policy
from .models.resolve import check_run_options, model as named_model
from .models.sampling import check_options, checked_flag, checked_function, checked_setting, sampling
from .models.tool_calling import calling
from .plan import checked_text, conclude as concluding, decide as deciding
from .plan.effects import Plan, Run
from .plan.extract import with_output
from .plan.loop import Limits, loop
from .plan.messages import conversation
from .plan.prompted import offered
from .plan.reask import ReaskStrategy
from .plan.result_pages import LONGEST
from .policy.policy import Policy, checked_policy
from .schema.infer import as_tools
from .schema.phrases import beginning
from .tool_results import LIMIT
from .toolbox import Ended, Toolbox, into
from .types import Message, Reply, Request, ToolCall, ToolResult

T = TypeVar("T")
Prompt = str | Sequence[Message]


class Sampled(TypedDict, total=False):
    """How tokens are sampled, and how many; see `models.sampling`."""

    temperature: float | None
    max_tokens: int | None
    top_p: float | None
    top_k: int | None
    extra_body: Mapping[str, Any] | None
    seed: int | None
    stop: str | Sequence[str]


class CommonOptions(Sampled, total=False):
    """The options of every function that asks a model.

    `system` is a system message. `limits` is a Limits or a dict of its fields. `approve` is called with each checked
    call before it runs, and may be async; it returns True, or False, or the reason against the call. `policy` says
    which calls run, which are asked about and which are refused; see `Policy`. `choice` is auto, none, required or a
    tool's name. `reask` is how the model is asked again after a wrong reply: "told", "alone", "dialect", "sampling",
    "model:NAME" or a model, in this or another order; see `plan.reask`. `ladder` is its older name. `extra_body` is a
    dict of further fields for the model's server, such as `{"min_p": 0.1}`. All others are passed to the model; one
    that it does not support raises UsageError.
    """

    system: str | None
    limits: Limits | Mapping[str, Any] | None
    approve: Approve | None
    policy: Policy | None
    reask: Sequence[str | Model] | None
    ladder: Sequence[str | Model] | None
    choice: str
    parallel: bool


class Options(CommonOptions, total=False):
    """Settings, and the `model`: a name or a Model (None: $TOOLSPEAK_MODEL, by default `local`)."""

    model: str | Model | None


class ReaskOptions(TypedDict):
    """The most tries, the re-asking strategies, and the token limit of all tries."""

    tries: int
    strategies: Sequence[ReaskStrategy]
    tokens: int | None


@dataclass(frozen=True, slots=True)
class Job:
    """A request with everything that is needed to carry it out: the model, the toolbox, limits, approval and
    re-asking."""

    request: Request
    model: Model
    box: Toolbox
    limits: Limits
    approve: Approve | None
    policy: Policy | None
    reask: ReaskPolicy
    decided: Callable[[], tuple[Model, ReaskPolicy]]

    async def ready(self) -> Job:
        """The job once its model's capabilities are known: how it is shown tools and asked again depends on them."""
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
        """How a reply is asked for again. The default is 3 tries, or as many as give each strategy its turn."""
        tries = checked_setting("tries", tries)
        strategies = self.reask.strategies
        return {
            "tries": max(3, 1 + len(strategies)) if tries is None else tries,
            "strategies": strategies,
            "tokens": self.limits.tokens,
        }

    async def _run(self, effect: Run) -> tuple[ToolResult, ...]:
        return await self.run_calls(
            effect.calls, effect.messages, policy=self.policy, approve=self.approve, ended=into(effect.ended)
        )

    async def run_calls(
        self,
        calls: Sequence[ToolCall],
        messages: Sequence[Message],
        *,
        policy: Policy | None,
        approve: Approve | None,
        ended: Ended | None = None,
    ) -> tuple[ToolResult, ...]:
        """The results of calls after these messages, within the length that the model can read. `ended` gets each
        result at once."""
        limit = LIMIT if "scored" in self.model.capabilities else LONGEST
        parallel = 8 if self.request.parallel else 1
        return await self.box.arun(
            calls, approve=approve, parallel=parallel, limit=limit, policy=policy, messages=messages, ended=ended
        )  # fmt: skip


def job(prompt: Prompt, tools: Any, options: Options) -> Job:
    """The job for the parameters of a public function. Raises UsageError for invalid ones."""
    check_run_options(options, Options.__annotations__, "this function")
    index = tools if hasattr(tools, "search") and not callable(tools) else None
    box = tools if isinstance(tools, Toolbox) else Toolbox.of(as_tools(tools) or () if index is None else index)
    settings = sampling(options)
    request = Request(
        messages=conversation(prompt, options.get("system")),
        tools=tuple(box),
        choice=options.get("choice", "auto"),
        parallel=checked_flag("parallel", options.get("parallel", True)),
        max_tokens=settings.max_tokens,
        temperature=settings.temperature,
        seed=checked_setting("seed", options.get("seed")),
        stop=_stops(options.get("stop", ())),
        sampling=settings.more,
    )
    offered(request)
    caller = calling(named_model(options.get("model")))

    def decided() -> tuple[Model, ReaskPolicy]:
        model = _with_fitting_tools(caller, index, len(box))
        return model, reask_policy(options.get("reask", options.get("ladder")), model)

    model, again = decided()
    limits = _limits(options.get("limits"))
    approve = checked_function("approve", options.get("approve"))
    return Job(request, model, box, limits, approve, checked_policy(options.get("policy")), again, decided)


FEW = 10
"""Up to this many tools are always shown to a model, so that `search.router` need not be loaded."""


def _with_fitting_tools(model: Model, index: Any, count: int) -> Model:
    """The model with large results paged and, if there are many tools, with a router that shows it those that match.
    An index that was passed as the tools does the search."""
    model = _paged(model)
    if count <= FEW and index is None:
        return model
    from .search.router import ToolRouter

    routed = model if isinstance(model, ToolRouter) else ToolRouter(model, strict=False)
    # A model that scores by likelihood chooses better among tools than among headings: docs/how-to/hierarchy.md
    if getattr(index, "groups", ()) and not isinstance(model, ToolRouter) and "scored" not in model.capabilities:
        from .search.hierarchy import HierarchyRouter

        routed = HierarchyRouter(model, strict=False)
    return routed if index is None or routed.index is not None else routed.searching(index)


def _paged(model: Model) -> Model:
    """The model with large results paged."""
    from .search.paged_results import PagedResults

    if isinstance(model, PagedResults):
        return model
    return model.around(_paged(model.model)) if isinstance(model, Around) else PagedResults(model)


def _stops(value: object) -> tuple[str, ...]:
    """The stop strings as a tuple. Raises UsageError for anything but a string or a list of strings."""
    rows = list(cast("Sequence[object]", value)) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(row, str) and row for row in rows):
        raise UsageError(f"stop: expected a string or a list of strings, none of them empty, got {value!r:.100}")
    return tuple(str(row) for row in rows)


def _limits(limits: Limits | Mapping[str, Any] | None) -> Limits:
    if isinstance(limits, Limits):
        return limits
    if limits is not None and not isinstance(limits, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"limits: expected steps, seconds, tokens or calls, received {beginning(str(limits), 80)}")
    check_options(limits or {}, [one.name for one in fields(Limits)], "limits")
    return Limits(**(limits or {}))


# ------------------------------------------------------------------ the loop


def _to_run(prompt: Prompt, tools: Any, options: Options) -> Job:
    """A job whose calls will be run: injected values are checked before the model is asked."""
    task = job(prompt, tools, options)
    task.box.check_injected()
    return task


@overload
async def arun(prompt: Prompt, *, tools: Any = (), output: type[T], **options: Unpack[Options]) -> Reply[T]: ...
@overload
async def arun(prompt: Prompt, *, tools: Any = (), output: Any = None, **options: Unpack[Options]) -> Reply: ...
async def arun(prompt: Prompt, *, tools: Any = (), output: Any = None, **options: Unpack[Options]) -> Reply:
    """As `run`, awaited."""
    task = await _to_run(prompt, tools, options).ready()
    plan = loop(task.request, task.limits, task.reask.strategies)
    return await task.value(plan if output is None else with_output(plan, task.request, output, **task.again(None)))


@overload
def run(prompt: Prompt, *, tools: Any = (), output: type[T], **options: Unpack[Options]) -> Reply[T]: ...
@overload
def run(prompt: Prompt, *, tools: Any = (), output: Any = None, **options: Unpack[Options]) -> Reply: ...
def run(prompt: Prompt, *, tools: Any = (), output: Any = None, **options: Unpack[Options]) -> Reply:
    """The model's final answer, after all its calls were run; `.messages` to continue from, `.steps` to see each turn.

    `prompt` is a question or a list of messages. `tools` are functions, Tools, OpenAI-style dicts, a Toolbox or a
    ToolIndex, of any number: if there are many, the model is shown those that match (see `search.router`). The model
    gets the errors of tools as results. A limit ends the run with `finish="limit"`. `output` is a type or a JSON
    Schema: then `.output` is the answer as a value of it, extracted as by `extract`. Raises ModelError if the model
    cannot be asked, and UsageError for invalid parameters.
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
    """The events of a run as they happen: text, calls and their results. Leaving early stops the run."""
    return drive.iterate_sync(astream(prompt, tools=tools, **options))


# ------------------------------------------------------------------ decisions: nothing is executed


async def adecide(prompt: Prompt, *, tools: Any = (), tries: int | None = None, **options: Unpack[Options]) -> Reply:
    """As `decide`, awaited."""
    task = await job(prompt, tools, options).ready()
    return await task.value(deciding.decide(task.request, **task.again(tries)))


def decide(prompt: Prompt, *, tools: Any = (), tries: int | None = None, **options: Unpack[Options]) -> Reply:
    """The checked calls for a request (none, one or several), or a text. Nothing is executed.

    If its calls are invalid the model is asked again: with the problems, then with the one tool alone, or as `reask`
    says. There are at most `tries` replies (3, or as many as a longer list needs), fewer if it repeats one despite the
    problems. After that GenerationError has every attempt. `.steps` and `.notes` say how often and how it was asked.
    """
    return drive.run_sync(adecide(prompt, tools=tools, tries=tries, **options))


async def acall(prompt: Prompt, *, tools: Any = (), tries: int | None = None, **options: Unpack[Options]) -> ToolCall:
    """As `call`, awaited."""
    options.setdefault("choice", "required")
    options.setdefault("parallel", False)
    task = await job(prompt, tools, options).ready()
    return await task.value(deciding.call(task.request, **task.again(tries)))


def call(prompt: Prompt, *, tools: Any = (), tries: int | None = None, **options: Unpack[Options]) -> ToolCall:
    """Exactly one checked call, not executed. Raises NoCall, which says what the model replied instead."""
    return drive.run_sync(acall(prompt, tools=tools, tries=tries, **options))


# ------------------------------------------------------------------ words and values


async def agenerate(model: str | Model | None, prompt: Prompt, **settings: Unpack[CommonOptions]) -> str:
    """As `generate`, awaited."""
    task = await job(prompt, (), {"model": model, **settings}).ready()
    return (await task.value(checked_text.generate(task.request))).text


def generate(model: str | Model | None, prompt: Prompt, **settings: Unpack[CommonOptions]) -> str:
    """The model's answer as text."""
    return drive.run_sync(agenerate(model, prompt, **settings))


async def agenerate_checked(
    model: str | Model | None,
    transform: Callable[[str], T],
    prompt: Prompt,
    *,
    tries: int | None = None,
    **settings: Unpack[CommonOptions],
) -> T:
    """As `generate_checked`, awaited."""
    if not callable(transform):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"transform: expected a function or a type, received {transform!r:.80}")
    task = await job(prompt, (), {"model": model, **settings}).ready()
    return await task.value(checked_text.generate_checked(task.request, transform, **task.again(tries)))


def generate_checked(
    model: str | Model | None,
    transform: Callable[[str], T],
    prompt: Prompt,
    *,
    tries: int | None = None,
    **settings: Unpack[CommonOptions],
) -> T:
    """`transform(answer)`. The transform returns a value or raises, and its error message is sent back to the model.

    A transform rejects an answer with ValueError or a similar exception (LookupError, TypeError, AssertionError, or
    any error of toolspeak, so that `Toolbox.transform` can be used). After `tries` answers (3, or as many as a longer
    `reask` needs), or if the model repeats one, GenerationError has every attempt.
    """
    return drive.run_sync(agenerate_checked(model, transform, prompt, tries=tries, **settings))


async def aconclude(question: str, result: Any, *, language: str = "English", **options: Unpack[Options]) -> Reply:
    """As `conclude`, awaited."""
    task = await job(question, (), options).ready()
    return await task.value(concluding.conclude(question, result, language))


def conclude(question: str, result: Any, *, language: str = "English", **options: Unpack[Options]) -> Reply:
    """A sentence or two in `language` that answers a question with a tool's result.

    The text has every number and string of the result and no other number. If the model cannot write such a text, the
    result is stated plainly, with a note `stated-plainly`.
    """
    return drive.run_sync(aconclude(question, result, language=language, **options))
