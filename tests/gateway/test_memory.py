"""Two hundred requests of each attack, made small, leave the gateway as large as the caches that they fill may make it; `make memory`
makes them large, and goes on until the memory is flat."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import attacks
import memory

SMALL = 0.004
"""A request of each attack is about 40 KB, which two hundred times over is more than the margin."""


@pytest.mark.costly
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_two_hundred_attacks_leave_no_more_than_the_caches_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attacks, "SCALE", SMALL)
    left = asyncio.run(memory.attacked_in_turn(200))
    assert set(left) == set(attacks.CLASSES)
    assert not {name: size for name, size in left.items() if size > memory.allowed(name)}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.filterwarnings("ignore:Sending a large body")
def test_large_texts_leave_nothing() -> None:
    """What the C library keeps of them for later is given back: half a request stayed in each of its pools."""
    stays, done, _ = asyncio.run(memory.left("large texts", 5, 0))
    assert done == 5
    assert stays < 15_000_000
