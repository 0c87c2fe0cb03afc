"""Reads a file that a client uploads as multipart/form-data. It is written to disk as it arrives, within limits of size
and time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from ...errors import MissingExtra, Refused
from ..body import Gone
from ..storage.batch_store import FRAME

if TYPE_CHECKING:
    from ..config.settings import GatewayLimits
    from ..http_exchange import Receive

PARTS = 16
"""The most parts of a form."""
LONGEST_FIELD = 1024
"""The most bytes of a part that is not a file."""
PIECE = 1 << 20
"""Bytes that are buffered before they are written."""


@dataclass(slots=True)
class Upload:
    """A form: its file, which is on disk, and its other fields."""

    name: str = ""
    size: int = 0
    has_file: bool = False
    fields: dict[str, str] = field(default_factory=dict[str, str])


async def read_upload(receive: Receive, content_type: str, path: Path, most: int, limits: GatewayLimits) -> Upload:
    """Read a form and write its part `file` to `path`.

    Raises Refused if it is not a valid form, has more than `most` bytes, or is too slow: no data for `reading` seconds,
    or more than `deadline` in all. Raises Gone if the client left.
    """
    file = await asyncio.to_thread(_create, path)
    try:
        form = _Form(content_type, most)
        try:
            async with asyncio.timeout(limits.deadline):
                await _read(receive, form, file, limits.reading)
        except TimeoutError:
            message = f"the upload timed out: {limits.reading:g} s passed without data, or {limits.deadline:g} s in all"
            raise Refused(message, status=408, code="request_timeout") from None
        return form.end()
    finally:
        await asyncio.to_thread(file.close)


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb")  # readable by this user only


async def _read(receive: Receive, form: _Form, file: BinaryIO, reading: float) -> None:
    more = True
    while more:
        async with asyncio.timeout(reading):
            message = await receive()
        if message["type"] == "http.disconnect":
            raise Gone
        more = message.get("more_body", False)
        form.feed(message.get("body", b""))
        if form.buffered >= PIECE or not more:
            await asyncio.to_thread(file.writelines, form.take())


class _Form:
    """A form while it arrives. The data of its file is buffered until `take`."""

    def __init__(self, content_type: str, most: int) -> None:
        try:
            from python_multipart import exceptions, multipart
        except ImportError as error:
            raise MissingExtra("uploads need python-multipart: pip install 'toolspeak[server]'") from error
        self._error = exceptions.FormParserError
        self._options = multipart.parse_options_header
        kind, options = multipart.parse_options_header(content_type)
        if kind != b"multipart/form-data" or not options.get(b"boundary"):
            message = f"expected the header Content-Type: multipart/form-data with a boundary, got {content_type[:100] or 'none'}"
            raise Refused(message, status=415, code="unsupported_media_type")
        self._most = most
        self.upload = Upload()
        self.buffered = 0
        self._pieces: list[bytes] = []
        self._parts = 0
        self._total = 0
        self._header: tuple[bytes, bytes] = (b"", b"")
        self._disposition = b""
        self._name = ""
        self._value = b""
        self._over = False
        callbacks: dict[str, Any] = {
            "on_part_begin": self._begin, "on_header_begin": self._begin_header, "on_header_field": self._header_name,
            "on_header_value": self._header_value, "on_header_end": self._end_header,
            "on_headers_finished": self._headers_end, "on_part_data": self._data, "on_part_end": self._end,
            "on_end": self._finish,
        }  # fmt: skip
        try:
            self._parser = multipart.MultipartParser(options[b"boundary"], cast("Any", callbacks))
        except exceptions.FormParserError as error:
            raise _malformed(str(error)) from None

    def feed(self, data: bytes) -> None:
        self._total += len(data)
        if self._total > self._most + FRAME:
            raise _too_large(self._most)
        try:
            self._parser.write(data)
        except self._error as error:
            raise _malformed(str(error)) from None

    def take(self) -> list[bytes]:
        """Return the data of the file that arrived since the last call."""
        pieces, self._pieces, self.buffered = self._pieces, [], 0
        return pieces

    def end(self) -> Upload:
        if not self._over:
            raise _malformed("it ends before its last boundary")
        if not self.upload.has_file:
            raise Refused("file: the form has no part with this name", code="missing_required_parameter", param="file")
        return self.upload

    # ------------------------------------------------------------------ callbacks of the parser

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > PARTS:
            raise Refused(f"the form has more than {PARTS} parts", code="invalid_multipart")
        self._disposition, self._value = b"", b""

    def _begin_header(self) -> None:
        self._header = (b"", b"")

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0] + data[start:end], self._header[1])

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._header = (self._header[0], self._header[1] + data[start:end])

    def _end_header(self) -> None:
        if self._header[0].strip().lower() == b"content-disposition":
            self._disposition = self._header[1]

    def _headers_end(self) -> None:
        _, options = self._options(self._disposition)
        self._name = _text(options, b"name")
        if self._name == "file":
            if self.upload.has_file:
                raise Refused("file: the form has two parts with this name", code="invalid_multipart", param="file")
            self.upload.has_file = True
            self.upload.name = _text(options, b"filename").replace("\\", "/").rpartition("/")[2][:255] or "file"

    def _data(self, data: bytes, start: int, end: int) -> None:
        piece = data[start:end]
        if self._name == "file":
            self.upload.size += len(piece)
            if self.upload.size > self._most:
                raise _too_large(self._most)
            self._pieces.append(piece)
            self.buffered += len(piece)
            return
        self._value += piece
        if len(self._value) > LONGEST_FIELD:
            message = f"{self._name[:64]}: longer than {LONGEST_FIELD:,} bytes"
            raise Refused(message, code="invalid_value", param=self._name[:64])

    def _end(self) -> None:
        if self._name and self._name != "file":
            self.upload.fields[self._name[:64]] = self._value.decode("utf-8", "replace")

    def _finish(self) -> None:
        self._over = True


def _text(options: Mapping[bytes, bytes], name: bytes) -> str:
    return "".join(c for c in options.get(name, b"").decode("utf-8", "replace") if c.isprintable())


def _malformed(why: str) -> Refused:
    return Refused(f"the body is not valid multipart/form-data: {why[:200]}", code="invalid_multipart")


def _too_large(most: int) -> Refused:
    return Refused(f"the file is larger than {most:,} bytes", status=413, code="request_too_large", param="file")
