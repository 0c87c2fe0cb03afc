"""Ollama's API (`POST /api/chat` and related paths), for Ollama's clients and for Ollama as a server."""

from .catalog import (
    EMBED_BODY,
    RUNNING,
    SHOW_BODY,
    read_texts,
    write_model,
    write_models,
    write_running,
    write_vectors,
    write_version,
)
from .reader import ReplyReader, read_models
from .request import BODY, SETTINGS, read_request, write_request
from .writer import ReplyWriter, write_error, write_loaded, write_reply

__all__ = [
    "BODY", "EMBED_BODY", "RUNNING", "SETTINGS", "SHOW_BODY", "ReplyReader", "ReplyWriter", "read_models", "read_request",
    "read_texts", "write_error", "write_loaded", "write_model", "write_models", "write_reply", "write_request",
    "write_running", "write_vectors", "write_version",
]  # fmt: skip
