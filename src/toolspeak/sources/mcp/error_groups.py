"""The errors in the exception groups that the MCP SDK raises."""

from __future__ import annotations

import asyncio
from typing import cast


def first_error(error: BaseException) -> BaseException:
    """Return the first actual error in an exception group; any other error is returned as it is."""
    while isinstance(error, BaseExceptionGroup):
        inner = cast("tuple[BaseException, ...]", error.exceptions)
        error = next((one for one in inner if not isinstance(one, asyncio.CancelledError)), inner[0])
    return error
