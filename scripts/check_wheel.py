"""Installs a wheel into a new environment and runs it there, without the checkout: `python scripts/check_wheel.py DIST`.

DIST is the folder that `python -m build` wrote. The environment gets what a user gets, `toolspeak[local]` with its
dependencies; the embedded model comes from the user's cache, or is fetched. Exits 1 with the output of the step that
failed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DEMO = Path(__file__).resolve().parents[1] / "examples" / "demo.py"

CHECKS: list[tuple[list[str], str]] = [
    (["toolspeak", "--version"], "0."),
    (["toolspeak", "--help"], "Usage: toolspeak"),
    (["toolspeak", "dialects"], '"hermes"'),
    (["python", "-m", "toolspeak", "ask", "How much is 383 plus 135721?", "--tools", "demo.py:calculator"], "136104"),
    (["python", "-c", "from toolspeak.ui.assets import INDEX, asset; print(asset(INDEX)[0].decode())"], "main.js"),
    (["python", "demo.py"], 'calls get_current_weather {"location": "Xiamen"}'),
]
"""Commands, and what they must print. The demo is copied beside them; nothing else of the checkout is there."""


def run(command: list[str], folder: Path, env: dict[str, str]) -> str:
    """What a command printed. SystemExit with its output where it fails."""
    done = subprocess.run(
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"$ {' '.join(command)}\n{done.stdout}exit {done.returncode}")
    return done.stdout


def check(wheel: Path, folder: Path) -> None:
    """Runs every check in an environment made in `folder`."""
    outside = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    run([sys.executable, "-m", "venv", "env"], folder, outside)
    scripts = folder / "env" / "bin"
    env = {**outside, "PATH": f"{scripts}{os.pathsep}{outside['PATH']}", "NO_COLOR": "1"}
    run([str(scripts / "python"), "-m", "pip", "install", "--quiet", f"{wheel}[local]"], folder, env)
    shutil.copy(DEMO, folder)
    for command, expected in CHECKS:
        printed = run([str(scripts / command[0]), *command[1:]], folder, env)
        if expected not in printed:
            sys.exit(f"$ {' '.join(command)}\n{printed}expected {expected!r} in it")
        print("ok", " ".join(command))


def main(dist: str) -> None:
    wheels = sorted(Path(dist).resolve().glob("toolspeak-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"expected one wheel in {dist}, found {len(wheels)}: run `make wheel`")
    with tempfile.TemporaryDirectory() as folder:
        check(wheels[0], Path(folder))
    print(f"{wheels[0].name} installs and runs without the checkout")


if __name__ == "__main__":
    main(*sys.argv[1:])
