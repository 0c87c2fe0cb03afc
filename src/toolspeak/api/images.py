"""Images in messages: their kinds, told by how their bytes begin, and the URLs that hold them."""

from __future__ import annotations

KINDS = ((b"\x89PNG", "png"), (b"\xff\xd8\xff", "jpeg"), (b"GIF8", "gif"), (b"RIFF", "webp"))
"""What images of each kind begin with."""


def image_kind(data: bytes) -> str | None:
    """The kind of an image by its first bytes, None for what is no image."""
    return next((kind for mark, kind in KINDS if data.startswith(mark)), None)


def image_url(encoded: str, kind: str) -> str:
    """The URL that holds an image in base64."""
    return f"data:image/{kind};base64,{encoded}"
