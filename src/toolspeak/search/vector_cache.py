"""A cache of vectors on disk, by embedder and text, in the user's cache folder."""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ServerFailed
from ..files import replacing
from ..models.embedded.package_download import cache_dir, one_at_a_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .embedders import Embedder

    Floats = NDArray[np.float32]

log = logging.getLogger(__name__)

BYTES = 128 << 20
"""The largest file: 85,000 vectors of 384 numbers, or 21,000 of 1,536. The oldest are dropped first."""
TOGETHER = 32
"""New vectors that are written at once. The whole file is rewritten, which is too much for a single vector."""
KEY = 16


class CachingEmbedder:
    """An embedder that calls another one only for new texts.

    The vectors of one embedder are one file, which is replaced atomically; several processes add to it in turn.
    Without a readable or writable file it works without a cache. The default `folder` is `vectors` in the cache
    folder.
    """

    def __init__(self, embedder: Embedder, folder: Path | None = None) -> None:
        self.embedder = embedder
        self._folder = folder
        self._lock = threading.RLock()
        self._seen: tuple[int, int, int] | None = None  # the state of the file that `_row_by_key` and `_rows` have
        self._row_by_key: dict[bytes, int] = {}
        self._rows: Any = None
        self._new: dict[bytes, Floats] = {}

    @property
    def name(self) -> str:
        """The embedder's name."""
        return self.embedder.name

    @property
    def path(self) -> Path:
        """The file, whether or not it exists."""
        folder = self._folder or cache_dir() / "vectors"
        return folder / f"{hashlib.sha256(self.name.encode()).hexdigest()[:32]}.npy"

    def embed(self, texts: Sequence[str]) -> Floats:
        """One row per text, as the embedder gives it."""
        import numpy as np

        keys = [_key(text) for text in texts]
        with self._lock:
            self._reload()
            known = {key: row for key in keys if (row := self._known(key)) is not None}
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in known}
            if missing or not texts:
                vectors = self.embedder.embed(list(missing.values()))
                self._check_width(vectors, known)
                if not texts:
                    return vectors
                new = dict(zip(missing, vectors, strict=True))
                known |= new
                self._new |= new
                if len(self._new) >= TOGETHER:
                    self.flush()
            return np.stack([known[key] for key in keys])

    def _check_width(self, vectors: Floats, known: Mapping[bytes, Floats]) -> None:
        """Raises ServerFailed if new vectors are not as long as the stored ones."""
        if known and vectors.shape[1] != len(old := next(iter(known.values()))):
            raise ServerFailed(
                f"{self.name} gives vectors of {vectors.shape[1]} numbers now, and gave {len(old)} before: "
                f"it is another model. Remove {self.path}"
            )

    def flush(self) -> None:
        """Writes new vectors, after those that other processes have written meanwhile."""
        with self._lock:
            if not self._new:
                return
            path = self.path
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with one_at_a_time(path.parent):
                    self._reload()
                    _write(
                        path, self._rows, {key: row for key, row in self._new.items() if key not in self._row_by_key}
                    )
            except OSError as error:
                log.info("vectors cannot be cached in %s: %s", path, error)
                return
            self._new = {}

    def _known(self, key: bytes) -> Floats | None:
        if key in self._new:
            return self._new[key]
        at = self._row_by_key.get(key)
        return None if at is None else self._rows["row"][at]

    def _reload(self) -> None:
        """Reads the file if it has changed since the last time."""
        import numpy as np

        path = self.path
        try:
            info = path.stat()
            now = (info.st_ino, info.st_mtime_ns, info.st_size)
            if now == self._seen:
                return
            rows: Any = np.load(path, mmap_mode="r", allow_pickle=False)
            if rows.ndim != 1 or rows.dtype.names != ("key", "row") or rows.dtype["key"] != np.dtype(f"V{KEY}"):
                raise ValueError("it holds something else")
        except FileNotFoundError:
            now, rows = None, None
        except (OSError, ValueError, EOFError) as error:
            log.info("vectors in %s cannot be read and are computed again: %s", path, error)
            now, rows = None, None
        self._seen, self._rows = now, rows
        self._row_by_key = {} if rows is None else {bytes(key): at for at, key in enumerate(rows["key"].tolist())}


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:KEY]


def _write(path: Path, old: Any, new: dict[bytes, Floats]) -> None:
    """Writes a file of the old and the new vectors, without the oldest ones if there are too many."""
    import numpy as np

    if not new:
        return
    width = len(next(iter(new.values())))
    kind = np.dtype([("key", f"V{KEY}"), ("row", "<f4", (width,))])
    rows = np.zeros(len(new), kind)
    rows["key"] = np.frombuffer(b"".join(new), f"V{KEY}")
    rows["row"] = list(new.values())
    if old is not None and old.dtype == kind:
        rows = np.concatenate((old, rows))
    rows = rows[-max(1, BYTES // kind.itemsize) :]
    for left in path.parent.glob(f".{path.name}-*"):  # of a killed process, since this one holds the lock
        left.unlink(missing_ok=True)
    with replacing(path) as file:
        np.save(file, rows)
