"""Base64 text in JSON: decodes what clients and servers send, and encodes data that only the gateway reads again."""

from __future__ import annotations

import base64

SEALED = "toolspeak:"
"""The prefix of text that `seal` returns."""


def decode_base64(text: str) -> bytes | None:
    """Decode standard base64 (RFC 4648 §4, padded, without line breaks). None for any other text."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # binascii.Error is a ValueError, as is the error for non-ASCII text
        return None


def seal(data: bytes) -> str:
    """Encode data for a field that only the server reads (`encrypted_content`), which clients send back unchanged. Not
    encrypted."""
    return SEALED + base64.b64encode(data).decode()


def unseal(text: str) -> bytes:
    """The data that `seal` was given, none for any other text."""
    data = decode_base64(text.removeprefix(SEALED)) if text.startswith(SEALED) else None
    return data or b""
