"""These tests need environments of their own and minutes: they run by `make test-clients`, which sets CLIENTS.

With CLIENTS=full, as `make full` has it, what came of every program is written to `outcome.json`, of which the documentation
makes a table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

collect_ignore_glob = [] if os.environ.get("CLIENTS") else ["test_*.py"]
OUTCOME = Path(__file__).with_name("outcome.json")
_outcome: dict[str, dict[str, Any]] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    client = getattr(item, "callspec", None) and item.callspec.params.get("client")  # type: ignore[attr-defined]
    if client and (report.when == "call" or report.skipped):
        ways = sorted({way.partition(" ")[0] for way in client.ways})
        row = _outcome.setdefault(client.name, {"pins": list(client.pins), "ways": ways, "passed": 0, "failed": 0})
        if not report.skipped:
            row[report.outcome] += 1
    return report


def pytest_sessionfinish() -> None:
    """Writes what came of the programs that ran, unless only some of their tests did."""
    if os.environ.get("CLIENTS") != "full":
        return
    rows = json.loads(OUTCOME.read_text("utf-8")) if OUTCOME.exists() else {}
    for name, row in _outcome.items():
        if 0 < row["passed"] + row["failed"] >= sum(rows.get(name, {}).get(key, 0) for key in ("passed", "failed")):
            rows[name] = row
    OUTCOME.write_text(json.dumps(dict(sorted(rows.items())), indent=1) + "\n", "utf-8")
