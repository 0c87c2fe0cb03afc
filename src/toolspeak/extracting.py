"""The public functions extract and stream_extract, and their async twins: values of a type out of texts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, TypeVar, Unpack, cast, overload

from . import drive
from .events import ArgumentsDelta, CallStart, Event, Finished, TextDelta
from .plan import decide as deciding
from .plan.extract import extraction
from .plan.partial_value import partial_data, partial_value
from .verbs import Options, Prompt, job

T = TypeVar("T")


@overload
async def aextract(prompt: Prompt, kind: type[T], *, tries: int | None = None, **options: Unpack[Options]) -> T: ...
@overload
async def aextract(
    prompt: Prompt, kind: Mapping[str, Any], *, tries: int | None = None, **options: Unpack[Options]
) -> Any: ...
async def aextract(prompt: Prompt, kind: Any, *, tries: int | None = None, **options: Unpack[Options]) -> Any:
    """As `extract`, awaited."""
    tool, build, read, _, wanted = extraction(kind)
    options["choice"] = tool.name
    task = await job(prompt, (tool,), options).ready()
    plan = deciding.call(task.request, read=read, wanted=wanted, **task.again(tries))
    return build((await task.value(plan)).arguments)


@overload
def extract(prompt: Prompt, kind: type[T], *, tries: int | None = None, **options: Unpack[Options]) -> T: ...
@overload
def extract(
    prompt: Prompt, kind: Mapping[str, Any], *, tries: int | None = None, **options: Unpack[Options]
) -> Any: ...
def extract(prompt: Prompt, kind: Any, *, tries: int | None = None, **options: Unpack[Options]) -> Any:
    """A value of the type `kind` out of a text: a dataclass, a pydantic model, `list[int]`, whatever pydantic knows, or
    JSON data by a JSON Schema.

    Checked and asked again like a call, with the words of the type's own validators; raises GenerationError when the model
    never gives one.
    """
    return drive.run_sync(aextract(prompt, kind, tries=tries, **options))


async def astream_extract(
    prompt: Prompt, kind: type[T], *, tries: int | None = None, **options: Unpack[Options]
) -> AsyncGenerator[T]:
    """As `stream_extract`, for `async for`."""
    tool, build, read, wrapped, wanted = extraction(kind)
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
    """The text of the value that is being written: a call's arguments, or the words of a model that writes it so."""
    match event:
        case CallStart() | Finished():
            return ""
        case ArgumentsDelta(json=more) | TextDelta(text=more):
            return text + more
        case _:
            return text


def stream_extract(
    prompt: Prompt, kind: type[T], *, tries: int | None = None, **options: Unpack[Options]
) -> Iterator[T]:
    """The value as it is being written, again and again with more of it; the last one is whole and checked, as from
    `extract`.

    Before that fields that have not come are None and nothing is checked: a text may still grow, and when the model is asked
    again the value begins anew. Leaving early stops the model.
    """
    return drive.iterate_sync(astream_extract(prompt, kind, tries=tries, **options))
