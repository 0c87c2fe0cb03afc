"""The documentation runs: README.md and every page under docs/, each in a folder of its own.

- ```python blocks run in order, one namespace a page. A ```text block right after one is what it prints.
- ```python title="name.py" is written to that file instead, and so are ```toml and ```json with a title.
- ```console blocks run their `$ ` lines; where output follows, it is compared. `make demo` with output
  stands for examples/demo.py.
- `toolspeak serve` goes on until the page ends, at a port of its own: 8080 stands for it in the whole page.
- `…` in expected output stands for anything. `<!-- skip: reason -->` above a block leaves it out.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import socket
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

import toolspeak
from preloaded import Started
from preloaded_command import toolspeak_command
from test_doc_tables import GENERATORS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "README.zh-CN.md", *sorted((ROOT / "docs").rglob("*.md"))]
RUN = [page for page in PAGES if page.name not in ("add-a-dialect.md", "README.zh-CN.md")]
"""Those that run here. test_add_a_dialect.py follows that page in a copy, since it adds files to the project. What the
Chinese README shows is in the English one."""
COSTLY = {"README.md", "async.md", "command-line.md", "evaluate.md", "extract.md", "route.md", "serve.md"}

FENCE = re.compile(
    r"(?:<!-- skip: (?P<skip>.+?) -->\s*\n)?^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ ]*$", re.MULTILINE | re.DOTALL
)
TITLE = re.compile(r'title="([^"]+)"')
NOT_RUN = {"pip", "pipx", "uv", "uvx", "git", "cd", "make", "source", "export", "ollama", "python3"}
"""Commands that set a machine up: showing them is enough."""

SERVE = "toolspeak serve"


@dataclass
class Block:
    language: str
    title: str | None
    body: str
    line: int
    follows: bool  # nothing but blank lines between it and the block before


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text("utf-8")
    end = 0
    for match in FENCE.finditer(text):
        info = match["info"].strip()
        follows = not text[end : match.start()].strip() and end > 0
        if not match["skip"] and info:
            title = TITLE.search(info)
            line = text.count("\n", 0, match.start("body")) + 1
            yield Block(info.split()[0], title[1] if title else None, match["body"], line, follows)
        end = match.end()


def looks_like(expected: str, printed: str) -> bool:
    pattern = ".*".join(re.escape(part) for part in plain(expected).split("…"))
    return re.fullmatch(pattern, plain(printed), re.DOTALL) is not None


def plain(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def run_python(page: Path, block: Block, namespace: dict[str, Any]) -> str:
    # The blank lines make a traceback point into the page.
    code = compile("\n" * (block.line - 1) + block.body, str(page), "exec", dont_inherit=True)
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(code, namespace)
    return printed.getvalue()


def commands(body: str) -> Iterator[tuple[str, str]]:
    """Each command of a console block with the output printed below it."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        last = next((i for i, _ in enumerate(lines) if ends("\n".join(lines[: i + 1]))), len(lines) - 1)
        yield "\n".join(lines[: last + 1]), "\n".join(lines[last + 1 :])


def ends(command: str) -> bool:
    """Whether a command is whole: no line goes on, no quotation is open."""
    try:
        shlex.split(command)
    except ValueError:
        return False
    return not command.endswith("\\")


PROGRESS = re.compile(r"^\d\d:\d\d:\d\d .*\n", re.MULTILINE)
"""Matches a line of progress, which a command writes only if it takes long."""


