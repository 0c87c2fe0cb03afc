"""Draws the packages of toolspeak and their imports: the picture and the table of docs/explanation/architecture.md.

`python scripts/architecture.py` writes both, `--check` fails where they are not up to date. The layers are those of the
import contract in pyproject.toml, the arrows are the imports that grimp finds. An arrow is left out where a longer way
leads there too, so that the picture stays readable; the table has every import.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Mapping
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "toolspeak"
PAGE = ROOT / "docs" / "explanation" / "architecture.md"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"
MARK = "<!-- made by: python scripts/architecture.py -->\n"

WIDTH, ROW, BOX, HEIGHT = 960, 76, 124, 34
PURE, IMPURE = "#d9ead3", "#dbe7f6"

Imports = Mapping[str, set[str]]


def contracts() -> tuple[list[list[str]], set[str]]:
    """The layers, top first, and the names of the pure packages and modules."""
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in linter if each["type"] == "layers")
    rows = [[name.strip(" ()") for name in layer.replace("|", ":").split(":")] for layer in layers]
    pure = next(each["source_modules"] for each in linter if each["type"] == "forbidden")
    here = [[name for name in row if file_of(name).exists() and name != "__main__"] for row in rows]
    return [row for row in here if row], {name.split(".")[1] for name in pure}


def file_of(name: str) -> Path:
    """The file of a module, or the `__init__.py` of a package."""
    return PACKAGE / name / "__init__.py" if (PACKAGE / name).is_dir() else PACKAGE / f"{name}.py"


def imports(names: set[str]) -> dict[str, set[str]]:
    """For each package or module the others that it imports."""
    graph = grimp.build_graph("toolspeak", exclude_type_checking_imports=True, cache_dir=None)
    result: dict[str, set[str]] = {name: set() for name in names}
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            source, target = (each.split(".")[1] if "." in each else "" for each in (module, other))
            if source in names and target in names and source != target:
                result[source].add(target)
    return result


def reduced(graph: Imports) -> dict[str, set[str]]:
    """The imports without those that a longer way makes too. Of packages that import each other, one stands for all."""
    below = {name: reached(graph, name) for name in graph}
    together = {name: {name} | {other for other in below[name] if name in below[other]} for name in graph}

    def needed(name: str, other: str) -> bool:
        if other in together[name]:
            return True
        aside = graph[name] - together[other] - together[name]
        return other == min(graph[name] & together[other]) and not any(other in below[each] for each in aside)

    return {name: {other for other in others if needed(name, other)} for name, others in graph.items()}


def reached(graph: Imports, name: str) -> set[str]:
    """Everything that a package imports, directly or not."""
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        new = graph[waiting.pop()] - seen
        seen |= new
        waiting += new
    return seen


def picture(rows: list[list[str]], pure: set[str], graph: Imports) -> str:
    """The picture as SVG: a row for each layer, a box for each package, an arrow for each import."""
    places = {
        name: (WIDTH * (2 * column + 1) // (2 * len(row)), 24 + ROW * line)
        for line, row in enumerate(rows)
        for column, name in enumerate(row)
    }
    arrows = [arrow(places[name], places[other]) for name in places for other in sorted(reduced(graph)[name])]
    boxes = [box(name, *place, PURE if name in pure else IMPURE) for name, place in places.items()]
    height = 24 + ROW * (len(rows) - 1) + HEIGHT + 24
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="14">\n'
        "<title>The packages of toolspeak and their imports</title>\n"
        '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" fill="#888"/></marker></defs>\n'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff" rx="6"/>\n'
        '<g fill="none" stroke="#888" stroke-opacity="0.7" marker-end="url(#end)">\n'
    )
    return head + "\n".join(arrows) + "\n</g>\n" + "\n".join(boxes) + "\n</svg>\n"


def arrow(start: tuple[int, int], end: tuple[int, int]) -> str:
    """A curve from below one box to above another; below both in one row; around the boxes between where it is long."""
    (x, y), (to_x, to_y) = start, end
    below, side = y + HEIGHT, 0
    if y == to_y:
        return (
            f'<path marker-end="url(#end)" d="M{x} {below}C{x} {below + 30} {to_x} {below + 30} {to_x} {below + 2}"/>'
        )
    if to_y - y > ROW and abs(to_x - x) < BOX:
        side = -BOX if x <= WIDTH // 2 else BOX
    bend = (to_y - below) // 2
    control = f"{x + side} {below + bend} {to_x + side} {to_y - bend}"
    return f'<path marker-end="url(#end)" d="M{x} {below}C{control} {to_x} {to_y - 2}"/>'


def box(name: str, x: int, y: int, color: str) -> str:
    frame = f'<rect x="{x - BOX // 2}" y="{y}" width="{BOX}" height="{HEIGHT}" rx="5" fill="{color}" stroke="#666"/>'
    label = f'<text x="{x}" y="{y + 22}" text-anchor="middle" fill="#222">{escape(name)}</text>'
    return frame + label


def table(rows: list[list[str]], graph: Imports) -> str:
    """Each package with the first line of its docstring, and what it imports."""
    lines = ["| package | what it holds | imports |", "| --- | --- | --- |"]
    for name in (name for row in rows for name in row):
        path = file_of(name)
        doc = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
        shown = f"{name}/" if path.name == "__init__.py" else f"{name}.py"
        others = ", ".join(f"`{other}`" for row in rows for other in row if other in graph[name])
        lines.append(f"| `{shown}` | {doc.replace('|', '&#124;')} | {others} |")
    return "\n".join(lines) + "\n"


def main(*, check: bool) -> None:
    rows, pure = contracts()
    graph = imports({name for row in rows for name in row})
    before, mark, _ = PAGE.read_text("utf-8").partition(MARK)
    new = {PICTURE: picture(rows, pure, graph), PAGE: f"{before}{mark}\n{table(rows, graph)}"}
    for path, text in new.items():
        if not check:
            path.write_text(text, "utf-8")
        elif not path.exists() or path.read_text("utf-8") != text:
            sys.exit(f"{path.relative_to(ROOT)} is not up to date")


if __name__ == "__main__":
    main(check="--check" in sys.argv[1:])
