"""The page on adding a dialect is followed literally: its files are written into a copy of the project, its commands run there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from test_docs import ROOT, blocks, commands, looks_like, run_python

PAGE = ROOT / "docs" / "how-to" / "add-a-dialect.md"
IGNORED = shutil.ignore_patterns("__pycache__")
SHIM = "import sys; sys.argv[0] = 'toolspeak'; from toolspeak.cli import main; sys.exit(main())"


def project(folder: Path) -> None:
    """What of this project the page works with."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=IGNORED)
    shutil.copytree(ROOT / "tests" / "dialects", folder / "tests" / "dialects", ignore=IGNORED)
    shutil.copytree(ROOT / "tests" / "loopback_only", folder / "tests" / "loopback_only", ignore=IGNORED)
    for name in ("conftest.py", "properties.py"):
        shutil.copy(ROOT / "tests" / name, folder / "tests")
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "bin").mkdir()
    for name, rest in {"toolspeak": f'-c "{SHIM}" "$@"', "python": '"$@"'}.items():
        (folder / "bin" / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {rest}\n')
        (folder / "bin" / name).chmod(0o755)


@pytest.mark.costly
def test_the_page_is_followed_step_by_step(tmp_path: Path) -> None:
    project(tmp_path)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(tmp_path / "src"), "NO_COLOR": "1"}
    ran = 0
    for block in blocks(PAGE):
        if block.title:
            (tmp_path / block.title).write_text(block.body, "utf-8")
        for command, expected in commands(block.body) if block.language == "console" else ():
            done = subprocess.run(
                ["bash", "-o", "pipefail", "-c", command],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                check=False,
            )
            said = re.sub(r"(?m)^note: .*\n", "", done.stdout)
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
            assert looks_like(expected, said), f"$ {command}\n{done.stdout}{done.stderr}"
            ran += 1
    assert ran == 8


def test_what_it_says_of_programs_runs() -> None:
    told = [b for b in blocks(PAGE) if not b.title and b.language in ("python", "text")]
    assert [b.language for b in told] == ["python", "text"] * 2
    for program, output in zip(told[::2], told[1::2], strict=True):
        assert looks_like(output.body, run_python(PAGE, program, {"__name__": "__main__"}))
