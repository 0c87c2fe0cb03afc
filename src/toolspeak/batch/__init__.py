"""Batches: a verb over every row of a table. No row is lost, and no row is written twice.

The modules, from the bottom up:

- `row` has the values: an Item of an input, a Row with its id, an OutputRow of the output. `prompts` makes messages from a
  row.
- `task` is the pure core: `Task.requests(rows)` and `Task.records(rows, outcomes)`, two functions over a batch of rows,
  and the `fingerprint` of everything that affects the requests. Any engine that maps batches (Ray, Daft, Spark) can
  call them.
- `inputs` reads files and iterables, one item at a time; `formats` writes and reads shards.
- `store` is the directory: the journal of rows, the finished shards, the manifest with the fingerprint, the lock.
  `identify` gives each item its id, and says whether it is new, done or a duplicate.
- `limiter` decides how many rows may be in progress, `common_error` whether an error is one that every row would get.
  `runner` takes rows from a feed, has each answered, and has the store write the records. An answer is any
  `async (Row) -> OutputRow`: `ask.Asker` sends a row to a model, the gateway to its own endpoints, an evaluation to a
  case. `Runner.stop` ends in an orderly way, a cancellation at once; a new Runner on the same store continues.
- `verbs` combines them for `ts.batch` and `toolspeak batch`.
"""

from .summary import Summary as Summary
from .verbs import (
    BatchJob as BatchJob,
    BatchOptions as BatchOptions,
    abatch as abatch,
    batch as batch,
    read_batch as read_batch,
)
