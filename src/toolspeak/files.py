"""Files that appear whole: whoever reads one finds what it held before or what it holds now, never half of it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def replacing(path: Path) -> Generator[BinaryIO]:
    """A file of bytes that takes the place of `path` when the block ends well; else nothing is left of it.

    It is written beside `path`, under that name with a point before it and `-` and more behind it, for the user's eyes
    alone. Raises OSError.
    """
    handle, part = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(part).replace(path)
    finally:
        Path(part).unlink(missing_ok=True)
