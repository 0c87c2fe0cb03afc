"""Many machines: the verbs of a batch inside Ray Data. Nothing here loads Ray before a cluster is used.

- `Decide` and `Extract` are callable classes for `ds.map_batches`: an actor asks a model for all rows of a batch at once.
- `render` and `parse` go before and behind the engine stages of `ray.data.llm.build_processor`.
- `batch` runs the job of `ts.batch` on a cluster, with the same output directory.

How the pieces fit, from below: `asking` has rows answered in one process by the runner of `batch`; `verbs` and `stages` are made
of it and of the pure `batch.task`; `columns` reads and writes batches in the forms that Ray has; `cluster` is the job: its
rows and records go through `staging`, `actor` asks about them, `dataset` is the pipeline and `connect` the cluster.
"""

from .cluster import batch as batch
from .stages import parse as parse, render as render
from .verbs import Decide as Decide, Extract as Extract
