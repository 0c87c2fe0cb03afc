"""Log lines: one JSON object each, on stderr, without secrets and without any text of a conversation."""

from __future__ import annotations

import json
import logging
import os
import traceback
from collections.abc import Iterable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from ...display import visible
from ...errors import BadRequest, ModelError
from .request_record import RequestRecord

Error = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


log = logging.getLogger(__name__)

AUDIT = "toolspeak.audit"
"""The logger of decisions about calls, one line each."""
RELOADS, ENDING = "toolspeak.gateway.serve.reload", "toolspeak.gateway.serve.server"
"""The loggers of changes of the configuration and of the end, which are logged at any verbosity."""
CONTENT = "toolspeak.content"
"""The logger of prompts and replies, and of those below it. The gateway writes none of it, at any verbosity."""


class LogLines(logging.Handler):
    """Writes each `logging` record, and the lines of requests (`write`), as a line of JSON.

    `secrets` are removed. Of an exception only its class and its places in the code are written; its message, which may
    repeat a conversation, only with `detail`. Of a model's error, instead of places, the line says how to get it.
    """

    def __init__(self, descriptor: int, secrets: Iterable[str] = (), *, detail: bool = False) -> None:
        super().__init__()
        self.descriptor = descriptor
        self.secrets = dict[str, None]()
        self.hide(secrets)
        self.detail = detail

    def hide(self, secrets: Iterable[str]) -> None:
        """Remove these secrets too, from now on."""
        self.secrets |= dict.fromkeys(filter(None, secrets))

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(CONTENT):
            self.write(self.line(record))

    def line(self, record: logging.LogRecord) -> str:
        """Return a `logging` record as JSON."""
        fields: dict[str, Any] = {
            "time": stamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        fields |= getattr(record, "audit", {})
        if record.exc_info:
            fields |= _failure(record.exc_info, detail=self.detail)
        line = json.dumps(fields, ensure_ascii=False, default=str)
        for secret in self.secrets:
            line = line.replace(secret, "***")
        return line

    def write(self, line: str) -> None:
        """Write one line in one piece. If stderr is closed or full the line is lost, and the gateway continues."""
        data = line.encode("utf-8", "replace") + b"\n"
        try:
            while data:
                data = data[os.write(self.descriptor, data) :]
        except OSError:
            pass


def set_up(secrets: Iterable[str] = ()) -> LogLines:
    """Send all logging of this process to stderr as JSON lines, at the level that `--verbose` set."""
    ours = logging.getLogger("toolspeak")
    verbose = ours.level not in (logging.NOTSET, logging.WARNING)
    # A copy of the descriptor: the embedded model redirects number 2 for a moment while it checks a grammar.
    lines = LogLines(os.dup(2), secrets, detail=verbose)
    for logger in (ours, logging.getLogger("uvicorn"), logging.getLogger("uvicorn.error")):
        logger.handlers.clear()
        logger.propagate = True
    root = logging.getLogger()
    root.handlers[:] = [lines]
    if not verbose:
        ours.setLevel(logging.WARNING)
        for name in (AUDIT, RELOADS, ENDING):
            logging.getLogger(name).setLevel(logging.INFO)
    return lines


def log_model_failure(request: str, error: BaseException, code: str) -> None:
    """Log that a request failed because the model did, unless the client gets the reason itself."""
    match error:
        case BadRequest():
            pass
        case ModelError():
            status = f", status {status}" if (status := getattr(error, "code", 0)) else ""
            log.warning("request %s: the model's server failed: %s%s", request, code, status, exc_info=error)
        case _:
            pass


def request_line(record: RequestRecord) -> str:
    """Return the log line of one request. Fields without information are left out."""
    fields: dict[str, Any] = {
        "time": stamp(record.time),
        "level": "info" if record.status < 500 else "error",
        "message": "request",
        "id": record.id,
        "method": record.method,
        "route": record.route,
        "status": record.status,
        "seconds": round(record.seconds, 6),
        "bytes": record.bytes,
    }
    if record.api:
        fields["api"] = record.api
    if record.model:
        fields |= {
            "model": record.model,
            "stream": record.stream,
            "tokens_in": record.tokens_in,
            "tokens_out": record.tokens_out,
            "calls": record.calls,
        }
    if record.first is not None:
        fields["first"] = round(record.first, 6)
    if record.visible_tools:
        fields["shown"] = record.visible_tools
    for name in (
        "ran",
        "estimated",
        "key",
        "code",
        "finish",
        "repairs",
        "reasks",
        "retries",
        "searches",
        "default",
        "meant",
        "gone",
    ):
        if value := getattr(record, name):
            fields[name] = value
    if record.waited >= 0.001:
        fields["waited"] = round(record.waited, 6)
    return _encode(fields)


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False).encode


def stamp(seconds: float) -> str:
    """Return a time since 1970 in RFC 3339 format, to the millisecond, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _message(record: logging.LogRecord) -> str:
    try:
        return record.getMessage()
    except (TypeError, ValueError):  # the arguments do not match the format string: log the rest anyway
        return str(record.msg)


def _failure(error: Error | bool, *, detail: bool) -> dict[str, Any]:
    if not isinstance(error, tuple) or error[1] is None:
        return {}
    fields: dict[str, Any] = {"error": type(error[1]).__name__}
    if isinstance(error[1], ModelError):
        fields["said"] = "serve -v logs it"
    else:
        frames = traceback.extract_tb(error[2])
        fields["where"] = [
            f"{frame.filename.rpartition('site-packages/')[2]}:{frame.lineno} {frame.name}" for frame in frames
        ]
    if detail:
        fields["said"] = visible(str(error[1])[:2000])
    return fields
