"""Two hundred requests of each attack leave the gateway as large as its caches may make it; `make memory` goes on for longer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from memory import CLASSES, MAY, left


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", CLASSES)
def test_two_hundred_attacks_leave_no_more_than_the_caches_hold(name: str) -> None:
    stays, done = left(name, 200, 0)
    assert done == 200
    assert stays <= MAY
