"""Recognizes an error that every row would get, from the first rows of a run.

A server that rejects a request does not say whether the row or the job is at fault: a model that does not exist and an
unsupported parameter look like a row that is too long. So the records of the first rejected rows wait while no row has
got a reply. If enough of them have the same reason, the job ends with it, and none of these rows has a record.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BadRequest, ToolspeakError

SAME = 20
"""Rows that must be rejected for the same reason, before any row gets a reply, to end the job."""
SAME_404 = 3
"""The same for status 404, which is rarely about a row."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """The outcome of a row that was rejected before any row of the run got a reply: its record and the error."""

    record: Any
    error: ToolspeakError

    @property
    def reason(self) -> tuple[type, str]:
        """The error without numbers, such as the length of a row."""
        return type(self.error), re.sub(r"\d+", "0", str(self.error))


def common_error(rejected: Sequence[Rejected]) -> ToolspeakError | None:
    """Return the error that every row would get, judged by the last of these outcomes, or None."""
    error = rejected[-1].error
    needed = SAME_404 if isinstance(error, BadRequest) and error.code == 404 else SAME
    if len(rejected) < needed or len({one.reason for one in rejected[-needed:]}) > 1:
        return None
    error.args = (f"the first {needed} rows all got this error, so the job ended: {error}",)
    return error
