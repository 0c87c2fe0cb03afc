"""Images from files, as parts of a question."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..api.images import KINDS, image_kind, image_url
from ..errors import UsageError

LARGEST = 20_000_000
"""The largest image in bytes. Servers accept no more."""
Content = str | list[dict[str, Any]]


def with_images(question: str, files: Sequence[str]) -> Content:
    """Return a question followed by images. Raises UsageError for a file that is not an image."""
    if not files:
        return question
    urls = [_url(Path(file).expanduser()) for file in files]
    return [{"type": "text", "text": question}, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]


def _url(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise UsageError(f"the image {path} cannot be read: {error.strerror}") from None
    if len(data) > LARGEST:
        raise UsageError(f"the image {path} is too large: expected at most {LARGEST:,} bytes")
    kind = image_kind(data)
    if kind is None:
        raise UsageError(f"{path} is not an image: expected one of {', '.join(kind for _, kind in KINDS)}")
    return image_url(base64.b64encode(data).decode(), kind)
