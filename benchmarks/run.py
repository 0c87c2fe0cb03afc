"""Runs the benchmarks: every bench_*.py beside this file, or those whose names are given.

Each one has a `rows()` that yields (what, value, note). Values that matter are ratios against a peer that
is measured in the same run, because seconds tell of the machine.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main(names: list[str]) -> int:
    """Prints one table a benchmark; 2 where a name is unknown."""
    known = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    if unknown := [name for name in names if name not in known]:
        print(f"no benchmark {', '.join(unknown)}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    sys.path.insert(0, str(HERE))
    for name in names or known:
        module = importlib.import_module(f"bench_{name}")
        print(f"\n{name}: {(module.__doc__ or '').partition(chr(10))[0]}")
        for what, value, note in module.rows():
            print(f"  {what:<36} {value:>12}  {note}", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
