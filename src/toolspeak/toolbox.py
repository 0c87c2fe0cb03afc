"""The tools that a model is given, and the only way in which a call to them is run.

    box = Toolbox(weather, calculator)
    box.call({"name": "weather", "arguments": {"city": "Xiamen"}})
    safe = (box | other).only("weather", "read_*").without("rm_*").prefix("home_")

A name that is not in the box cannot be called, whatever a text says, and a call runs only when its
arguments fit its tool's schema. Sets of boxes are new boxes; `define` alone changes one.
"""

from __future__ import annotations

import asyncio
import fnmatch
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from .approvals import Answer, ApprovalGate, Approve
from .display import tools_html
from .errors import CallError, InvalidCall, InvalidTool, NoCall, ToolError, UnknownTool, UsageError
from .plan.calls import broken, judged
from .policy.policy import Policy
from .running import execute
from .schema.call_dicts import looks_like_call, read_call
from .schema.infer import AnyTool, as_tool, as_tools, tool as make_tool, unique
from .schema.phrases import short
from .schema.suggestions import did_you_mean, listed, near
from .tool_results import LIMIT, exception_text, result_text
from .types import Message, Problem, Tool, ToolCall, ToolResult

log = logging.getLogger(__name__)

Specs = list[dict[str, Any]]
Ended = Callable[[ToolResult], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Validation:
    """Whether a call may be run: true if so. `call` is then the call to run, coerced; else `problems` says why not.

    `error` is what running it raises. Iterating gives the problems.
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
    """An injected value that is made anew for each call."""

    make: Callable[[ToolCall], Any]


class Toolbox:
    """Tools by name, in order. Takes functions, Tools, dicts, other boxes, and lists of them.

    `inject` holds the values of the parameters that are marked `Annotated[..., Injected]`, by their name.
    """

    def __init__(self, *tools: Any, inject: Mapping[str, Any] | None = None) -> None:
        flat: list[AnyTool] = []
        self.inject: dict[str, Any] = {}
        for one in tools:
            if isinstance(one, (list, tuple)):
                one = Toolbox(*cast("Sequence[Any]", one))
            if isinstance(one, Toolbox):
                self.inject.update(one.inject)
                flat += one  # they were checked when they came into it
            else:
                flat += as_tools(one) or ()
        self._tools: dict[str, AnyTool] = unique(flat)
        self.inject.update(inject or {})

    @classmethod
    def of(cls, tools: Iterable[AnyTool]) -> Toolbox:
        """A box of tools that were checked, no two of one name: what `as_tools` gives, and what an index holds."""
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
        """Adds a tool, `define("name", fn)` or `define(fn)`, and gives it back; a name that is taken is a
        DuplicateTool."""
        if not isinstance(name, str):
            name, fn = None, name
        if fn is None:
            raise InvalidTool(f"define takes a name and a function; {name!r} came without one", tool=name or "")
        if isinstance(fn, Mapping):
            fn = as_tool({**fn, **({"name": name} if name else {})})
            name = None
        made = as_tool(make_tool(fn, name=name, description=description, parameters=parameters, timeout=timeout))
        self._tools = unique([*self._tools.values(), made])
        return made

    def list(self) -> Specs:
        """What a model is told: each tool's `name`, `description` and `parameters`, a JSON Schema."""
        return [{"name": one.name, "description": one.description, "parameters": dict(one.parameters)} for one in self]

    def _repr_html_(self) -> str:
        return tools_html(self)

    def __iter__(self) -> Iterator[AnyTool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __bool__(self) -> bool:
        return True  # a box is one, empty or not

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
        """Both boxes' tools. The same tool in both is one; two of one name are a DuplicateTool."""
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
        """The same tools, each name with `prefix` before it."""
        return self._with(make_tool(one, name=prefix + one.name) for one in self)

    def rename(self, names: Mapping[str, str] | None = None, /, **more: str) -> Toolbox:
        """The same tools under other names: `rename(old="new")` or `rename({"old": "new"})`."""
        new = {**(names or {}), **more}
        self._must_match(tuple(new))
        return self._with(make_tool(one, name=new[one.name]) if one.name in new else one for one in self)

    # calls

    def validate(self, call: Any) -> Validation:
        """Whether a call (a ToolCall, or a dict in any of the usual forms) may be run; all its problems at once."""
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
        """The one checked call that a model's text holds, in `dialect` or as a plain JSON object.

        Raises NoCall, UnknownTool or InvalidCall, whose messages a model can read: made for `generate_checked`.
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
        """Checks one call, runs it and gives its value; works inside a running loop too.

        Raises UnknownTool or InvalidCall before anything ran, ToolError (the tool's own exception is its cause)
        or ToolTimeout. `injected` adds to the box's own `inject`.
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
        """The result of every call, in their order, at most `parallel` at once; failures are results too.

        Each call is checked, then held against the `policy` (behind these `messages`), then approved where that or
        nobody else says so (one question at a time), then run. A result's `text` is what the model reads, within `limit`
        characters; its `error` is kept with its traceback for the caller: an ApprovalNeeded where nobody can be asked.
        `ended` is awaited with each when it is there. Cancelled, it cancels what runs. What `approve` raises comes through.
        """
        running, approval = asyncio.Semaphore(max(1, parallel)), ApprovalGate(policy, approve, messages)
        self.check_injected(inject)

        async def one(call: Any) -> ToolResult:
            result = await result_of(call)
            await ended(result) if ended else None
            return result

        async def result_of(call: Any) -> ToolResult:
            began = 0.0
            checked = self.validate(call)
            known = checked.call or _identify(call)
            try:
                if checked.error is not None:
                    raise checked.error
                answer = await approval.ask(known, self[known.name], tuple(self))
                if isinstance(answer, Answer):
                    text = result_text(answer.result, limit)
                    return ToolResult(known.id, known.name, text, answer.result, origin=approval.own_words)
                if answer is not known:
                    known = self._checked(answer)
                    approval.check(known, tuple(self))
                async with running:
                    began = time.monotonic()
                    value = await self._run(known, inject or {})
            except (CallError, ToolError) as error:
                log.debug("the call of %r gave no result: %s", known.name, error)
                text = self._error_text(known.name, error, inject or {})
                origin = approval.origin(self[known.name]) if began else approval.own_words
                return ToolResult(known.id, known.name, text, None, error, _since(began), origin)
            origin = approval.origin(self[known.name])
            return ToolResult(known.id, known.name, result_text(value, limit), value, None, _since(began), origin)

        tasks = [asyncio.create_task(one(call)) for call in calls]
        try:
            return tuple(await asyncio.gather(*tasks))
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise

    def check_injected(self, more: Mapping[str, Any] | None = None) -> None:
        """UsageError naming every injected parameter that has no value, before anything runs."""
        for tool in self:
            self._missing(tool, {**self.inject, **(more or {})})

    # inside

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
            given = ", ".join(f"{name!r}: ..." for name in missing)
            raise UsageError(
                f"the tool {tool.name!r} needs {' and '.join(missing)} from the application: "
                f"Toolbox(..., inject={{{given}}})"
            )

    def _unknown(self, call: ToolCall) -> UnknownTool:
        found = near(call.name, self._tools)
        names = listed(self._tools) or "none"
        expected = f"one of {names}" if self._tools else "no call"
        message = f"there is no tool {short(call.name)}.{did_you_mean(found)} The tools are: {names}"
        problem = Problem("", expected, short(call.name), message)
        return UnknownTool(message, call=call, problems=[problem], near=found)

    def _parse(self, text: str, dialect: str) -> Sequence[ToolCall]:
        from .dialects import get
        from .wire.decode import parse  # pyright: ignore[reportUnknownVariableType]

        return parse(text, get(dialect), tuple(self)).calls

    def _error_text(self, name: str, error: BaseException, inject: Mapping[str, Any]) -> str:
        """What a model reads of an error: nothing that the application gave the tool."""
        tool = self._tools.get(name)
        given = {**self.inject, **inject}
        hidden = [given[one] for one in tool.injected if one in given] if tool else []
        return exception_text(error, tool is None or tool.show_errors, [one for one in hidden if isinstance(one, str)])

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
    found = tuple(problems)
    message = f"the call of {call.name!r} cannot be run: " + "; ".join(p.message for p in found)
    return Validation(None, found, InvalidCall(_bounded(message, 4_000), call=call, problems=found))


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _plain_call(text: str) -> Any:
    """The call that a text is, when it is one JSON object (in a code fence or not) that names a tool."""
    inner = text.strip()
    if inner.startswith("```") and inner.endswith("```") and "\n" in inner:
        inner = inner[inner.index("\n") : -3]
    try:
        value = json.loads(inner)
    except (ValueError, RecursionError):
        return None
    return value if looks_like_call(value) else None


def _identify(call: Any) -> ToolCall:
    """As much of a call that cannot be read as a result needs: its id and name."""
    if isinstance(call, ToolCall):
        return call
    given: Mapping[str, Any] = cast("Mapping[str, Any]", call) if isinstance(call, Mapping) else {}
    inner: Mapping[str, Any] = given["function"] if isinstance(given.get("function"), Mapping) else given
    return ToolCall(str(given.get("id") or ""), str(inner.get("name") or ""), {})


def _since(began: float) -> float:
    return time.monotonic() - began if began else 0.0


def _bounded(text: str, at_most: int) -> str:
    return text if len(text) <= at_most else text[: at_most - 1] + "…"
