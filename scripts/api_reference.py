"""Writes docs/reference/api.md from the docstrings: every public name, its signature and what it gives.

`python scripts/api_reference.py` writes the page, `--check` fails where it is not up to date.

The source is parsed, not imported, so that annotations and defaults stand as they are written. A name is followed
through `from … import` to the module that defines it: moving code changes nothing here. The page is plain Markdown and
reads the same on a source host as in the built site.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
PAGE = ROOT / "docs" / "reference" / "api.md"
WIDTH = 100

GROUPS: dict[str, str] = {
    "Ask a model": "run stream decide call extract stream_extract generate generate_checked conclude explain toolspeak.explain:Explanation "
    "toolspeak.verbs:CommonOptions toolspeak.verbs:Options Limits",
    "Ask a model with `await`": "arun astream adecide acall aextract astream_extract agenerate agenerate_checked aconclude",
    "Tools": "tool Injected Toolbox Validation ToolIndex openapi module mcp",
    "Policies and approvals": "Policy Decision Pending resume aresume Edit Answer toolspeak.approvals:Approve",
    "Models": "model Model record replay traced toolspeak.models.replay:Replay Local Http toolspeak.models.http.timeouts:Timeouts Speaker Scripted",
    "Batches": "batch abatch read_batch Summary",
    "Batches on a Ray cluster": "toolspeak.ray:batch toolspeak.ray:Decide toolspeak.ray:Extract toolspeak.ray:render "
    "toolspeak.ray:parse",
    "Dialects": "Dialect dialects dialect detect render toolspeak.wire.render:Rendered parse Decoder collect grammar",
    "Values": "Message Request Reply Step Usage Tool ToolCall ToolResult Note Problem",
    "Events": "Event TextDelta ThoughtDelta CallStart ArgumentsDelta CallEnd CallResult Noted Finished",
    "Errors": "ToolspeakError UsageError InvalidTool DuplicateTool UnknownModel UnknownDialect TemplateError StaleApproval NotRecorded MissingExtra "
    "ModelError ModelUnreachable KeyRefused RateLimited BadRequest PromptTooLong ServerFailed StreamCut WeightsError "
    "CallError NoCall UnknownTool InvalidCall NotApproved ApprovalNeeded ToolError ToolTimeout GenerationError LimitReached Attempt",
    "The language of dialects": "toolspeak.wire.dialect:*",
    "Evaluation": "toolspeak.evals:*",
}
"""A name of `toolspeak`, or MODULE:NAME, or MODULE:* for all public classes and functions of a module."""

PACKAGES = ("toolspeak.evals", "toolspeak.ray")
"""Modules whose names are used with the module before them."""

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign


@cache
def tree(module: str) -> ast.Module:
    path = SOURCE.joinpath(*module.split("."))
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return ast.parse(file.read_text("utf-8"))


def absolute(node: ast.ImportFrom, module: str) -> str:
    """The module that a `from … import` names."""
    if not node.level:
        return node.module or ""
    is_package = SOURCE.joinpath(*module.split(".")).is_dir()
    parts = module.split(".")[: len(module.split(".")) - node.level + is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def statements(module: str) -> Iterator[ast.stmt]:
    """The statements of a module, and those for type checkers alone."""
    for node in tree(module).body:
        yield from node.body if isinstance(node, ast.If) else [node]


def bound(node: ast.stmt) -> list[str]:
    """The names that a statement binds."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return [node.name]
    if isinstance(node, ast.ImportFrom):
        return [alias.asname or alias.name for alias in node.names]
    return (
        [target.id for target in node.targets if isinstance(target, ast.Name)] if isinstance(node, ast.Assign) else []
    )


def resolve(module: str, name: str) -> tuple[Definition, str]:
    """The definition of a name and its docstring; LookupError where the module has none."""
    body = list(statements(module))
    for node, following in zip(body, [*body[1:], None], strict=True):
        if name not in bound(node):
            continue
        if isinstance(node, ast.ImportFrom):
            alias = next(alias for alias in node.names if (alias.asname or alias.name) == name)
            return resolve(absolute(node, module), alias.name)
        if isinstance(node, ast.Assign):
            return node, text_of(following)
        if isinstance(node, ast.ClassDef):
            return node, ast.get_docstring(node) or ""
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            # Of overloads the first is shown, and the definition that follows them has the docstring.
            whole = [each for each in body if isinstance(each, type(node)) and name in bound(each)]
            return node, ast.get_docstring(whole[-1]) or ""
    raise LookupError(f"{module} defines no {name}")


def text_of(node: ast.stmt | None) -> str:
    """The text of a string that stands alone, as below a field or an alias."""
    value = node.value if isinstance(node, ast.Expr) else None
    return " ".join(value.value.split()) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""


def public(module: str) -> list[str]:
    """The public classes and functions of a module, in its order; of a package with `__all__` those."""
    for node in tree(module).body:
        if isinstance(node, ast.Assign) and "__all__" in bound(node):
            return list(ast.literal_eval(node.value))
    kinds = (ast.ClassDef, ast.FunctionDef)
    return [node.name for node in tree(module).body if isinstance(node, kinds) and node.name[0] != "_"]


