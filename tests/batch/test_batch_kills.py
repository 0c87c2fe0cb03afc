"""A batch that is killed at any moment goes on: every id once, few rows asked twice."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from kills import CONCURRENCY, killed

KILLS = 20
ROWS = int(os.environ.get("BATCH_ROWS", 250 * KILLS))


@pytest.mark.costly
def test_every_id_comes_out_once_however_often_the_process_is_killed(tmp_path: Path) -> None:
    outcome = killed(tmp_path, ROWS, KILLS, seed=18)
    assert outcome.kills >= KILLS // 2, "kills that came too late prove nothing"
    assert outcome.ids == list(range(ROWS))
    assert outcome.repeated <= CONCURRENCY * outcome.kills
