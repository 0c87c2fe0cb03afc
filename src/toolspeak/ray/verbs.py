"""`Decide` and `Extract`: callable classes for `ds.map_batches` that send the rows of a batch to a model."""

from __future__ import annotations

import asyncio
from typing import Any, Unpack

from ..batch.ask import prepared
from ..batch.prompts import prompt as read_prompt
from ..batch.row import Row
from ..batch.task import Verb
from ..errors import UsageError
from ..models.resolve import check_run_options
from ..verbs import CommonOptions
from ..wire.dialect import Dialect
from .asking import RowAsker
from .columns import columns_of, names_of, rows_of, with_columns


class VerbOptions(CommonOptions, total=False):
    """The options of `Decide` and `Extract`, besides those of every verb.

    `dialect` is the model's dialect, as in `ts.model`. `concurrency` (16) is the most rows in progress per actor.
    `tries` is as in `ts.decide`.
    """

    dialect: str | Dialect | None
    concurrency: int
    tries: int | None


OWN = VerbOptions.__annotations__.keys() - CommonOptions.__annotations__.keys()


class _Verb:
    """The base of both verbs. The model is created with the first batch: in the actor, on its loop."""

    verb: Verb

    def __init__(self, prompt: str, tools: Any, kind: Any, model: Any, options: VerbOptions) -> None:
        check_run_options(options, list(VerbOptions.__annotations__), type(self).__name__)
        concurrency = options.get("concurrency", 16)
        if isinstance(concurrency, bool) or not isinstance(concurrency, int) or concurrency < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"concurrency: expected a whole number from 1, received {concurrency!r:.80}")
        self.prompt, self.tools, self.kind = read_prompt(prompt), tools, kind
        self.concurrency = concurrency
        self.further = {name: options.get(name) for name in ("dialect", "tries")}
        self.settings = {name: value for name, value in options.items() if name not in OWN} | {"model": model}
        self._asker: asyncio.Task[RowAsker] | None = None

    async def __call__(self, batch: Any) -> Any:
        """Return the batch with the columns of the output."""
        names = names_of(batch)
        if wrong := self.prompt.missing(names):
            raise UsageError(wrong)
        if self._asker is None:
            self._asker = asyncio.create_task(self._ready())
        asker = await asyncio.shield(self._asker)
        rows = [Row(0, place, data, "") for place, data in enumerate(rows_of(batch, self.prompt.columns))]
        records = await asker.records(rows)
        return with_columns(batch, columns_of(records, value=self.verb == "extract"))

    async def _ready(self) -> RowAsker:
        asker = await prepared(self.prompt, self.verb, self.tools, self.kind, self.settings, **self.further)
        return RowAsker(asker.answer, self.concurrency)


class Decide(_Verb):
    """Decides on every row of a batch: `ds.map_batches(ts.ray.Decide, fn_constructor_kwargs={"tools": [refund]}, …)`.

    `prompt` is a column, or a text with columns in braces. `model` is as in `ts.batch`; on a cluster a name is best.
    The columns of the input stay; those of a batch's output are added (`calls`, `text`, `error`, … , without `id`) and
    replace columns of the same name. A row that fails gets an error. Raises UsageError for a missing column, and the
    ModelError that every row would get.
    """

    verb = "decide"

    def __init__(
        self, prompt: str = "text", tools: Any = (), model: Any = None, **options: Unpack[VerbOptions]
    ) -> None:
        super().__init__(prompt, tools, None, model, options)


class Extract(_Verb):
    """Extracts a value from every row of a batch: `ds.map_batches(ts.ray.Extract, fn_constructor_kwargs={"kind":
    Person}, …)`.

    `kind` is a type or a JSON Schema. The column `value` is the extracted value as JSON text; everything else is as in
    `Decide`.
    """

    verb = "extract"

    def __init__(self, kind: Any, prompt: str = "text", model: Any = None, **options: Unpack[VerbOptions]) -> None:
        super().__init__(prompt, (), kind, model, options)
