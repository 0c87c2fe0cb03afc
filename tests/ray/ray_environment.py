"""The environment with Ray, which is too large for the one that everything else is tested in. Run, it is made.

python tests/ray/ray_environment.py
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests" / "clients"))

from environments import Unavailable, python  # noqa: E402


def pins() -> tuple[str, ...]:
    """Ray and what toolspeak needs, as they are pinned."""
    lines = (ROOT / "requirements" / "ray.txt").read_text("utf-8").splitlines()
    return tuple(line.strip() for line in lines if line[:1].isalpha())


def interpreter(make: bool = False) -> Path:
    """The Python of the environment. Raises Unavailable where it is not there, and is not to be made or cannot be."""
    return python("ray", pins(), make)


if __name__ == "__main__":
    try:
        program = interpreter(make=True)
        # Ray starts a dozen processes: each would compile all that it imports
        subprocess.run([program, "-m", "compileall", "-q", "-j0", program.parents[1] / "lib"], check=False)
        print(f"Ray: {program}")
    except Unavailable as error:
        print(f"Ray: {error}")
