"""A toolbox holds the tools that are offered to a model, and is the only way to run a call to them.

    box = Toolbox(weather, calculator)
    box.call({"name": "weather", "arguments": {"city": "Xiamen"}})
    safe = (box | other).only("weather", "read_*").without("rm_*").prefix("home_")

A name that is not in the box cannot be called, whatever a model writes, and a call runs only if its arguments match
its tool's schema. Set operations return new boxes; only `define` changes a box.
"""

from __future__ import annotations

import asyncio
import fnmatch
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from .approvals import Answer, ApprovalGate, Approve
from .display import tools_html
from .errors import CallError, InvalidCall, InvalidTool, NoCall, ToolError, UnknownTool, UsageError
from .models.offload import content_size, model_text, offloaded
from .plan.calls import broken, judged
from .plan.code_fences import unfenced
from .policy.policy import Policy
from .running import execute, together
from .schema.call_dicts import looks_like_call, read_call
from .schema.infer import AnyTool, as_tool, as_tools, tool as make_tool, unique
from .schema.nonblocking_json import loads_or
from .schema.phrases import beginning, short
from .schema.suggestions import did_you_mean, listed, near
from .schema.validators import check_cost
from .tool_results import LIMIT, exception_text
from .types import Message, Problem, Tool, ToolCall, ToolResult

log = logging.getLogger(__name__)

Specs = list[dict[str, Any]]
Ended = Callable[[ToolResult], Awaitable[None]]


def into(results: list[ToolResult]) -> Ended:
    """Adds each result to a list as soon as there is one."""

    async def ended(result: ToolResult) -> None:
        results.append(result)

    return ended


@dataclass(frozen=True, slots=True)
class Validation:
    """Whether a call may be run; it is true if so. `call` is the call to run, with coerced arguments; otherwise
    `problems` are the reasons against it.

    `error` is the exception that running it would raise. Iterating yields the problems.
    """

    call: ToolCall | None
    problems: tuple[Problem, ...] = ()
    error: CallError | None = None

    def __bool__(self) -> bool:
        return self.error is None

    def __iter__(self) -> Iterator[Problem]:
        return iter(self.problems)


@dataclass(frozen=True, slots=True)
class PerCall:
    """An injected value that is created for each call."""

    make: Callable[[ToolCall], Any]


