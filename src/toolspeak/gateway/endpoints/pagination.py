"""Paginates lists as OpenAI's API does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl

from ...errors import Refused
from ..http_exchange import HttpExchange


def query(exchange: HttpExchange) -> dict[str, str]:
    """Return the query parameters of a request."""
    return dict(parse_qsl(exchange.scope.get("query_string", b"").decode("latin-1")))


def page(
    rows: Sequence[Mapping[str, Any]], query: Mapping[str, str], *, most: int, usual: int, unknown: int = 404
) -> dict[str, Any]:
    """Return a page of rows, which come newest first.

    Query parameters: `order` (asc or desc), `limit` (1 to `most`), `after` (an id: the page starts behind it). Raises
    Refused, with the status `unknown` for an `after` that does not exist.
    """
    limit = query.get("limit", str(usual))
    if not re.fullmatch("[1-9][0-9]{0,5}", limit, re.ASCII) or int(limit) > most:
        raise Refused(f"limit: expected a number from 1 to {most:,}", code="invalid_value", param="limit")
    if query.get("order", "desc") not in ("asc", "desc"):
        raise Refused("order: expected asc or desc", code="invalid_value", param="order")
    if query.get("order") == "asc":
        rows = rows[::-1]
    if after := query.get("after"):
        place = next((at for at, row in enumerate(rows) if row.get("id") == after), None)
        if place is None:
            message = f"after: there is no item {after[:100]!r}"
            raise Refused(message, status=unknown, code="invalid_value", param="after")
        rows = rows[place + 1 :]
    part = rows[: int(limit)]
    first, last = (part[0]["id"], part[-1]["id"]) if part else ("", "")
    return {"object": "list", "data": part, "first_id": first, "last_id": last, "has_more": len(rows) > len(part)}
