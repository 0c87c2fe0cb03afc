"""`/v1/files`: the files that batches read and write."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...api import batches as api
from ...errors import Refused
from ..batches.upload import Upload, read_upload
from ..http_exchange import HttpExchange
from ..storage.batch_store import FRAME, BatchStore
from .pagination import page, query

if TYPE_CHECKING:
    from ..app import Gateway

PIECE = 262_144
"""Bytes of a file that are sent in one piece."""
MOST = 10_000
"""The most files on one page."""


def store_of(gateway: Gateway) -> BatchStore:
    """Return the store of files and batches. Raises Refused (404) if there is none."""
    if gateway.batches is None:
        message = "files and batches are turned off here: ask the gateway's operator to turn them on ([batches] with path in its configuration)"
        raise Refused(message, status=404, code="not_found")
    return gateway.batches


async def create(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answers `POST /v1/files`."""
    store = store_of(gateway)
    gateway.auth.check_origin(exchange)
    most = store.settings.file
    length = exchange.header(b"content-length")
    size = int(length) if length.isdigit() else None
    if size is not None and size > most + FRAME:
        raise Refused(f"the file is larger than {most:,} bytes", status=413, code="request_too_large", param="file")
    key = f"file-{secrets.token_hex(12)}"
    try:
        reserved = await store.run(store.reserve, exchange.owner, key, size)
        upload, purpose, age = await _upload(gateway, exchange, store.content(key), min(most, reserved))
    finally:
        store.release(key)
    body = await store.run(store.add_file, exchange.owner, key, upload.name, purpose, upload.size, age)
    await exchange.reply_json(200, body)


async def _upload(gateway: Gateway, exchange: HttpExchange, path: Path, most: int) -> tuple[Upload, str, float | None]:
    """Write a file of at most `most` bytes and return the form, its purpose and its age. Leaves nothing after an error."""
    store = store_of(gateway)
    await gateway.admission.enter(exchange.owner)
    loop = asyncio.get_running_loop()
    began = loop.time()
    whole = False
    try:
        kind = exchange.header(b"content-type")
        with store.available():
            upload = await read_upload(exchange.receive, kind, path, most, gateway.settings.limits)
        purpose, age = _fields(upload)
        whole = True
        return upload, purpose, age
    finally:
        gateway.admission.leave(loop.time() - began, exchange.owner)
        if not whole:
            await asyncio.to_thread(path.unlink, missing_ok=True)


async def list_files(gateway: Gateway, exchange: HttpExchange, _: str) -> None:
    """Answers `GET /v1/files`."""
    store, wanted = store_of(gateway), query(exchange)
    rows = await store.run(store.files, exchange.owner)
    if purpose := wanted.get("purpose"):
        rows = [row for row in rows if row["purpose"] == purpose]
    await exchange.reply_json(200, page(rows, wanted, most=MOST, usual=MOST))


async def show(gateway: Gateway, exchange: HttpExchange, key: str) -> None:
    """Answers `GET /v1/files/{file}`. Raises Refused (404)."""
    await exchange.reply_json(200, await _file(gateway, exchange, key))


async def content(gateway: Gateway, exchange: HttpExchange, key: str) -> None:
    """Answers `GET /v1/files/{file}/content`. Raises Refused (404)."""
    file = await _file(gateway, exchange, key)
    path = store_of(gateway).content(file["id"])
    await exchange.reply_content(file["bytes"], _pieces(path), b"application/octet-stream")


async def drop(gateway: Gateway, exchange: HttpExchange, key: str) -> None:
    """Answers `DELETE /v1/files/{file}`. Raises Refused (400, 404)."""
    store = store_of(gateway)
    if not await store.run(store.drop_file, exchange.owner, key):
        raise _missing(key)
    await exchange.reply_json(200, {"id": key, "object": "file", "deleted": True})


async def _file(gateway: Gateway, exchange: HttpExchange, key: str) -> dict[str, Any]:
    store = store_of(gateway)
    file = await store.run(store.file, exchange.owner, key)
    if file is None:
        raise _missing(key)
    return file


def _missing(key: str) -> Refused:
    return Refused(f"there is no file {key[:100]!r} here", status=404, code="not_found")


def _fields(upload: Upload) -> tuple[str, float | None]:
    """Return the purpose of a file, and the seconds after which it expires, if the form says so. Raises Refused."""
    fields = upload.fields
    purpose = fields.get("purpose")
    if purpose != "batch":
        got = "none" if purpose is None else repr(purpose[:64])
        message = f"purpose: expected batch, got {got}: files are supported only for batches"
        raise Refused(message, code="invalid_value", param="purpose")
    anchor, seconds = fields.get("expires_after[anchor]"), fields.get("expires_after[seconds]")
    if anchor is None and seconds is None:
        return purpose, None
    least, most = api.SECONDS
    age = 0
    with suppress(ValueError, TypeError):
        age = int(seconds or "")
    if anchor != "created_at" or not least <= age <= most:
        message = f"expires_after: expected the anchor created_at, and from {least:,} to {most:,} seconds"
        raise Refused(message, code="invalid_value", param="expires_after")
    return purpose, float(age)


async def _pieces(path: Path) -> AsyncIterator[bytes]:
    """Yield the content of a file, read in a thread."""
    file = await asyncio.to_thread(path.open, "rb")
    try:
        while piece := await asyncio.to_thread(file.read, PIECE):
            yield piece
    finally:
        file.close()
