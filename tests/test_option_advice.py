"""What errors, notes and help advise exists where it is read: options of the command line, and arguments in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from toolspeak.cli.command_group import root

SOURCE = Path(__file__).resolve().parents[1] / "src" / "toolspeak"
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
ARGUMENT = re.compile(r"(?<![\w.?&/-])([a-z_]{2,})=(?=…|\[|\{|`|\"|$|\)|,)")
COMMAND = re.compile(r"toolspeak ([a-z]+)(?: ([a-z]+))?")
OTHERS = {
    **dict.fromkeys(("--jinja", "--chat-template-file"), "llama.cpp"),
    **dict.fromkeys(("--enable-auto-tool-choice", "--tool-call-parser"), "vLLM"),
    **dict.fromkeys(("--env-file", "--model-metadata-file", "--weak-model", "--editor-model"), "aider"),
    **dict.fromkeys(("--no-show-model-warnings", "--no-check-update"), "aider"),
    **dict.fromkeys(("--force-reinstall", "--no-deps", "--disable-pip-version-check", "--dest", "--target"), "pip"),
    "--python": "uv",
    "--settings": "Claude Code",
    "--head": "ray",
    **dict.fromkeys(("--unset", "--chdir", "--check-hash-based-pycs"), "env and python"),
    "--oneline": "git",
}
"""Options of other programs, which toolspeak starts or gives advice for."""
ATTRIBUTES = {"class", "lang", "charset", "boundary", "width", "height", "style", "role"}
"""Words before an equals sign in HTML and in headers."""


@cache
def options(*path: str) -> frozenset[str]:
    """The options of a command and of all commands in it; of the whole command line without a path."""
    command: click.Command = root
    for name in path:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), name)
        if found is None:
            break
        command = found
    return frozenset(_options(command)) | {"--help", "--version"}


def _options(command: click.Command) -> Iterator[str]:
    for parameter in command.params:
        yield from (*parameter.opts, *parameter.secondary_opts)
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            if inner := command.get_command(click.Context(command), name):
                yield from _options(inner)


def command_before(text: str) -> tuple[str, ...]:
    """The last command that a text names, such as `toolspeak policy check`; () if it names none."""
    named = COMMAND.findall(text)
    if not named:
        return ()
    first, second = named[-1]
    command = root.get_command(click.Context(root), first)
    if command is None:
        return ()
    inner = isinstance(command, click.Group) and second in command.list_commands(click.Context(command))
    return (first, second) if inner else (first,)


@cache
def texts(path: Path, *, docstrings: bool = False) -> tuple[tuple[int, str], ...]:
    """The strings of a file with their lines; a placeholder is `…`."""
    tree = ast.parse(path.read_text("utf-8"))
    within: set[ast.AST] = set()
    rows: list[tuple[int, str]] = []
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and not docstrings:
            within |= {one.value for one in body if isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)}
        if isinstance(node, ast.JoinedStr):
            parts = [one.value if isinstance(one, ast.Constant) else "…" for one in node.values]
            within |= set(node.values)
            rows.append((node.lineno, "".join(map(str, parts))))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in within:
            rows.append((node.lineno, node.value))
    return tuple(rows)


FILES = sorted(SOURCE.rglob("*.py"))
COMMANDS = sorted((SOURCE / "cli" / "commands").glob("[a-z]*.py"))


def test_every_option_that_is_named_exists() -> None:
    for path in FILES:
        for line, text in texts(path):
            wrong = {flag for flag in FLAG.findall(text) if flag not in options() | OTHERS.keys()}
            assert not wrong, (path.relative_to(SOURCE), line, text)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_a_command_names_its_own_options(path: Path) -> None:
    """In its errors and its help, unless another command stands before the option."""
    for line, text in texts(path, docstrings=True):
        for match in FLAG.finditer(text):
            known = options(*(command_before(text[: match.start()]) or (path.stem.replace("_", "-"),)))
            if match[0] != text:  # an option itself, or an argument of another process
                assert match[0] in known | OTHERS.keys(), (line, match[0], text)


def test_an_option_that_the_library_names_has_its_argument_beside_it() -> None:
    """A library's error is read in Python too: it names the argument beside the option, or the command of the option."""
    rooms = [path for path in FILES if path.relative_to(SOURCE).parts[0] not in ("cli", "gateway")]
    for path in rooms:
        for line, text in texts(path):
            flags = [flag for flag in FLAG.finditer(text) if flag[0] not in OTHERS]
            free = [flag[0] for flag in flags if not command_before(text[: flag.start()])]
            said = ARGUMENT.search(text) or re.search(r"in Python|`toolspeak|--http HOST", text)
            assert said or not free, (path.relative_to(SOURCE), line, text)


def test_what_is_advised_about_a_model_is_no_argument_of_python_alone() -> None:
    """Each door shows the errors of models: they name the option, or say that the argument is one in Python."""
    for path in FILES:
        if path.relative_to(SOURCE).parts[0] == "models":
            for line, text in texts(path):
                named = FLAG.search(text) or "in python" in text.lower()
                assert named or not ARGUMENT.search(text), (path.name, line, text)


def test_no_text_names_a_file_of_the_documentation() -> None:
    """Whoever installed the package has no `docs/`: a page is named by its title."""
    for path in FILES:
        for line, text in texts(path):
            page = re.search(r"docs/[\w/-]+\.md", text)
            assert not page or path.name == "reference.py", (
                path.relative_to(SOURCE),
                line,
                text,
            )  # it writes that page


def arguments() -> set[str]:
    """The names of all parameters and fields in the source."""
    names: set[str] = set()
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names |= {one.arg for one in (*node.args.args, *node.args.kwonlyargs)}
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                names.add(node.target.id)
    return names


def test_every_argument_that_is_named_exists() -> None:
    known = arguments() | ATTRIBUTES
    for path in FILES:
        if path.relative_to(SOURCE).parts[0] in ("dialects", "wire"):
            continue  # they hold the formats of calls
        for line, text in texts(path):
            wrong = set(ARGUMENT.findall(text)) - known
            assert not wrong, (path.relative_to(SOURCE), line, wrong, text)
