"""Batches on many machines: the verbs of a batch inside Ray Data. Ray is imported only when a cluster is used.

- `Decide` and `Extract` are callable classes for `ds.map_batches`: an actor asks a model for all rows of a batch at
  once.
- `render` and `parse` go before and after the engine stages of `ray.data.llm.build_processor`.
- `batch` runs the job of `ts.batch` on a cluster, with the same output directory.

The modules, from the bottom up: `asking` answers rows in one process with the runner of `batch`. `verbs` and `llm_processor`
combine it with the pure `batch.task`. `columns` reads and writes batches in Ray's formats. `cluster` is the job: its
rows and records go through `staging`, `actor` answers them, `dataset` is the pipeline and `connect` the cluster.
"""

from .driver import batch as batch
from .llm_processor import parse as parse, render as render
from .verbs import Decide as Decide, Extract as Extract
