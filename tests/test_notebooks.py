"""Every notebook in `examples/` is run, and shows what stands in its file: `python tests/test_notebooks.py` writes that.

A kernel of its own runs each, on the embedded model.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
EXECUTE = """
import sys
import nbclient, nbformat
book = nbformat.read(sys.argv[1], 4)
nbclient.NotebookClient(book, timeout=800, kernel_name="python3").execute()
for cell in book.cells:
    cell.metadata = {}
book.metadata = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
nbformat.write(book, sys.argv[2])
"""


def executed(notebook: Path, target: Path) -> dict[str, Any]:
    """The notebook after a run, which is written to `target`."""
    env = {**os.environ, "PYDEVD_DISABLE_FILE_VALIDATION": "1", "IPYTHONDIR": str(target.parent / "ipython")}
    done = subprocess.run(
        [sys.executable, "-c", EXECUTE, str(notebook), str(target)],
        env=env, cwd=target.parent, capture_output=True, text=True, timeout=880,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(target.read_text("utf-8"))


def shown(book: dict[str, Any]) -> list[list[str]]:
    """What each cell of code shows: what it printed, and its value as text."""
    return [
        ["".join(output.get("text") or output["data"]["text/plain"]) for output in cell["outputs"]]
        for cell in book["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.costly
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_shows_what_stands_in_its_file(notebook: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    book = executed(notebook, tmp_path / notebook.name)
    stored = shown(json.loads(notebook.read_text("utf-8")))
    assert shown(book) == stored
    assert sum(map(len, stored)) > 3
    pages = [output["data"] for cell in book["cells"] for output in cell.get("outputs", ()) if "data" in output]
    assert any("<table" in "".join(page.get("text/html", "")) for page in pages)  # replies are tables there


if __name__ == "__main__":
    for path in NOTEBOOKS:
        with tempfile.TemporaryDirectory() as folder:
            executed(path, Path(folder, path.name))
            shutil.copy(Path(folder, path.name), path)
