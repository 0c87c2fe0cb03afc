"""Lists the reports of evaluations, routing and tuning in a folder, and serves one at a time.

A report is opened with a ticket: an address that cannot be guessed, valid once and for a minute. The browser shows it
in a sandboxed frame without scripts. A frame cannot send the key, so it needs a ticket.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from stat import S_ISREG
from time import monotonic
from typing import Any

OURS = b"""<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">"""
"""The marker in the head of each of our reports."""
TITLE = re.compile(rb"<title>(.*?)</title>")
HEAD, LARGEST = 2_000, 50_000_000
DEPTH, MOST = 3, 2_000
"""The depth of folders, and the number of files, that are searched."""
SECONDS = 60.0


class Reports:
    """The reports in a folder."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self._tickets: dict[str, tuple[Path, float]] = {}

    def rows(self) -> list[dict[str, Any]]:
        """Return the reports, newest first."""
        results = [row for path in _candidates(self.folder) if (row := self._row(path))]
        return sorted(results, key=lambda row: row["time"], reverse=True)

    def ticket(self, name: str) -> str | None:
        """Return a ticket for a listed report, None for any other name."""
        if all(row["name"] != name for row in self.rows()):
            return None
        now = monotonic()
        self._tickets = {one: (path, due) for one, (path, due) in self._tickets.items() if due > now}
        key = secrets.token_urlsafe(32)
        self._tickets[key] = self.folder / name, now + SECONDS
        return key

    def take(self, ticket: str) -> bytes | None:
        """Return the report for a ticket and invalidate the ticket; None for an invalid or expired one."""
        path, due = self._tickets.pop(ticket, (self.folder, 0.0))
        try:
            return path.read_bytes() if monotonic() < due else None
        except OSError:
            return None

    def _row(self, path: Path) -> dict[str, Any] | None:
        try:
            about = path.lstat()
            if not S_ISREG(about.st_mode):
                return None
            with path.open("rb") as file:
                head = file.read(HEAD)
        except OSError:
            return None
        if OURS not in head or about.st_size > LARGEST:
            return None
        title = TITLE.search(head)
        name = path.relative_to(self.folder).as_posix()
        return {
            "name": name,
            "title": unescape(title[1].decode("utf-8", "replace")) if title else name,
            "time": about.st_mtime,
            "size": about.st_size,
        }


def _candidates(folder: Path) -> Iterator[Path]:
    """Yield HTML files in a folder and its subfolders, without hidden ones and links."""
    left = MOST
    for home, folders, files in os.walk(folder):
        depth = len(Path(home).relative_to(folder).parts)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and depth < DEPTH)
        for name in files:
            left -= 1
            if left < 0:
                return
            if name.endswith((".html", ".htm")):
                yield Path(home) / name
