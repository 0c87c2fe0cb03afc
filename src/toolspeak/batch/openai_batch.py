"""OpenAI's Batch format: lines of `{"custom_id", "method", "url", "body"}` in, lines with a response each out.

A line brings its own conversation, tools and sampling in `body`, which is one of `POST /v1/chat/completions`; the model
of the batch answers it, whatever the body calls it. A line that cannot be answered gets a response with the status and
the error body that the endpoint would have given. vLLM's `run-batch` reads and writes the same lines.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any, cast

from .. import __version__
from ..api import openai_chat
from ..api.incoming import IncomingRequest, Stamp
from ..errors import GenerationError, Refused, ToolspeakError, UsageError
from ..plan import decide as deciding
from ..plan.effects import Plan
from ..plan.reask import ReaskStrategy, usual
from ..schema.infer import as_tools
from ..types import Reply, Request, Tool
from .prompts import Prompt
from .row import OutputRow, Row, digest
from .task import RowOutcome, fill_record

COLUMNS = ("custom_id", "method", "url", "body")
URL = "/v1/chat/completions"
PROMPT = Prompt("body", column="body")
"""What an Identifier looks for in the lines."""


@dataclass(frozen=True)
class OpenAITask:
    """Handles lines of OpenAI's Batch format; has the functions of `task.Task`."""

    identity: Mapping[str, Any]
    tries: int = 3
    strategies: Sequence[ReaskStrategy] = field(default_factory=lambda: usual(()))

    def requests(self, rows: Sequence[Row]) -> list[Request | ToolspeakError]:
        """Return the request for each line, or the error that prevents it."""
        return [self._request(row) for row in rows]

    def records(self, rows: Sequence[Row], outcomes: Sequence[RowOutcome]) -> list[OutputRow]:
        """Return the record of each line, with its response."""
        return [self._record(row, outcome) for row, outcome in zip(rows, outcomes, strict=True)]

    def plan(self, request: Request) -> Plan[Reply]:
        """Return the plan of a request. A text may be cut at its limit, as at the endpoint."""
        return deciding.decide(request, tries=self.tries, strategies=self.strategies, cut_stands=True)

    @property
    def parts(self) -> dict[str, Any]:
        """Return what the fingerprint covers; everything else is in the lines."""
        return {**self.identity, "verb": "decide", "tries": self.tries, "version": __version__}

    @cached_property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that change with anything in `parts`."""
        return digest(self.parts)

    def _request(self, row: Row) -> Request | ToolspeakError:
        try:
            return replace(read_line(row.data).request, whole=True)
        except ToolspeakError as error:
            return error

    def _record(self, row: Row, outcome: RowOutcome) -> OutputRow:
        record = fill_record(row, outcome, self.fingerprint)
        stamp = hashlib.sha256(f"{self.fingerprint} {row.key}".encode("utf-8", "surrogatepass")).hexdigest()[:24]
        status, body = 200, {}
        if outcome.error is None and outcome.reply is not None:
            incoming = read_line(row.data)
            body = openai_chat.write_reply([outcome.reply], incoming, Stamp(stamp, outcome.created, incoming.model))
        else:
            status, body = failure(outcome.error or UsageError("there was no reply"))
        record.response = {"status_code": status, "request_id": f"req_{stamp}", "body": body}
        return record


def read_line(data: Mapping[str, Any]) -> IncomingRequest:
    """Return the request in a line. Raises Refused for an invalid line, or a body that the endpoint would refuse."""
    url, body = data.get("url"), data.get("body")
    if url != URL:
        raise Refused(f"url: expected {URL}, received {url!r:.80}", code="invalid_url", param="url")
    if not isinstance(body, Mapping):
        raise Refused(f"body: expected an object, received {type(body).__name__}", code="invalid_request", param="body")
    fields = cast("Mapping[str, Any]", body)
    if error := next(_validator().iter_errors(fields), None):
        where = ".".join(map(str, error.instance_path))
        raise Refused(f"{where or 'body'}: {error.message:.300}", code="invalid_type", param=where or None)
    if fields.get("stream"):
        raise Refused("stream: not supported in a batch", code="invalid_value", param="stream")
    return openai_chat.read_request(fields, _tools)


def failure(error: Exception) -> tuple[int, dict[str, Any]]:
    """Return the status and body of the response for an error."""
    if not isinstance(error, Refused):
        status = error.status if isinstance(error, ToolspeakError) else 500
        code = "generation_failed" if isinstance(error, GenerationError) else type(error).__name__
        error = Refused(str(error), status=status, code=code)
    return error.status, openai_chat.write_error(error)


@lru_cache(1)
def _validator() -> Any:
    import jsonschema_rs

    return jsonschema_rs.validator_for(cast("dict[str, Any]", openai_chat.BODY))


def _tools(described: Any) -> tuple[Tool[..., Any], ...] | None:
    return None if described is None else _same_tools(json.dumps(described, sort_keys=True))


@lru_cache(64)
def _same_tools(text: str) -> tuple[Tool[..., Any], ...] | None:
    """Return the tools that lines describe, cached: most lines of a batch have the same ones."""
    return as_tools(json.loads(text))