def run_command(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    shims = folder / ".bin"
    if not shims.exists():
        shims.mkdir()
        for name, program in {"toolspeak": toolspeak_command(), "python": [sys.executable]}.items():
            (shims / name).write_text(f'#!/bin/sh\nexec {shlex.join(program)} "$@"\n')
            (shims / name).chmod(0o755)
    env = {**os.environ, "PATH": f"{shims}{os.pathsep}{os.environ['PATH']}", "NO_COLOR": "1", "COLUMNS": "100"}
    env |= {name: str(folder / ".home") for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=800,
    )


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


@contextlib.contextmanager
def serving(port: str, expected: str, folder: Path) -> Iterator[None]:
    """A gateway that has said what it is expected to."""
    with Started(["serve", "--port", port], cwd=folder, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        try:
            said = "".join(server.stderr.readline() for _ in expected.strip().splitlines())
            assert looks_like(expected, said), f"$ {SERVE}\n{said}"
            yield
        finally:
            server.terminate()
            server.stderr.read()


def check_console(page: Path, block: Block, folder: Path) -> None:
    for command, expected in commands(block.body):
        if command == SERVE:
            continue
        if command == "make demo" and expected.strip():
            command = f"python '{ROOT}/examples/demo.py'"
        if command.split()[0] in NOT_RUN:
            continue
        done = run_command(command, folder)
        done.stdout = PROGRESS.sub("", done.stdout)
        where = f"{page.name}:{block.line}: $ {command}\n{done.stdout}"
        if expected.strip():
            assert looks_like(expected, done.stdout), where
        else:
            assert done.returncode == 0, where


def check_page(page: Path, folder: Path) -> None:
    shown = list(blocks(page))
    served = [told for block in shown for command, told in commands(block.body) if command == SERVE]
    with contextlib.ExitStack() as stack:
        if served:
            port = free_port()
            shown = [replace(block, body=block.body.replace("8080", port)) for block in shown]
            stack.enter_context(serving(port, served[0].replace("8080", port), folder))
        check_blocks(page, shown, folder)


def check_blocks(page: Path, shown: list[Block], folder: Path) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    for block in shown:
        if block.language in ("python", "toml", "json") and block.title:
            (folder / block.title).write_text(block.body, "utf-8")
        elif block.language == "python":
            printed = run_python(page, block, namespace)
            continue
        elif block.language == "text" and block.follows and printed is not None:
            assert looks_like(block.body, printed), f"{page.name}:{block.line}: it printed\n{printed}"
        elif block.language == "console":
            check_console(page, block, folder)
        printed = None


def row(page: Path) -> Any:
    """A page as a parameter of a test."""
    marks = [pytest.mark.costly] if page.name in COSTLY else []
    return pytest.param(page, id=page.relative_to(ROOT).as_posix(), marks=marks)


@pytest.mark.parametrize("page", [row(page) for page in RUN])
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    check_page(page, tmp_path)
    for name, module in list(sys.modules.items()):  # another page has a `tools.py` of its own
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def test_what_the_chinese_readme_runs_is_in_the_english_one() -> None:
    def run(page: Path) -> set[str]:
        shown = [block for block in blocks(page) if block.language in ("python", "console", "sh")]
        programs = {block.body for block in shown if block.language == "python"}
        return programs | {
            command for block in shown if block.language != "python" for command, _ in commands(block.body)
        }

    assert run(ROOT / "README.zh-CN.md")
    assert not run(ROOT / "README.zh-CN.md") - run(ROOT / "README.md")


def test_every_page_is_in_the_navigation() -> None:
    def names(entry: Any) -> Iterator[str]:
        if isinstance(entry, str):
            yield entry
        else:
            for inner in entry.values() if isinstance(entry, dict) else entry:
                yield from names(inner)

    nav = set(names(tomllib.loads((ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]))
    assert nav == {page.relative_to(ROOT / "docs").as_posix() for page in PAGES[2:]}


@pytest.mark.parametrize("page", GENERATORS)
def test_generated_page_is_current(page: str) -> None:
    done = subprocess.run([sys.executable, GENERATORS[page], "--check"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, f"run: python tests/test_doc_tables.py\n{done.stderr}"


def test_the_index_links_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / target).resolve() for target, _ in links(index)}
    assert set(PAGES[2:]) - {index} <= linked


def links(page: Path) -> Iterator[tuple[str, str]]:
    """The links of a page to other files: path and anchor."""
    pattern = r"\]\((?!https?:|mailto:)([^)#\s]*)#?([^)\s]*)\)"
    yield from re.findall(pattern, FENCE.sub("", page.read_text("utf-8")))


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, spelled as source hosts and the built site do."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_between_pages_lead_somewhere() -> None:
    dead = [
        f"{page.relative_to(ROOT)}: {target}#{anchor}"
        for page in PAGES
        for target, anchor in links(page)
        if not (there := page.parent / target if target else page).exists()
        or (anchor and there.suffix == ".md" and anchor not in anchors(there))
    ]
    assert dead == []


def test_every_promise_names_a_test_and_every_test_that_is_named_exists() -> None:
    written = {path.name: path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")}
    defined = set(re.findall(r"^ *(?:async )?(?:def|class) (\w+)", "\n".join(written.values()), re.MULTILINE))
    text = (ROOT / "docs/explanation/security.md").read_text("utf-8")
    for place, file, name in re.findall(r"`(?:tests/)?((?:\w+/)*)(test_\w+\.py)?(?:::)?((?:test_|Test)\w+)?`", text):
        assert not file or (ROOT / "tests" / place / file).exists() or (not place and file in written), file
        assert not name or name in defined, name
    promises = text.split("## What is not promised")[0].split("\n- **")[1:]
    assert len(promises) > 60
    assert all("test_" in promise for promise in promises)


def test_the_version_is_the_same_everywhere() -> None:
    version = re.escape(toolspeak.__version__)
    for file, pattern in {
        "CHANGELOG.md": rf"^## \[{version}\] - \d{{4}}-",
        "CITATION.cff": rf"^version: {version}$",
    }.items():
        assert re.search(pattern, (ROOT / file).read_text("utf-8"), re.MULTILINE), f"{file} has no {version}"


PAGE = """\
```python title="greet.py"
def greet(name): return f"hello {name}"
```

```python
from greet import greet
print(greet("you"))
```

```text
hello …
```

<!-- skip: it fails on purpose -->
```python
1 / 0
```

```console
$ pip install nothing
$ python -c 'import greet; print(greet.greet("me"))' \\
    | tr a-z A-Z
HELLO ME
```
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("hello …", "goodbye …"), ("HELLO ME", "HELLO"), ("<!-- skip: it fails on purpose -->", "")],
)
def test_the_runner_itself(before: str, after: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE.replace(before, after) if before else PAGE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "greet", raising=False)
    if before:
        with pytest.raises((AssertionError, ZeroDivisionError)):
            check_page(page, tmp_path)
    else:
        check_page(page, tmp_path)