def code(node: ast.expr | ast.AnnAssign | ast.Assign) -> str:
    """An expression in the formatter's quotes."""
    text = ast.unparse(node)
    return text if '"' in text else text.replace("'", '"')


def signature(node: ast.FunctionDef | ast.AsyncFunctionDef, name: str, *, method: bool = False) -> str:
    """A function's head, over several lines where it is long; a constructor's is that of its class."""
    bare = method and not any("staticmethod" in ast.unparse(each) for each in node.decorator_list)
    parts = list(parameters(node.args))[bare:]
    parts = parts[1:] if bare and parts[:1] == ["/"] else parts
    kind = "class " if node.name == "__init__" else "async def " if isinstance(node, ast.AsyncFunctionDef) else "def "
    returns = f" -> {code(node.returns)}" if node.returns and node.name != "__init__" else ""
    flat = f"{kind}{name}({', '.join(parts)}){returns}"
    lines = "".join(f"    {part},\n" for part in parts)
    return flat if len(flat) <= WIDTH else f"{kind}{name}(\n{lines}){returns}"


def parameters(arguments: ast.arguments) -> Iterator[str]:
    """Each parameter with its annotation and default."""
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(positional) - len(arguments.defaults)) + [*arguments.defaults]
    for index, (each, default) in enumerate(zip(positional, defaults, strict=True)):
        yield parameter(each, default)
        if index + 1 == len(arguments.posonlyargs):
            yield "/"
    if arguments.vararg or arguments.kwonlyargs:
        yield "*" + (parameter(arguments.vararg) if arguments.vararg else "")
    yield from map(parameter, arguments.kwonlyargs, arguments.kw_defaults)
    if arguments.kwarg:
        yield "**" + parameter(arguments.kwarg)


def parameter(each: ast.arg, default: ast.expr | None = None) -> str:
    typed = f"{each.arg}: {code(each.annotation)}" if each.annotation else each.arg
    return f"{typed} = {code(default)}" if default else typed


def class_head(node: ast.ClassDef) -> str:
    """A class's head: how it is constructed, or its fields; and what it is derived from."""
    bases = ", ".join(base for base in map(code, node.bases) if base[0] != "_")
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef) and inner.name == "__init__":
            head = signature(inner, node.name, method=True)
            return f"{head}  # a {bases}" if bases else head
    fields = [
        "    " + code(each)
        for each in node.body
        if isinstance(each, ast.AnnAssign | ast.Assign) and not ast.unparse(each).startswith("_")
    ]
    return "\n".join([f"class {node.name}{f'({bases})' if bases else ''}:", *(fields or ["    ..."])])


def methods(node: ast.ClassDef) -> Iterator[str]:
    """The public methods and properties that have a docstring."""
    for inner in node.body:
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name[0] != "_":
            docstring = ast.get_docstring(inner)
            decorators = {ast.unparse(each) for each in inner.decorator_list}
            if not docstring or "overload" in decorators:
                continue
            if decorators & {"property", "cached_property"}:
                title = f"{inner.name}: {code(inner.returns) if inner.returns else 'Any'}"
            else:
                title = signature(inner, inner.name, method=True)
            yield f"```py\n{title}\n```\n\n{docstring}"


def entry(target: str) -> str:
    """The section of one name."""
    module, name = target.split(":") if ":" in target else ("toolspeak", target)
    shown = f"{module}.{name}" if module in PACKAGES else name
    node, docstring = resolve(module, name)
    if isinstance(node, ast.ClassDef):
        head, more = class_head(node), list(methods(node))
    elif isinstance(node, ast.Assign):
        head, more = code(node), []
    else:
        head, more = signature(node, name), []
    return "\n\n".join([f"### {shown}", f"```py\n{head}\n```", *([docstring] if docstring else []), *more])


def page() -> str:
    """The whole page. LookupError for a public name that is in no group, or in two."""
    listed = [name for names in GROUPS.values() for name in names.split() if ":" not in name]
    names = {name for node in statements("toolspeak") for name in bound(node) if isinstance(node, ast.ImportFrom)}
    wanted = {name for name in names if name not in {"annotations", "ModuleType", "TYPE_CHECKING", "Any"}}
    if wrong := wanted.symmetric_difference(listed) | {name for name in listed if listed.count(name) > 1}:
        raise LookupError(f"in no group, in two, or not public: {', '.join(sorted(wrong))}")
    parts = [HEAD]
    for title, group in GROUPS.items():
        parts.append(f"## {title}")
        for target in group.split():
            module = target.removesuffix(":*")
            whole = (
                [f"{module}:{name}" for name in public(module) if name != "Dialect"] if module != target else [target]
            )
            parts += map(entry, whole)
    return "\n\n".join(parts) + "\n"


HEAD = """# Python API

<!-- made by: python scripts/api_reference.py -->

This page lists every public name. `import toolspeak as ts` provides the names without a module in front of them: `ts.run`,
`ts.Toolbox`. Await the functions that begin with `a`. [The tutorial](../tutorial/getting-started.md) shows how to use them;
[Errors](../how-to/errors.md) shows the tree of errors."""


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        sys.exit(None if PAGE.read_text("utf-8") == page() else "docs/reference/api.md is not up to date")
    PAGE.write_text(page(), "utf-8")
