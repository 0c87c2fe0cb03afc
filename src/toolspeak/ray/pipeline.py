"""The Ray Data pipeline: reads blocks of rows by number, sends them to actors, writes records with checkpoints."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from pickle import PicklingError
from types import ModuleType
from typing import Any

from ..errors import ModelError, UsageError
from .actor import BlockAsker, Work
from .connect import library
from .exchange_folder import Staging

SHARE = 0.25
"""The part of a processor that a task reserves which writes. An actor, which mostly waits, reserves none: Ray's own tasks want
a whole one, which a machine with one must have left."""
PACKAGE = Path(__file__).parents[1]
LARGEST = 8 * 2**20
"""The largest block that Ray expects, in bytes. Its default of 128 MB would not fit into a small object store."""
AT_ONCE = 2
"""Blocks in progress per actor, so that the last rows of one do not delay the next."""


class Pipeline:
    """One run over the blocks of a Staging. `error` is what ended it early."""

    def __init__(self, staging: Staging, work: Work, workers: int) -> None:
        _check_sendable(work)
        self.staging, self.work, self.workers = staging, work, workers
        self.error: Exception | None = None

    def run(self) -> None:
        """Run until every block is written, or store the error that ended it. Blocks the thread."""
        try:
            self._dataset().write_parquet(str(self.staging.records), ray_remote_args={"num_cpus": SHARE})
        except Exception as error:  # noqa: BLE001 - raised again by the thread's owner
            self.error = _cause(error)

    def _dataset(self) -> Any:
        data, checkpoint = library("ray.data"), library("ray.data.checkpoint")
        # a row a block: what Ray reads as one it may also write as one, and files it would put together as it likes
        blocks = data.range(self.staging.blocks, override_num_blocks=self.staging.blocks)
        rows = blocks.map_batches(
            BlockAsker,
            fn_constructor_args=[self.work],
            batch_format="pyarrow",
            batch_size=1,
            num_cpus=0,
            compute=data.ActorPoolStrategy(size=self.workers, max_concurrent_calls_per_actor=AT_ONCE),
        )
        context: Any = rows.context
        context.enable_progress_bars = False
        context.target_max_block_size = LARGEST
        context.checkpoint_config = checkpoint.CheckpointConfig(
            id_column="id", checkpoint_path=str(self.staging.checkpoint), delete_checkpoint_on_success=False
        )
        return rows


def _check_sendable(work: Work) -> None:
    """Have definitions in the user's own files pickled by value, because workers may not have these files.

    Raises UsageError for what cannot be pickled.
    """
    pickle = library("ray.cloudpickle")
    for value in (work.kind, *(tool.function for tool in work.tools)):
        module = sys.modules.get(getattr(value, "__module__", ""))
        if module is not None and not _is_installed(module):
            pickle.register_pickle_by_value(module)
    try:
        pickle.dumps(work)
    except (TypeError, AttributeError, PicklingError, ValueError) as error:
        raise UsageError(
            f"the job cannot be sent to workers: {error}. Pass the model by its name, and tools as functions of a file"
        ) from error


def _is_installed(module: ModuleType) -> bool:
    """Whether a module belongs to Python or an installed library, which workers have too."""
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    paths = sysconfig.get_paths()
    libraries = [*(paths[name] for name in ("stdlib", "purelib", "platlib")), PACKAGE]
    return any(Path(file).is_relative_to(path) for path in libraries)


def _cause(error: BaseException) -> ModelError:
    """Return Ray's message for the innermost error, on one line."""
    inner = error
    while isinstance(deeper := getattr(inner, "cause", inner.__cause__), BaseException):
        inner = deeper
    line = str(inner).strip().partition("\n")[0]
    return ModelError(f"the cluster gave up: {type(inner).__name__}: {line}")
