"""Reads base64, as clients and servers send it inside JSON."""

from __future__ import annotations

import base64


def decode_base64(text: str) -> bytes | None:
    """The bytes that standard base64 holds (RFC 4648 §4, with padding, without line breaks), None for any other text."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # binascii.Error is one, and a letter that is not ASCII raises another
        return None
