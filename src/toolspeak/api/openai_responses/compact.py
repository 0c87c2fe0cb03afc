"""`POST /v1/responses/compact`: the same as a request that ends with `compaction_trigger`, but request and reply
have forms of their own.

The reply is the input of the next request: the user's messages, then the item with the summary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...errors import Refused
from ...schema.infer import as_tools
from ...types import Reply, Schema
from ..incoming import IncomingRequest, Stamp
from ..json_stream import Payload, records
from . import request, writer
from .compaction_item import TRIGGER
from .items import stored_items
from .tools import Tools
from .writer import ReplyWriter, write_error

__all__ = ["BODY", "ReplyWriter", "read_request", "write_error", "write_reply"]

_fields: Mapping[str, Any] = request.BODY["properties"]
BODY: Schema = {
    **request.BODY,
    "required": ["model"],
    "properties": {**_fields, "input": {"anyOf": [_fields["input"], {"type": "null"}]}},
}
"""The schema of a request body. The input may be missing if the request continues from a stored response."""


def read_request(body: Mapping[str, Any], tools: Tools = as_tools) -> IncomingRequest:
    """Parse a body that matches BODY. Raises UsageError or Refused for a request that cannot be served."""
    current: Any = body.get("input")
    items: list[Payload] = [{"role": "user", "content": current}] if isinstance(current, str) else records(current)
    if not current:
        raise Refused("input: there is nothing to compact", code="invalid_value", param="input")
    incoming = request.read_request({**body, "input": [*items, {"type": TRIGGER}], "stream": False}, tools)
    return replace(incoming, echo={"output": [item for item in items if item.get("role") == "user"]})


def write_reply(replies: Sequence[Reply], incoming: IncomingRequest, stamp: Stamp) -> Payload:
    """Return the body of the reply."""
    response = writer.write_reply(replies, replace(incoming, echo={}), stamp)
    input_items = stored_items(incoming.echo["output"], stamp.id)
    return {
        "id": response["id"],
        "object": "response.compaction",
        "created_at": response["created_at"],
        "output": [*input_items, *response["output"]],
        "usage": response["usage"],
    }
