"""Runs cases with contenders: one decision per case, judged and stored.

The work is done by `batch.runner`: cases are the rows of a batch, and the results folder takes the place of its
journal. Errors that every case would get end the run (STOPPING, and the first cases all failing alike), so that a
wrong model name does not become thousands of wrong answers.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, cast

from .. import __version__
from ..batch.row import Item, Row
from ..batch.runner import Runner
from ..batch.store import WAITING
from ..batch.summary import Summary
from ..drive import run_sync
from ..errors import (
    GenerationError,
    KeyRefused,
    LimitReached,
    MissingExtra,
    ModelError,
    ModelUnreachable,
    RateLimited,
    UsageError,
    WeightsError,
)
from ..models.base import Model
from ..models.wrapper import close, load
from ..types import Message, Reply, Tool, Usage
from ..verbs import Options, adecide, arun as run_calls
from .case import Case, Verdict, calls_of, digest, tool_digests
from .contender import Contender, distinct
from .datasets import mixed
from .results import Folder, Manifest, Record, last, opened
from .trace import packed, recording

STOPPING = (ModelUnreachable, KeyRefused, RateLimited, WeightsError, MissingExtra)
"""Errors that every case would get. They end the run, which can be continued."""

EXPECTED = ("not-sampled",)
"""Notes that every case would get: scoring by likelihood has no use for a temperature."""

OnRecord = Callable[[Record, int, int], None]
"""Called with each new record, the number of finished cases and the total."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How cases are run. `tries` is the most requests for one valid reply: 1 means no re-asking.

    `temperature` None leaves it to the model. `seconds` limits one decision. `at_once` is the number of concurrent
    cases. `prices` are those of a million input tokens and of a million output tokens, by the contender's label, or by
    "" for all.
    """

    temperature: float | None = 0.0
    seed: int | None = None
    max_tokens: int | None = None
    seconds: float | None = None
    tries: int = 1
    at_once: int = 1
    prices: Mapping[str, tuple[float, float]] = field(default_factory=dict[str, tuple[float, float]])

    def as_dict(self) -> dict[str, Any]:
        """The settings that affect results, to store in the manifest."""
        return {name: value for name, value in asdict(self).items() if name not in ("at_once", "prices")}


def run(
    cases: Sequence[Case],
    contenders: Sequence[Contender],
    out: Path | str,
    settings: Settings = Settings(),
    *,
    sources: Sequence[str] = (),
    on_record: OnRecord | None = None,
    errors_again: bool = False,
) -> list[Record]:
    """The records of every case with every contender, stored in the folder `out` as they arrive.

    Stored results are not repeated, so the same call continues a run that was killed. A folder accepts further
    contenders for the same cases and settings, and refuses other cases or settings. `sources` are the cases' names,
    for display. `errors_again` repeats cases that ended in an error. Raises UsageError, and ModelError if a model
    cannot be reached at all or if its first cases all end in the same error.
    """
    return run_sync(
        arun(cases, contenders, out, settings, sources=sources, on_record=on_record, errors_again=errors_again)
    )


async def arun(
    cases: Sequence[Case],
    contenders: Sequence[Contender],
    out: Path | str,
    settings: Settings = Settings(),
    *,
    sources: Sequence[str] = (),
    on_record: OnRecord | None = None,
    errors_again: bool = False,
) -> list[Record]:
    """As `run`, awaited."""
    distinct(contenders)
    _check(settings)
    models = {one.label: one.build() for one in contenders}
    named = list(sources) or list(dict.fromkeys(case.group for case in cases))
    manifest = Manifest(
        named,
        len(cases),
        digest(cases),
        settings.as_dict(),
        __version__,
        digest(cases, tools=False),
        tool_digests(cases),
    )
    with opened(Path(out), manifest) as folder:
        if errors_again:
            folder.forget_errors()
        total = len(cases) * len(models)
        done = itertools.count(sum(label in models for label, _ in folder.done) + 1)

        def report(record: Record) -> None:
            if on_record is not None:
                on_record(record, next(done), total)

        try:
            for label, model in models.items():
                await _run_all(cases, label, model, settings, RecordKeeper(folder, report))
        finally:
            for model in models.values():
                await close(model)
        return [record for record in last(folder.records) if record.contender in models]


def _check(settings: Settings) -> None:
    for name in ("tries", "at_once"):
        if getattr(settings, name) < 1:
            raise UsageError(f"{name}: expected 1 or more, received {getattr(settings, name)}")


async def _run_all(cases: Sequence[Case], label: str, model: Model, settings: Settings, keeper: RecordKeeper) -> None:
    """Runs every case that is not done, several at a time. An error that stops the run lets running cases finish."""
    undone = [case for case in mixed(cases) if (label, case.id) not in keeper.folder.done]
    if undone:
        await load(model)
    left = iter(undone)

    async def feed() -> Sequence[Item]:
        return [Item({"case": case}, case.id) for case in itertools.islice(left, 1)]

    async def answer(row: Row) -> Record:
        return await put(row.data["case"], label, model, settings)

    runner = Runner(_Journal(keeper), answer, _Counts(keeper.folder.path), concurrency=settings.at_once, patience=0)
    await runner.run(feed, _Rows())
    keeper.release()


class _Rows:
    """Presents cases as rows of a batch, all of them still to be done."""

    count = 0

    def identify(self, items: Sequence[Item]) -> Iterator[tuple[Row, int]]:
        for item in items:
            self.count += 1
            yield Row(self.count - 1, item.where, cast("Mapping[str, Any]", item.data), item.where), WAITING


class _Journal:
    """Stands in for the journal of a batch: it adds records to a RecordKeeper instead of a batch folder."""

    def __init__(self, keeper: RecordKeeper) -> None:
        self.keeper = keeper

    def add(self, place: int, record: Record, state: int | None = None) -> None:
        self.keeper.add(record)

    def part(self, place: int) -> int:
        return 0

    def begun(self, place: int) -> str:
        return ""

    def commit(self) -> None: ...
    def write_part(self, part: int) -> None: ...
    def write_rest(self) -> None: ...


class _Counts(Summary):
    """Stands in for a batch's counters, which an evaluation does not need."""

    def add(self, record: Any) -> None:
        self.done += 1


