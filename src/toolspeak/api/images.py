"""Images in messages: their types by their first bytes, and data URLs."""

from __future__ import annotations

KINDS = ((b"\x89PNG", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp"))
"""The first bytes of each type of image."""


def image_kind(data: bytes) -> str | None:
    """Return the media type of an image by its first bytes, None for anything else."""
    return next((kind for mark, kind in KINDS if data.startswith(mark)), None)


def image_url(encoded: str, kind: str) -> str:
    """Return the data URL of an image in base64."""
    return f"data:image/{kind};base64,{encoded}"