class Toolbox:
    """Tools by name, in order. Accepts functions, Tools, dicts, other boxes, and lists of them.

    `inject` maps the names of parameters that are marked `Annotated[..., Injected]` to their values.
    """

    def __init__(self, *tools: Any, inject: Mapping[str, Any] | None = None) -> None:
        flat: list[AnyTool] = []
        self.inject: dict[str, Any] = {}
        for one in tools:
            if isinstance(one, (list, tuple)):
                one = Toolbox(*cast("Sequence[Any]", one))
            if isinstance(one, Toolbox):
                self.inject.update(one.inject)
                flat += one  # a box has checked its tools already
            else:
                flat += as_tools(one) or ()
        self._tools: dict[str, AnyTool] = unique(flat)
        if not isinstance(inject, Mapping | None):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"inject: expected a dict of values by parameter, received {type(inject).__name__}")
        self.inject.update(inject or {})

    @classmethod
    def of(cls, tools: Iterable[AnyTool]) -> Toolbox:
        """A box of tools that are already checked and have distinct names, as from `as_tools` or an index."""
        box = cls()
        box._tools = {one.name: one for one in tools}
        return box

    # what is in it

    def define(
        self,
        name: str | Any,
        fn: Any = None,
        *,
        description: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        timeout: float | None = None,
    ) -> AnyTool:
        """Adds a tool, `define("name", fn)` or `define(fn)`, and returns it. Raises DuplicateTool if the name is
        taken."""
        if not isinstance(name, str):
            name, fn = None, name
        if fn is None:
            raise InvalidTool(f"define takes a name and a function; {name!r} came without one", tool=name or "")
        if isinstance(fn, Mapping):
            fn = as_tool({**fn, **({"name": name} if name else {})})
            name = None
        tool = as_tool(make_tool(fn, name=name, description=description, parameters=parameters, timeout=timeout))
        self._tools = unique([*self._tools.values(), tool])
        return tool

    def list(self) -> Specs:
        """The tools as a model sees them: each with `name`, `description` and `parameters`, a JSON Schema."""
        return [{"name": one.name, "description": one.description, "parameters": dict(one.parameters)} for one in self]

    def _repr_html_(self) -> str:
        return tools_html(self)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __bool__(self) -> bool:
        return True  # an empty box counts as a box too

    def __contains__(self, name: object) -> bool:
        return (name.name if isinstance(name, Tool) else name) in self._tools

    def __getitem__(self, name: str) -> AnyTool:
        if name not in self._tools:
            raise self._unknown(ToolCall("", name, {}))
        return self._tools[name]

    def __repr__(self) -> str:
        return f"Toolbox({', '.join(self._tools)})"

    # sets of tools

    def __or__(self, other: Any) -> Toolbox:
        """The tools of both boxes. A tool in both counts once; raises DuplicateTool for two different tools of one
        name."""
        right = other if isinstance(other, Toolbox) else Toolbox(other)
        merged = [one for one in right if not self._same(one)]
        return self._with([*self, *merged], {**self.inject, **right.inject})

    def __ror__(self, other: Any) -> Toolbox:
        return Toolbox(other) | self

    def only(self, *patterns: str) -> Toolbox:
        """The tools whose names match one of the patterns (`"weather"`, `"read_*"`)."""
        self._must_match(patterns)
        return self._with(one for one in self if _matches(one.name, patterns))

    def without(self, *patterns: str) -> Toolbox:
        """The tools whose names match none of the patterns."""
        self._must_match(patterns)
        return self._with(one for one in self if not _matches(one.name, patterns))

    def prefix(self, prefix: str) -> Toolbox:
        """The same tools with `prefix` before each name."""
        return self._with(make_tool(one, name=prefix + one.name) for one in self)

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> Toolbox:
        """The same tools under other names: `rename(old="new")` or `rename({"old": "new"})`."""
        new = {**(names or {}), **more}
        self._must_match(tuple(new))
        return self._with(make_tool(one, name=new[one.name]) if one.name in new else one for one in self)

    # calls

    def validate(self, call: Any) -> Validation:
        """Whether a call may be run, with all its problems at once. It is a ToolCall, or a dict in any of the usual
        formats."""
        try:
            read = read_call(call)
        except InvalidCall as error:
            return Validation(None, error.problems, error)
        tool = self._tools.get(read.name)
        if tool is None:
            error = self._unknown(read)
            return Validation(None, error.problems, error)
        if not read.whole:
            return _invalid(read, [broken(read)])
        coerced, problems = judged(read, tool, self.inject)
        return _invalid(read, problems) if problems else Validation(coerced)

    def transform(self, text: str, dialect: str = "tool-json") -> ToolCall:
        """The single checked call in a model's text, in `dialect` or as a plain JSON object.

        Raises NoCall, UnknownTool or InvalidCall, with messages for the model: made for `generate_checked`.
        """
        plain = _plain_call(text)
        calls: Sequence[Any] = [plain] if plain is not None else self._parse(text, dialect)
        if len(calls) != 1:
            what = "no call" if not calls else f"{len(calls)} calls"
            raise NoCall(
                f"exactly one tool call was wanted, and {what} came: {short(text, 200)}. Tools: {listed(self._tools)}"
            )
        return self._checked(calls[0])

    def call(self, call: Any, **injected: Any) -> Any:
        """Checks one call, runs it and returns its value. Works inside a running loop too.

        Raises UnknownTool or InvalidCall before anything runs; ToolError (its cause is the tool's exception) or
        ToolTimeout afterwards. `injected` adds to the box's own `inject`.
        """
        from .drive import run_sync

        return run_sync(self.acall(call, **injected))

    async def acall(self, call: Any, **injected: Any) -> Any:
        """`call`, awaited."""
        return await self._run(self._checked(call), injected)

    async def arun(
        self,
        calls: Iterable[Any],
        *,
        approve: Approve | None = None,
        parallel: int = 8,
        limit: int | None = LIMIT,
        inject: Mapping[str, Any] | None = None,
        policy: Policy | None = None,
        messages: Sequence[Message] = (),
        ended: Ended | None = None,
    ) -> tuple[ToolResult, ...]:
        """The results of all calls, in their order, with at most `parallel` running at once. Failures are results too.

        Each call is checked, then decided on by the `policy` (after the conversation `messages`), then approved if the
        policy asks for that or if there is none (one question at a time), then run. `text` of a result, within `limit`
        characters, is for the model; `error` has the traceback, and is ApprovalNeeded if nobody can be asked. `ended`
        is awaited with each result at once. Cancelling this cancels running calls. Exceptions of `approve` pass on.
        """
        running, approval = asyncio.Semaphore(max(1, parallel)), ApprovalGate(policy, approve, messages)
        self.check_injected(inject)

        async def one(call: Any) -> ToolResult:
            result = await result_of(call)
            await ended(result) if ended else None
            return result

        async def result_of(call: Any) -> ToolResult:
            began = 0.0
            checked = await offloaded(self._cost(call), self.validate, call)
            known = checked.call or _identify(call)
            try:
                if checked.error is not None:
                    raise checked.error
                answer = await approval.ask(known, self[known.name], tuple(self))
                if isinstance(answer, Answer):
                    text = await model_text(answer.result, limit)
                    return ToolResult(known.id, known.name, text, answer.result, origin=approval.own_words)
                if answer is not known:
                    known = await offloaded(self._cost(answer), self._checked, answer)
                    approval.check(known, tuple(self))
                async with running:
                    began = time.monotonic()
                    value = await self._run(known, inject or {})
            except (CallError, ToolError) as error:
                text = self._error_text(known.name, error, inject or {})
                log.debug("the call of %r gave no result: %s", known.name, text)
                origin = approval.origin(self[known.name]) if began else approval.own_words
                return ToolResult(known.id, known.name, text, None, error, _since(began), origin)
            origin = approval.origin(self[known.name])
            return ToolResult(known.id, known.name, await model_text(value, limit), value, None, _since(began), origin)

        return tuple(await together(one, calls))

    def check_injected(self, more: Mapping[str, Any] | None = None) -> None:
        """Raises UsageError that names every injected parameter without a value, before anything runs."""
        for tool in self:
            self._missing(tool, {**self.inject, **(more or {})})

    # inside

    def _cost(self, call: Any) -> int:
        """The cost of the check of a call, as `offloaded` counts it."""
        length = len(call.json) if isinstance(call, ToolCall) else content_size(call)
        tool = self._tools.get(_identify(call).name)
        return length + (check_cost(tool.parameters, length) if tool else 0)

    def _checked(self, call: Any) -> ToolCall:
        checked = self.validate(call)
        if checked.call is None or checked.error is not None:
            raise checked.error or UsageError("a call that is not there cannot be run")
        return checked.call

    async def _run(self, call: ToolCall, injected: Mapping[str, Any]) -> Any:
        tool = self[call.name]
        values = {**self.inject, **injected}
        self._missing(tool, values)
        values = {name: one.make(call) if isinstance(one, PerCall) else one for name, one in values.items()}
        if tool.build is None:
            return await execute(tool, call, [], dict(call.arguments))
        positional, named = tool.build(call.arguments, values)
        return await execute(tool, call, positional, named)

    def _missing(self, tool: AnyTool, values: Mapping[str, Any]) -> None:
        needed = getattr(tool.build, "needed", ())
        missing = [name for name in needed if name not in values]
        if missing:
            example = ", ".join(f"{name!r}: ..." for name in missing)
            raise UsageError(
                f"the tool {tool.name!r} needs {' and '.join(missing)} from the application: "
                f"Toolbox(..., inject={{{example}}})"
            )

    def _unknown(self, call: ToolCall) -> UnknownTool:
        similar = near(call.name, self._tools)
        names = listed(self._tools) or "none"
        expected = f"one of {names}" if self._tools else "no call"
        missing = f"there is no tool {short(call.name)}.{did_you_mean(similar)}"
        message = f"{missing if call.name.strip() else 'the call has no name of a tool.'} The tools are: {names}"
        problem = Problem("", expected, short(call.name), message)
        return UnknownTool(message, call=call, problems=[problem], near=similar)

    def _parse(self, text: str, dialect: str) -> Sequence[ToolCall]:
        from .dialects import get
        from .wire.decode import parse  # pyright: ignore[reportUnknownVariableType]

        return parse(text, get(dialect), tuple(self)).calls

    def _error_text(self, name: str, error: BaseException, inject: Mapping[str, Any]) -> str:
        """An error as the model reads it, without any value that the application injected."""
        from .secret_removal import injected_texts

        tool = self._tools.get(name)
        injected = {**self.inject, **inject}
        values = [injected[one] for one in tool.injected if one in injected] if tool else []
        return exception_text(error, tool is None or tool.show_errors, injected_texts(values).out_of)

    def _same(self, one: AnyTool) -> bool:
        mine = self._tools.get(one.name)
        return mine is not None and mine == one and mine.function == one.function

    def _with(self, tools: Iterable[AnyTool], inject: Mapping[str, Any] | None = None) -> Toolbox:
        return Toolbox(tuple(tools), inject=self.inject if inject is None else inject)

    def _must_match(self, patterns: tuple[str, ...]) -> None:
        for pattern in patterns:
            if not any(c in pattern for c in "*?[") and pattern not in self._tools:
                raise self._unknown(ToolCall("", pattern, {}))


def _invalid(call: ToolCall, problems: Iterable[Problem]) -> Validation:
    every = tuple(problems)
    message = f"the call of {call.name!r} cannot be run: " + "; ".join(p.message for p in every)
    return Validation(None, every, InvalidCall(beginning(message, 4_000), call=call, problems=every))


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _plain_call(text: str) -> Any:
    """The call in a text that is one JSON object (in a code fence or not) with the name of a tool."""
    value = loads_or(unfenced(text), None)
    return value if looks_like_call(value) else None


def _identify(call: Any) -> ToolCall:
    """The id and name of a call that cannot be read otherwise, for its result."""
    if isinstance(call, ToolCall):
        return call
    row: Mapping[str, Any] = cast("Mapping[str, Any]", call) if isinstance(call, Mapping) else {}
    inner: Mapping[str, Any] = row["function"] if isinstance(row.get("function"), Mapping) else row
    return ToolCall(str(row.get("id") or ""), str(inner.get("name") or ""), {})


def _since(began: float) -> float:
    return time.monotonic() - began if began else 0.0
