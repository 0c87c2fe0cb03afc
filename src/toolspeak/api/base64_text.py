"""Base64 inside JSON: what clients and servers send in it, and what is sealed in it for the gateway alone to read again."""

from __future__ import annotations

import base64

SEALED = "toolspeak:"
"""How a text begins that was sealed here."""


def decode_base64(text: str) -> bytes | None:
    """The bytes that standard base64 holds (RFC 4648 §4, with padding, without line breaks), None for any other text."""
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:  # binascii.Error is one, and a letter that is not ASCII raises another
        return None


def seal(data: bytes) -> str:
    """The text of a field that only the server reads (`encrypted_content`), with data that a client sends back as it is."""
    return SEALED + base64.b64encode(data).decode()


def unseal(text: str) -> bytes:
    """The data that `seal` was given, none for any other text."""
    data = decode_base64(text.removeprefix(SEALED)) if text.startswith(SEALED) else None
    return data or b""
