"""Tests with the lowest versions of the dependencies that pyproject.toml allows; all else is that of this environment.

python tests/lowest_versions.py [ARGUMENTS OF PYTEST]
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests" / "clients")]

from environments import Unavailable, python  # noqa: E402

EXTRAS = ("server", "openapi", "jinja", "grammar")
"""The optional dependencies that these tests use."""
TESTS = (
    "tests/models/test_http.py",
    "tests/models/test_hostile_servers.py",
    "tests/schema/test_infer.py",
    "tests/schema/test_python_values.py",
    "tests/schema/test_check.py",
    "tests/schema/test_coerce.py",
    "tests/gateway/test_config.py",
    "tests/gateway/test_chat_completions.py",
    "tests/gateway/test_connections.py",
    "tests/gateway/test_openapi.py",
    "tests/cli/test_call_and_tools.py",
    "tests/cli/test_other_commands.py",
)


def pins() -> tuple[str, ...]:
    """Each dependency with its lowest version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = [line for extra in EXTRAS for line in project["optional-dependencies"][extra]]
    return tuple(line.replace(">=", "==", 1) for line in (*project["dependencies"], *extras))


def main() -> int:
    try:
        home = python("lowest", pins()).parents[1]
    except Unavailable as error:
        print(f"lowest versions: {error}")
        return 1
    lowest = sysconfig.get_path("purelib", "venv", {"base": str(home)})
    path = os.pathsep.join((lowest, str(ROOT / "src")))
    arguments = [sys.executable, "-m", "pytest", *sys.argv[1:], *TESTS]
    return subprocess.run(arguments, cwd=ROOT, env={**os.environ, "PYTHONPATH": path}).returncode


if __name__ == "__main__":
    sys.exit(main())
