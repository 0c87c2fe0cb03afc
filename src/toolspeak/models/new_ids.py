"""New ids for calls."""

from __future__ import annotations

import secrets


def new_id() -> str:
    """An id for a call, unique beyond any conversation."""
    return f"call_{secrets.token_hex(12)}"
