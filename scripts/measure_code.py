"""Measures source trees and prints a table: `python scripts/measure_code.py [NAME=PATH ...]`, or `make measure`.

Without arguments it measures this package, and beside it h11, starlette and magentic, which it fetches from the package
index into a temporary folder. `--rooms` measures each package inside toolspeak instead.

What the columns say:

- files, lines: Python files, and their lines that are not blank
- functions, p95: functions and methods, and the 95th percentile of their length in lines
- cc>10 %: functions whose cyclomatic complexity is over 10; radon's measure, which counts each `and` and `or`
- and/or: these operators in 100 lines of code, without docstrings and comments
- dup %: windows of six lines (stripped, without blank lines) that occur more than once
- doc %: functions and classes with a docstring
- comment %: lines that hold a comment
"""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tempfile
import tokenize
import zipfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from radon.complexity import cc_visit_ast
from radon.visitors import Function

PACKAGE = Path(__file__).resolve().parents[1] / "src" / "toolspeak"
PEERS = ("h11==0.16.0", "starlette==1.10.0", "magentic==0.41.1")
WINDOW = 6
COLUMNS = ("", "files", "lines", "functions", "p95", "cc>10 %", "and/or", "dup %", "doc %", "comment %")


@dataclass
class Measure:
    """What was counted in a tree."""

    files: int = 0
    lines: int = 0
    code: int = 0
    comments: int = 0
    operators: int = 0
    documented: int = 0
    definitions: int = 0
    lengths: list[int] = field(default_factory=list)
    complexities: list[int] = field(default_factory=list)
    windows: Counter[tuple[str, ...]] = field(default_factory=Counter)

    def add(self, source: str) -> None:
        """Counts one file."""
        tree = ast.parse(source)
        lines = [line.strip() for line in source.splitlines() if line.strip()]
        commented = list(comments(source))
        self.files += 1
        self.lines += len(lines)
        self.comments += len(commented)
        self.code += len(lines) - sum(commented) - docstring_lines(tree)
        self.windows.update(zip(*(lines[start:] for start in range(WINDOW)), strict=False))
        # Methods are blocks of their own, beside their class.
        self.complexities += [block.complexity for block in cc_visit_ast(tree) if isinstance(block, Function)]
        for node in ast.walk(tree):
            if isinstance(node, ast.BoolOp):
                self.operators += len(node.values) - 1
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                self.lengths.append((node.end_lineno or node.lineno) - node.lineno + 1)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.definitions += 1
                self.documented += ast.get_docstring(node) is not None

    def row(self, name: str) -> list[str]:
        """The cells of the table."""
        lengths = sorted(self.lengths) or [0]
        repeated = sum(count for count in self.windows.values() if count > 1)
        return [
            name,
            str(self.files),
            str(self.lines),
            str(len(self.lengths)),
            str(lengths[int(0.95 * (len(lengths) - 1))]),
            share(sum(each > 10 for each in self.complexities), len(self.complexities)),
            share(self.operators, self.code),
            share(repeated, self.windows.total()),
            share(self.documented, self.definitions),
            share(self.comments, self.lines),
        ]


def share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f}"


def comments(source: str) -> Iterator[bool]:
    """For each comment whether it has its line to itself."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield not token.line[: token.start[1]].strip()


def docstring_lines(tree: ast.Module) -> int:
    """The lines, not blank, of strings that stand alone."""
    alone = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    texts = [node for node in alone if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return sum(sum(bool(line.strip()) for line in str(node.value).splitlines()) for node in texts)


def measure(tree: Path) -> Measure:
    """The figures of all Python files below a folder, tests aside."""
    result = Measure()
    for path in sorted(tree.rglob("*.py")):
        if not {"tests", "vendor", "_vendor"} & set(path.relative_to(tree).parts):
            result.add(path.read_text("utf-8"))
    return result


def fetch(requirement: str, folder: Path) -> Path:
    """The package of a wheel, unpacked."""
    name = requirement.partition("==")[0]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([*command, "--only-binary", ":all:", "--dest", str(folder), requirement], check=True)
    with zipfile.ZipFile(next(folder.glob(f"{name}-*.whl"))) as wheel:
        wheel.extractall(folder)
    return folder / name


def main(arguments: list[str]) -> None:
    if arguments == ["--rooms"]:
        rooms = sorted(path.parent for path in PACKAGE.glob("*/__init__.py"))
        rows = [measure(room).row(room.name) for room in rooms]
    elif arguments:
        named = [each.partition("=") for each in arguments]
        rows = [measure(Path(path or name)).row(name) for name, _, path in named]
    else:
        with tempfile.TemporaryDirectory() as folder:
            peers = {name.partition("==")[0]: fetch(name, Path(folder)) for name in PEERS}
            rows = [measure(tree).row(name) for name, tree in {**peers, "toolspeak": PACKAGE}.items()]
    widths = [max(map(len, column)) for column in zip(COLUMNS, *rows, strict=True)]
    for row in (list(COLUMNS), *rows):
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        print("  ".join(cells))


if __name__ == "__main__":
    main(sys.argv[1:])