class RecordKeeper:
    """Adds records to a folder. It holds back the first ones while they are all the same error, which is usually one
    of the setup, such as an unknown model name. After SAME of them it raises ModelError instead of storing them."""

    SAME = 5

    def __init__(self, folder: Folder, report: Callable[[Record], None]) -> None:
        self.folder, self.report = folder, report
        self.records: list[Record] = []
        self.begun = False

    def add(self, record: Record) -> None:
        """Stores a record, or holds it back."""
        self.records.append(record)
        same = record.kind == "error" and record.detail == self.records[0].detail
        if self.begun or not same:
            self.release()
        elif len(self.records) == self.SAME:
            raise ModelError(
                f"the first {self.SAME} cases of {record.contender} all ended so, and were not kept: {record.detail}"
            )

    def release(self) -> None:
        """Stores the records that were held back."""
        self.begun = True
        for record in self.records:
            self.folder.add(record)
            self.report(record)
        self.records.clear()


async def put(case: Case, label: str, model: Model, settings: Settings) -> Record:
    """The record of one case. An error of the model is a wrong answer, unless every case would get it (STOPPING)."""
    with recording() as tape:
        began = time.perf_counter()
        reply, failed = await _decided(case, model, settings)
        seconds = time.perf_counter() - began
        spent = await tape.usage()
    verdict = failed or case.judge(reply)
    return Record(
        case=case.id,
        group=case.group,
        contender=label,
        right=verdict.right,
        kind=verdict.kind,
        detail=verdict.detail,
        question=case.question,
        tools=[tool.name for tool in case.tools],
        expected=case.expected,
        match=case.match,
        calls=calls_of(reply),
        text=reply.text,
        notes=[
            f"{note.rule}: {note.detail}" if note.detail else note.rule
            for note in reply.notes
            if note.rule not in EXPECTED
        ],
        seconds=round(seconds, 4),
        prompt_tokens=spent.prompt_tokens,
        completion_tokens=spent.completion_tokens,
        cached_tokens=spent.cached_tokens,
        cost=cost(spent, price(label, settings.prices)),
        messages=list(case.messages),
        steps=packed(tape.steps),
    )


async def _decided(case: Case, model: Model, settings: Settings) -> tuple[Reply, Verdict | None]:
    """The reply, and a verdict if there is no valid reply or if the case judges itself (`play`)."""
    options: Options = {
        "model": model,
        "temperature": settings.temperature,
        "seed": settings.seed,
        "max_tokens": settings.max_tokens,
        "limits": {"seconds": settings.seconds},
    }
    try:
        if case.play is not None:
            return await case.play(functools.partial(_turn, options, settings))
        return await adecide(case.messages, tools=case.tools, tries=settings.tries, **options), None
    except GenerationError as error:
        return error.reply or Reply(), Verdict(False, "invalid", str(error))
    except STOPPING:
        raise
    except (ModelError, LimitReached, UsageError) as error:
        return Reply(), Verdict(False, "error", f"{type(error).__name__}: {error}")


async def _turn(
    options: Options, settings: Settings, messages: Sequence[Message], tools: Sequence[Tool[..., Any]], steps: int
) -> Reply:
    """One turn of a multi-turn case: a run that executes calls."""
    limited: Options = {**options, "limits": {"seconds": settings.seconds, "steps": steps}}
    return await run_calls(messages, tools=tools, **limited)


def price(label: str, prices: Mapping[str, tuple[float, float]]) -> tuple[float, float] | None:
    """The prices for a contender: by its label, by its model (with which the label begins), or the ones for all."""
    return prices.get(label) or prices.get(label.partition(" · ")[0]) or prices.get("")


def cost(spent: Usage, price: tuple[float, float] | None) -> float | None:
    """The cost of the tokens, given the prices of a million input and of a million output tokens; None if either is
    unknown."""
    if price is None or not (spent.prompt_tokens or spent.completion_tokens):
        return None
    return (spent.prompt_tokens * price[0] + spent.completion_tokens * price[1]) / 1e6
