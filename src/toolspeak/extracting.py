"""The public functions extract and stream_extract, with their async twins: they extract typed values from text."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from typing import Any, TypeVar, Unpack, cast, overload

from . import drive
from .errors import UsageError
from .events import ArgumentsDelta, CallStart, Event, Finished, TextDelta
from .plan import decide as deciding
from .plan.extract import Extraction, extraction
from .plan.partial_value import partial_data, partial_value
from .verbs import Options, Prompt, job

T = TypeVar("T")


def _extraction(prompt: object, kind: Any) -> Extraction:
    """The extraction of a value of `kind`. Raises UsageError; it says so if the two arguments are swapped."""
    try:
        return extraction(kind)
    except UsageError as error:
        if isinstance(kind, (str, list)) and not isinstance(prompt, (str, list, bytes)):
            error.args = (f"{error}. The text comes first, then the type: they may be swapped",)
        raise


@overload
async def aextract(prompt: Prompt, kind: type[T], *, tries: int | None = None, **options: Unpack[Options]) -> T: ...
@overload
async def aextract(prompt: Prompt, kind: Any, *, tries: int | None = None, **options: Unpack[Options]) -> Any: ...
async def aextract(prompt: Prompt, kind: Any, *, tries: int | None = None, **options: Unpack[Options]) -> Any:
    """As `extract`, awaited."""
    tool, build, read, _, wanted = _extraction(prompt, kind)
    options["choice"] = tool.name
    task = await job(prompt, (tool,), options).ready()
    plan = deciding.call(task.request, read=read, wanted=wanted, **task.again(tries))
    return build((await task.value(plan)).arguments)


@overload
def extract(prompt: Prompt, kind: type[T], *, tries: int | None = None, **options: Unpack[Options]) -> T: ...
@overload
def extract(prompt: Prompt, kind: Any, *, tries: int | None = None, **options: Unpack[Options]) -> Any: ...
def extract(prompt: Prompt, kind: Any, *, tries: int | None = None, **options: Unpack[Options]) -> Any:
    """A value of the type `kind`, extracted from a text.

    `kind` is a dataclass, a pydantic model, `list[int]` or any other type that pydantic supports; or a JSON Schema,
    for JSON data. The value is checked and asked for again like a call, with the messages of the type's own
    validators. Raises GenerationError if the model gives no valid value.
    """
    return drive.run_sync(aextract(prompt, kind, tries=tries, **options))


@overload
def astream_extract(
    prompt: Prompt, kind: type[T], *, tries: int | None = None, **options: Unpack[Options]
) -> AsyncGenerator[T]: ...
@overload
def astream_extract(
    prompt: Prompt, kind: Any, *, tries: int | None = None, **options: Unpack[Options]
) -> AsyncGenerator[Any]: ...
async def astream_extract(
    prompt: Prompt, kind: Any, *, tries: int | None = None, **options: Unpack[Options]
) -> AsyncGenerator[Any]:
    """As `stream_extract`, for `async for`."""
    tool, build, read, wrapped, wanted = _extraction(prompt, kind)
    options["choice"] = tool.name
    task = await job(prompt, (tool,), options).ready()
    plan = deciding.call(task.request, read=read, wanted=wanted, **task.again(tries))
    text, last = "", cast("Any", None)
    async with aclosing(task.play(plan)) as events:
        async for event in events:
            if isinstance(event, drive.Done):
                yield build(event.value.arguments)
                return
            text = _so_far(text, event)
            data = partial_data(text, "value" if wrapped else "")
            if data is not None and data != last and (value := partial_value(kind, data)) is not None:
                last = data
                yield value


def _so_far(text: str, event: Event) -> str:
    """The text of the value so far: the arguments of a call, or the text of a model that writes the value as text."""
    match event:
        case CallStart() | Finished():
            return ""
        case ArgumentsDelta(json=more) | TextDelta(text=more):
            return text + more
        case _:
            return text


@overload
def stream_extract(
    prompt: Prompt, kind: type[T], *, tries: int | None = None, **options: Unpack[Options]
) -> Iterator[T]: ...
@overload
def stream_extract(
    prompt: Prompt, kind: Any, *, tries: int | None = None, **options: Unpack[Options]
) -> Iterator[Any]: ...
def stream_extract(prompt: Prompt, kind: Any, *, tries: int | None = None, **options: Unpack[Options]) -> Iterator[Any]:
    """The value while it is being written, once for each change. The last one is complete and checked, as from
    `extract`.

    Until then missing fields are None and nothing is checked: a string may still grow, and after a re-ask the value
    starts over. Leaving early stops the model.
    """
    return drive.iterate_sync(astream_extract(prompt, kind, tries=tries, **options))
