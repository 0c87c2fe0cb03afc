"""How often a property is tested, and with which inputs.

Hypothesis draws the inputs of a property. Three profiles say how many:

- `fast`, the default: a tenth of the inputs. Most of them are the same in every run. The rest are new for every
  commit, so that a run of the same commit tests the same inputs again, and time still finds new ones.
- `full` (`make full`): all inputs, the same in every run. Tests that are marked `costly` run in it alone.
- `search`: all inputs, new in every run.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, given, seed, settings

FIXED = 12
"""The fast profile tests one in so many inputs, always the same."""
NEW = 40
"""The fast profile tests one in so many inputs, new for every commit."""

Test = Callable[..., None]
Row = TypeVar("Row")


def commit() -> int:
    """A number made from the commit that is checked out; 0 where there is none."""
    done = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return int(done.stdout.strip() or "0", 16) if done.returncode == 0 else 0


SEED = commit() % 2**32


def register_profiles() -> None:
    """Makes the profiles known to Hypothesis and loads `fast`. `--hypothesis-profile=NAME` chooses another."""
    settings.register_profile("search", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("full", settings.get_profile("search"), derandomize=True)
    settings.register_profile("fast", settings.get_profile("full"))
    settings.load_profile("fast")


def is_fast() -> bool:
    return settings.get_current_profile_name() == "fast"


def thinned(rows: Sequence[Row], step: int) -> Sequence[Row]:
    """Every row in the full profile; in the fast one every so many, the first among them."""
    return rows[::step] if is_fast() else rows


def rotated(rows: Sequence[Row], step: int, row: int = 0) -> Sequence[Row]:
    """Every row in the full profile; in the fast one every so many, others for every commit (and for every `row`)."""
    return rows[(SEED + row) % step :: step] if is_fast() else rows


def property_test(inputs: int, *strategies: Any, **by_name: Any) -> Callable[[Test], Test]:
    """A test of what holds for everything that the strategies draw; `inputs` is their number in the full profile."""

    def decorate(test: Test) -> Test:
        drawn = given(*strategies, **by_name)
        if not is_fast():
            return settings(max_examples=inputs)(drawn(test))
        fixed = settings(max_examples=max(2, inputs // FIXED))(drawn(test))
        new = settings(max_examples=max(1, inputs // NEW), derandomize=False, database=None)(drawn(test))
        new = seed(SEED)(new)

        @wraps(fixed)
        def both(*arguments: Any, **others: Any) -> None:
            fixed(*arguments, **others)
            new(*arguments, **others)

        return both

    return decorate
