"""The rules of the house that a program can check: what is loaded, how long things are, what is named where.

Caps are on tails: most files and functions are far smaller. An allowlist here only shrinks: an entry that
is no longer needed fails its test.
"""

from __future__ import annotations

import ast
import asyncio
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import metadata
from pathlib import Path

import grimp
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from radon.complexity import cc_visit_ast
from radon.visitors import Class, Function

import toolspeak

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path(toolspeak.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))

MAX_FILE = 400
MAX_FUNCTION = 60
LONG_FILES: dict[str, int] = {}  # path in the package → its own cap
LONG_FUNCTIONS: dict[str, int] = {}  # path:function → its own cap

MAX_COMPLEXITY = 12
"""By radon's measure, which counts each `and` and `or`."""
MAX_BOOLEANS = 4
"""`and` and `or` in a hundred lines of code; files of fewer than 40 lines are not counted."""
NOT_A_NAME = frozenset(
    ["told", "said", "asked", "found", "made", "kept", "heard", "shown", "given", "taken", "held", "formed"]
)
"""Words that no module, definition, field, variable, parameter or import's alias bears: they say that something happened,
not what a thing is."""
PROTOCOL_METHODS = frozenset(dir(asyncio.Protocol))
"""Methods that the event loop calls: their names are not ours to choose."""
EXCEPTIONS: dict[str, dict[str, int]] = json.loads(Path(__file__).with_name("exceptions.json").read_text("utf-8"))
"""What breaks a cap today, and by how much. Entries go and figures fall; nothing is added and nothing rises.
`python tests/test_conventions.py` takes out what is no longer needed."""

MAY_LOAD = {"toolspeak", "toolspeak.types", "toolspeak.events", "toolspeak.errors"}
"""What of this package `import toolspeak` may load; of others it loads the standard library alone."""

CORE = (
    "types.py",
    "events.py",
    "errors.py",
    "wire/",
    "dialects/",
    "schema/",
    "api/",
    "plan/",
    "nlu/",
    "policy/",
    "stems.py",
    "tool_results.py",
)
CORE_LIBRARIES = {
    "pydantic",
    "pydantic_core",
    "jsonschema_rs",
    "minijinja",
    "docstring_parser",
    "typing_extensions",
    "jinja2",
    "llguidance",
}
IMPURE_CALLS = {"open", "print", "input", "exec", "eval"}
IMPURE_METHODS = {"now", "utcnow", "today", "uuid1", "uuid4", "read_text", "read_bytes", "write_text", "write_bytes"}

BROAD_EXCEPTS: dict[str, str] = {
    "batch/ask.py": "a bad row is a row with an error, whatever it is, and never the end of the job",
    "batch/runner.py": "what went wrong with a row, or in reading the input, is raised after what is under way is finished",
    "thread_bridge.py": "what was raised in the calling thread is raised again where it is waited for",
    "cli/command_group.py": "the end of the program: whatever went wrong is told in a line",
    "gateway/app.py": "the end of a request: whatever went wrong is told to the client in its own form",
    "gateway/http_exchange.py": "what watches over a request ends it, whatever went wrong",
    "gateway/storage/sqlite.py": "what work in the thread raised is raised where its result is awaited",
    "gateway/endpoints/health.py": "a model that cannot be loaded must not end the gateway, which may have others",
    "gateway/serve/supervisor.py": "the end of a process: nobody else tells what went wrong",
    "drive.py": "what a task in the background raised is raised again where it is waited for",
    "gateway/merge.py": "what one of several streams raised is raised again where they are joined",
    "ray/pipeline.py": "what ended the pipeline in its own thread is raised again by who started it",
    "running.py": "a tool is the user's code: whatever it raises becomes a result that the model reads",
    "sources/modules.py": "a tools file is the user's code: whatever it raises is told with its line",
    "sources/mcp/connection.py": "whatever ended a connection is told to everybody who waits for it",
    "sources/mcp/server_questions.py": "a function that answers questions is the user's code: whatever it raises is an error of the call",
    "search/minilm.py": "the tokenizers' library raises bare Exceptions",
    "tool_results.py": "a result's own code, such as a broken __str__, must not lose the run",
    "search/index_memory_cache.py": "what went wrong in the thread that makes an index is raised where it is waited for",
}

