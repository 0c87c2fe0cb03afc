"""The command line, `toolspeak`: one file per command, imported when the command is used.

This module and the package above import next to nothing: Ctrl-C during an import is caught here, and cannot be before.
"""

from __future__ import annotations

import os

from .exit_codes import INTERRUPTED

TYPE_CHECKING = False
"""What `typing` has under this name: importing `typing` takes longer than this module."""
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(args: Sequence[str] | None = None) -> int:
    """Run a command line (None: the arguments of this process) and return its exit code."""
    try:
        from .command_group import run

        return run(args)
    except KeyboardInterrupt:
        os._exit(INTERRUPTED)
