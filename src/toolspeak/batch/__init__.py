"""Batches: a verb over a table, with nothing lost and nothing written twice.

How the pieces fit, from below:

- `row` has the values: an Item of an input, a Row with its id, a Record of the output. `prompts` makes messages of a row.
- `task` is the pure core: `Task.requests(rows)` and `Task.records(rows, outcomes)`, two functions over a batch of rows, and the
  `fingerprint` of all that changes what is asked. Any engine that maps batches (Ray, Daft, Spark) can call them.
- `inputs` reads files and iterables, one item at a time; `formats` writes and reads shards.
- `store` is the directory: the journal of rows, the whole shards, the manifest with the fingerprint, the lock. `identify` gives
  each item its id and says whether it is new, done or doubled.
- `limiter` says how many rows may be under way; `runner` takes rows from a feed, has each answered, and has the store write
  what came. An answer is any `async (Row) -> Record`: `ask.Asker` puts a row to a model, the gateway to its own endpoints, an
  evaluation to a case. `Runner.stop` ends in order, cancelling ends at once; a new Runner on the same store goes on.
- `job` puts them together for `ts.batch` and `toolspeak batch`.
"""

from .job import (
    BatchJob as BatchJob,
    BatchOptions as BatchOptions,
    abatch as abatch,
    batch as batch,
    read_batch as read_batch,
)
from .summary import Summary as Summary