FAMILIES = re.compile(
    r"(?<![a-z])(qwen|llama(?![._-]?cpp)|gemma|mistral|mixtral|hermes|smollm|gpt-|claude|deepseek|kimi"
    r"|granite|functionary|firefunction|command-r|glm-|minimax|phi-\d|nemotron)",
    re.IGNORECASE,
)
NAMES_MODELS = ("dialects/", "models/", "cli/coding_agents.py")
"""Where models, and the agents of their makers, are named."""

HOMES = re.compile(r"(?<![\w.~-])/" + r"(home|Users|root)/\w")
REGISTRIES = re.compile("|".join([r"pypi" + r"\.org", r"python" + r"hosted\.org", r"npm" + r"js\.(org|com)"]))


def inside(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


@cache
def parsed() -> list[tuple[str, ast.Module]]:
    return [(inside(path), ast.parse(path.read_text("utf-8"), str(path))) for path in FILES]


def lengths() -> Iterator[tuple[str, int]]:
    for name, tree in parsed():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield f"{name}:{node.name}", (node.end_lineno or node.lineno) - node.lineno + 1


def isolated(code: str) -> str:
    """Runs code where nothing but the standard library and this package can be imported."""
    start = f"import sys; sys.path.insert(0, {str(PACKAGE.parent)!r}); "
    done = subprocess.run([sys.executable, "-I", "-S", "-c", start + code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def none(found: Iterable[str]) -> None:
    """Asserts that nothing was found, and shows all that was."""
    assert not (lines := list(found)), "\n" + "\n".join(lines)


def over(found: Iterable[tuple[str, int]], cap: int, allowed: dict[str, int]) -> list[str]:
    """What breaks the cap, and what is allowed to break it without need."""
    sizes: dict[str, int] = {}
    for name, size in found:
        sizes[name] = max(size, sizes.get(name, 0))
    broken = [
        f"{name}: {size}, at most {allowed.get(name, cap)}"
        for name, size in sizes.items()
        if size > allowed.get(name, cap)
    ]
    loose = [f"{name} needs no exception any more" for name in allowed if sizes.get(name, 0) <= cap]
    return broken + loose


def test_import_loads_the_standard_library_only() -> None:
    loaded = isolated("before = set(sys.modules); import toolspeak; print(*sorted(set(sys.modules) - before))").split()
    others = {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names}
    assert others <= MAY_LOAD


def test_public_names_are_there_without_any_library() -> None:
    isolated(
        "import toolspeak\n"
        "for name in getattr(toolspeak, '__all__', ()): getattr(toolspeak, name)\n"
        "assert set(getattr(toolspeak, '__all__', ())) <= set(dir(toolspeak))"
    )


def test_files_are_short() -> None:
    sizes = [(inside(path), len(path.read_text("utf-8").splitlines())) for path in FILES]
    none(over(sizes, MAX_FILE, LONG_FILES))


def test_functions_are_short() -> None:
    none(over(lengths(), MAX_FUNCTION, LONG_FUNCTIONS))


def complexities() -> Iterator[tuple[str, int]]:
    for name, tree in parsed():
        for block in cc_visit_ast(tree):
            functions = [block] if isinstance(block, Function) else block.methods if isinstance(block, Class) else []
            yield from ((f"{name}:{function.fullname}", function.complexity) for function in functions)


def booleans() -> Iterator[tuple[str, int]]:
    for (name, tree), path in zip(parsed(), FILES, strict=True):
        lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        count = sum(len(node.values) - 1 for node in ast.walk(tree) if isinstance(node, ast.BoolOp))
        if len(lines) >= 40:
            yield name, round(100 * count / len(lines))


def words_of(name: str) -> set[str]:
    return {word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def defined_in(body: Iterable[ast.stmt], within: str = "") -> Iterator[str]:
    """What a module or a class defines: functions, classes and their members, constants and fields."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield within + node.name
        if isinstance(node, ast.ClassDef):
            yield from defined_in(node.body, f"{within}{node.name}.")
        elif isinstance(node, ast.If | ast.Try):
            yield from defined_in(node.body, within)
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        yield from (within + target.id for target in targets if isinstance(target, ast.Name))


def aliases(tree: ast.Module) -> Iterator[str]:
    """The names that imports give to what they bring, wherever they stand."""
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom)]
    return (alias.asname for node in imports for alias in node.names if alias.asname)


def names_of_files() -> Iterator[tuple[str, int]]:
    """Modules, what they and their classes define, and aliases of imports, each with 1 where a word in it is none for
    a name."""
    for file, tree in parsed():
        for name in (Path(file).stem, *defined_in(tree.body), *aliases(tree)):
            last = name.rpartition(".")[2]
            yield f"{file}:{name}", int(last not in PROTOCOL_METHODS and bool(words_of(last) & NOT_A_NAME))


def local_names() -> Iterator[tuple[str, int]]:
    """Files, each with how many of its functions' variables and parameters, and of its attributes that are assigned,
    have such a word in their names."""
    for file, tree in parsed():
        yield file, sum(bool(words_of(name) & NOT_A_NAME) for name in stored_in(tree))


def stored_in(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(name, ast.Store()) | ast.Attribute(_, name, ast.Store()) | ast.arg(name):
                yield name
            case ast.MatchAs(_, str(name)) | ast.MatchStar(str(name)) | ast.ExceptHandler(_, str(name)):
                yield name


def class_names() -> Iterator[tuple[str, int]]:
    """Names of classes, each with how many meanings it has.

    A class means the same in the files of one name in sibling packages of one room, such as `api/*/reader.py`; and a
    class that extends one of its own name means what that one does.
    """
    places: dict[str, set[str]] = {}
    for file, tree in parsed():
        match file.split("/"):
            case [room, _, module]:
                place = f"{room}/*/{module}"
            case _:
                place = file
        for node in tree.body:
            if isinstance(node, ast.ClassDef) and node.name not in map(last_name, node.bases):
                places.setdefault(node.name, set()).add(place)
    yield from ((name, len(meanings)) for name, meanings in places.items())


def last_name(node: ast.expr) -> str:
    return ast.unparse(node).rpartition(".")[2]


RATCHETS = {
    "complexity": (complexities, MAX_COMPLEXITY),
    "booleans": (booleans, MAX_BOOLEANS),
    "names": (names_of_files, 0),
    "local names": (local_names, 0),
    "class names": (class_names, 1),
}


@pytest.mark.parametrize("what", RATCHETS)
def test_what_is_too_much_only_shrinks(what: str) -> None:
    measure, cap = RATCHETS[what]
    none(over(measure(), cap, EXCEPTIONS[what]))


def test_no_import_cycles() -> None:
    graph = grimp.build_graph("toolspeak", exclude_type_checking_imports=True, cache_dir=None)
    try:
        TopologicalSorter(
            {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
        ).prepare()
    except CycleError as error:
        pytest.fail("imports go round: " + " → ".join(error.args[1]))


def test_model_families_are_named_in_their_rooms_only() -> None:
    found = [
        f"{inside(path)}:{number}: {line.strip()}"
        for path in FILES
        if not inside(path).startswith(NAMES_MODELS)
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if FAMILIES.search(line)
    ]
    none(found)


def catches_everything(node: ast.AST) -> bool:
    if isinstance(node, ast.ExceptHandler):
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        reraises = any(isinstance(inner, ast.Raise) and inner.exc is None for inner in ast.walk(node))
    elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
        kinds, reraises = node.args, False
    else:
        return False
    return not reraises and any(kind is None or ast.unparse(kind) in {"Exception", "BaseException"} for kind in kinds)


def test_broad_excepts_stand_where_listed() -> None:
    found = {name for name, tree in parsed() for node in ast.walk(tree) if catches_everything(node)}
    none(f"{name}: catch what you expect, or list the file with its reason" for name in found - set(BROAD_EXCEPTS))


def test_what_is_public_says_what_it_gives() -> None:
    wrong: list[str] = []
    for name, tree in parsed():
        public = [
            node
            for node in tree.body
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if not node.name.startswith("_") and "overload" not in map(ast.unparse, node.decorator_list)
        ]
        for node in (tree, *public) if tree.body else ():
            first = (ast.get_docstring(node) or "").partition("\n")[0]
            if not 0 < len(first) <= 120:
                wrong.append(f"{name}:{getattr(node, 'name', 'module')}")
    none(wrong)


QUESTION = re.compile(r"(?:`[^`]+`: )?(?:what|how|whether|which|where|who|when|the way) ", re.IGNORECASE)


def test_a_modules_first_line_names_its_subject() -> None:
    """Not "What a server tells of itself", but "Reads what a server reports"."""
    none(name for name, tree in parsed() if QUESTION.match(ast.get_docstring(tree) or ""))


def impurities(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await | ast.AsyncFor | ast.AsyncWith):
            yield f"{node.lineno}: async"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in IMPURE_CALLS:
            yield f"{node.lineno}: {node.func.id}()"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in IMPURE_METHODS:
            yield f"{node.lineno}: .{node.func.attr}()"
        for library in imported(node) - CORE_LIBRARIES - sys.stdlib_module_names - {"toolspeak"}:
            yield f"imports {library}"


def imported(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level and node.module:
        return {node.module.partition(".")[0]}
    return set()


def test_the_core_is_pure() -> None:
    core = [(name, tree) for name, tree in parsed() if name.startswith(CORE)]
    none(f"{name}:{what}" for name, tree in core for what in impurities(tree))


def tracked() -> Iterator[tuple[str, str]]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, timeout=60)
    if listed.returncode:
        pytest.skip("not a git checkout")
    for name in filter(None, listed.stdout.split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (content := path.read_bytes())[:8000]:
            yield name, content.decode("utf-8", "replace")


@pytest.mark.parametrize(("what", "pattern"), [("a home directory", HOMES), ("a registry's host", REGISTRIES)])
def test_the_tree_names_no_place_of_its_makers(what: str, pattern: re.Pattern[str]) -> None:
    none(f"{name} names {what}" for name, text in tracked() if pattern.search(text))


def test_what_a_pinned_package_needs_is_pinned() -> None:
    """A pin that was added by hand, not by `make lock`, makes the installation of all fail."""
    lines = "".join((ROOT / "requirements" / name).read_text("utf-8") for name in ("run.txt", "dev.txt")).splitlines()
    pinned = {canonicalize_name(line.split("==")[0]) for line in lines if "==" in line and line[0].isalnum()}
    needed = {
        (one, canonicalize_name(need.name))
        for one in pinned & {canonicalize_name(found.name) for found in metadata.distributions()}
        for need in map(Requirement, metadata.requires(one) or ())
        if need.marker is None or need.marker.evaluate({"extra": ""})
    }
    assert {(one, need) for one, need in needed if need not in pinned} == set(), "run `make lock`"


def test_pins_fit_what_the_project_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    wanted = project["project"]["dependencies"] + project["project"]["optional-dependencies"]["local"]
    for group in project["dependency-groups"].values():
        wanted += group
    pins: dict[str, set[str]] = {}
    for path in (ROOT / "requirements").glob("*.txt"):
        for name, version in re.findall(r"^([\w.-]+)==(\S+)", path.read_text("utf-8"), re.MULTILINE):
            pins.setdefault(canonicalize_name(name), set()).add(version)
    for requirement in map(Requirement, wanted):
        found = pins.get(canonicalize_name(requirement.name), set())
        assert found, f"{requirement} is not pinned: run `make lock`"
        fits = any if requirement.marker else all  # one version for each case that a marker tells apart
        assert fits(requirement.specifier.contains(version) for version in found), f"{requirement}: run `make lock`"


def shrunk() -> dict[str, dict[str, int]]:
    """The exceptions that are still needed, none of them larger than today's."""
    sizes = {what: dict(sorted(measure(), key=lambda row: row[1])) for what, (measure, _) in RATCHETS.items()}
    return {
        what: {
            name: min(most, sizes[what].get(name, 0))
            for name, most in rows.items()
            if sizes[what].get(name, 0) > RATCHETS[what][1]
        }
        for what, rows in EXCEPTIONS.items()
    }


if __name__ == "__main__":
    Path(__file__).with_name("exceptions.json").write_text(json.dumps(shrunk(), indent=1) + "\n", "utf-8")
