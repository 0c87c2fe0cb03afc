"""Compaction: a summary of a conversation, in an item that replaces the conversation in later requests.

A request for it ends with the item `compaction_trigger`, or goes to `/v1/responses/compact`. The model gets the whole
conversation and then `SUMMARIZE` as the user's message. Its reply becomes the item's `encrypted_content`, which clients send
back unchanged.

The summary is encoded, not encrypted: it is made of what the client sent, and the client could as well send it as a
message. So any worker can read it, and nothing is stored.
"""

from __future__ import annotations

from typing import Any

from ...errors import Refused
from ..base64_text import seal, unseal

SEALED = "encrypted_content"
"""The type of a part, and the field of an item, that only its provider can read."""
TRIGGER = "compaction_trigger"
"""The type of the item that asks for a compaction."""
COMPACTED = ("compaction", "context_compaction")
"""The types of items that contain a summary."""
MARK = b"summary:"
"""The beginning of sealed data that is a summary."""

SUMMARIZE = (
    "Summarize this conversation. The summary replaces the conversation, so write down everything that is needed to go on: "
    "the task and the user's requirements, what was done and decided, the present state with the exact names, paths, "
    "commands and results that still matter, and the next steps. Write only the summary, as plain text, and call no tool."
)
"""What the model is asked for."""
SUMMARIZED = "Summary of the conversation so far:\n\n"
"""What the model reads before a summary."""
NOT_OURS = (
    "this summary was made by another server, and no other server can read it. Send the conversation itself, or start a "
    "new conversation"
)


def sealed_summary(text: str) -> str:
    """Return a summary as `encrypted_content`."""
    return seal(MARK + text.encode("utf-8", "replace"))


def opened_summary(text: Any) -> str | None:
    """Return the summary in an `encrypted_content`; None for anything that `sealed_summary` did not return."""
    data = unseal(str(text))
    try:
        return data.removeprefix(MARK).decode() if data.startswith(MARK) else None
    except UnicodeDecodeError:
        return None


def check_summary(text: str, *, cut: bool) -> None:
    """Raises Refused for a summary that would lose the conversation."""
    if cut or not text.strip():
        problem = "the model's summary was cut at its length limit" if cut else "the model wrote no summary"
        raise Refused(f"{problem}, so the conversation was not compacted", status=502, code="no_valid_reply")
