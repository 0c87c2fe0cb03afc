"""Cases of the Berkeley Function-Calling Leaderboard (BFCL v4), judged by its own checker.

`bfcl:CATEGORY` names a category; brackets take a part as a Python slice: `bfcl:multiple[:100]`. `bfcl:FILE.jsonl`
reads your own cases in the leaderboard's format, with `ground_truth` in each line; the file's name is the category.

In some single-turn categories the checker compares the calls (`simple_python`, or `simple` for short, `multiple`,
`parallel`, `live_*`). In others only the presence of a call counts (`irrelevance`, `live_irrelevance`,
`live_relevance`). `multi_turn_base` and the other multi-turn categories are in `bfcl_turns`.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from ..schema.infer import as_tools
from ..schema.suggestions import did_you_mean, near
from ..types import Message, Reply, Schema
from . import bfcl_package as package, bfcl_turns
from .case import RIGHT, Case, Kind, Verdict, calls_of, short

COMPARED = (
    "simple_python",
    "multiple",
    "parallel",
    "parallel_multiple",
    "live_simple",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
)
"""Categories in which the checker compares the calls."""
LANGUAGES = ("simple_java", "simple_javascript")
"""Categories in which the checker compares calls whose arguments are source text of that language."""
RELEVANCE = ("irrelevance", "live_irrelevance", "live_relevance")
"""Categories in which only the presence of a call counts."""
CATEGORIES = (*COMPARED, *RELEVANCE, *LANGUAGES, *bfcl_turns.CATEGORIES)
ALIASES = {"simple": "simple_python", "java": "simple_java", "javascript": "simple_javascript"}
ELSEWHERE = ("memory", "web_search", "format_sensitivity")

FILE = re.compile(r"(.+\.jsonl)(\[-?\d*:-?\d*\])?", re.DOTALL)
NAME = re.compile(r"(\w+)(?:\[(-?\d*):(-?\d*)\])?", re.ASCII)
TYPES = {
    "dict": "object", "HashMap": "object", "Hashtable": "object", "object": "object", "tuple": "array", "array": "array",
    "list": "array", "Array": "array", "ArrayList": "array", "Queue": "array", "Stack": "array", "float": "number",
    "double": "number", "number": "number", "integer": "integer", "long": "integer", "short": "integer",
    "byte": "integer", "Bigint": "integer", "string": "string", "String": "string", "char": "string",
    "boolean": "boolean", "Boolean": "boolean", "bool": "boolean",
}  # fmt: skip
"""The leaderboard's names of types, as JSON Schema types. Any other name (such as `any`) means no type."""
SCHEMA_KEYWORDS = ("description", "enum", "default", "minItems", "maxItems", "minimum", "maximum")


def load(name: str, *, plain_names: bool = False) -> list[Case]:
    """The cases of `CATEGORY` or `CATEGORY[a:b]`.

    With `plain_names` functions are named `a_b` instead of `a.b`, for servers that accept no dots. Raises UsageError
    for an unknown name and WeightsError if the package cannot be downloaded.
    """
    path, (category, start, stop) = _file(name)
    if path is not None:
        package.ensure()  # the checker
        entries = _lines(path)
        answers = {entry["id"]: entry["ground_truth"] for entry in entries if "ground_truth" in entry}
    else:
        entries = _lines(package.ensure() / package.ROOT / "data" / f"BFCL_v4_{category}.json")
        answers = {} if category in RELEVANCE else _answers(category)
    chosen = entries[start:stop]
    if not chosen:
        raise UsageError(f"bfcl:{name} is empty: {category} has {len(entries)} cases")
    if category in bfcl_turns.CATEGORIES:
        return bfcl_turns.cases(chosen, answers, category, lambda function: _tool(function, category, plain_names))
    return [_case(entry, category, answers.get(entry["id"]), plain_names) for entry in chosen]


def _file(name: str) -> tuple[Path | None, tuple[str, int | None, int | None]]:
    """The user's file that `FILE.jsonl` or `FILE.jsonl[a:b]` names, if any, with the category and the slice."""
    match = FILE.fullmatch(name)
    if match is None:
        return None, _named(name)
    path = Path(match[1]).expanduser()
    if not path.is_file():
        raise UsageError(f"there is no file {path}; expected cases in the leaderboard's form, or bfcl:CATEGORY")
    named = _named(f"{path.stem}{match[2] or ''}")
    if named[0] in bfcl_turns.CATEGORIES:
        raise UsageError(f"{path}: cases of many turns are taken from the leaderboard alone")
    return path, named


def _named(name: str) -> tuple[str, int | None, int | None]:
    match = NAME.fullmatch(name)
    if match is None:
        raise UsageError(
            f"expected bfcl:CATEGORY or bfcl:CATEGORY[FROM:TO], such as bfcl:multiple[:100], received bfcl:{name}"
        )
    category = ALIASES.get(match[1], match[1])
    if category.startswith(ELSEWHERE):
        raise UsageError(
            f"bfcl:{category} is not measured here: it needs the web, or models and stores of its own. "
            f"There are: {', '.join(CATEGORIES)}"
        )
    if category not in CATEGORIES:
        known = (*CATEGORIES, *ALIASES)
        raise UsageError(
            f"no category of BFCL is called {category}.{did_you_mean(near(category, known))} There are: {', '.join(CATEGORIES)}"
        )
    start, stop = (int(part) if part else None for part in (match[2], match[3]))
    return category, start, stop


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def _answers(category: str) -> dict[str, list[Any]]:
    path = package.ensure() / package.ROOT / "data" / "possible_answer" / f"BFCL_v4_{category}.json"
    return {entry["id"]: entry["ground_truth"] for entry in _lines(path)}


def _case(entry: Mapping[str, Any], category: str, answer: list[Any] | None, plain: bool) -> Case:
    tools = as_tools([_tool(function, category, plain) for function in entry["function"]]) or ()
    messages = cast("list[Message]", entry["question"][0])
    if answer is None:
        wanted = category == "live_relevance"
        expected: Any = "a call" if wanted else []
        judge = functools.partial(relevance, wanted)
    else:
        expected = answer
        judge = functools.partial(compared, category, entry["function"], answer, plain=plain)
    return Case(entry["id"], category, tuple(messages), tools, expected, judge, match="bfcl")


# ------------------------------------------------------------------ tools


def _tool(function: Mapping[str, Any], category: str, plain: bool) -> dict[str, Any]:
    parameters = function["parameters"]
    if category in LANGUAGES:
        parameters = {**parameters, "properties": {k: _in_source(v) for k, v in parameters["properties"].items()}}
    return {
        "name": _called(function["name"], plain),
        "description": function["description"],
        "parameters": schema(parameters),
    }


def _called(name: str, plain: bool) -> str:
    return name.replace(".", "_") if plain else name


def _in_source(node: Mapping[str, Any]) -> Schema:
    """The schema of a parameter in another language: a string with the value in that language's notation, as the
    leaderboard wants it."""
    kind = str(node.get("type", "any"))
    inner = cast("Mapping[str, Any]", node.get("items") or {}).get("type")
    what = f"{kind} of {inner}" if inner else kind
    return {"type": "string", "description": f"{node.get('description', '')} (source text of the type {what})".strip()}


def _fields(properties: Mapping[str, Mapping[str, Any]], required: Iterable[str]) -> dict[str, Any]:
    return {
        "properties": {name: schema(inner) for name, inner in properties.items()},
        "required": [name for name in required if name in properties],
    }


def schema(node: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON Schema for a type as the leaderboard writes it, with everything nested in it."""
    translated: dict[str, Any] = {key: node[key] for key in SCHEMA_KEYWORDS if key in node}
    kind = TYPES.get(str(node.get("type")))
    if kind:
        translated["type"] = kind
    if isinstance(node.get("properties"), Mapping):
        translated |= _fields(cast("Mapping[str, Mapping[str, Any]]", node["properties"]), node.get("required") or ())
    if isinstance(node.get("items"), Mapping):
        translated["items"] = schema(cast("Mapping[str, Any]", node["items"]))
    if kind == "array" and "enum" in translated:  # the data has the list's `enum`, but it lists the items' values
        translated["items"] = {"enum": translated.pop("enum"), **translated.get("items", {})}
    return translated


# ------------------------------------------------------------------ verdicts


def relevance(wanted: bool, reply: Reply) -> Verdict:
    """Right if the reply has a call and one is wanted, or neither."""
    if bool(reply.calls) == wanted:
        return RIGHT
    return Verdict(False, "no call") if wanted else Verdict(False, "needless call", f"called {reply.calls[0].name}")


def compared(
    category: str,
    functions: Sequence[Mapping[str, Any]],
    answer: Sequence[Any],
    reply: Reply,
    *,
    plain: bool = False,
) -> Verdict:
    """The verdict of the official checker on a reply's calls. `plain` says that functions have plain names, see
    `load`."""
    if not reply.calls:
        return Verdict(False, "no call", short(reply.text))
    known = {_called(function["name"], plain): function for function in functions}
    calls = [{call["name"]: _typed(call, known)} for call in calls_of(reply)]
    result = _checked(category, functions, calls, answer, plain)
    if result["valid"]:
        return RIGHT
    kind, detail = kind_of(result)
    required_only = _without_optional(calls, answer, plain)
    if kind == "wrong value" and _checked(category, functions, required_only, answer, plain)["valid"]:
        kind = "needless argument"  # right but for optional arguments
    return Verdict(False, kind, detail)


def _checked(category: str, functions: Any, calls: list[Any], answer: Sequence[Any], plain: bool) -> dict[str, Any]:
    languages = package.languages()
    language = {"simple_java": languages.JAVA, "simple_javascript": languages.JAVASCRIPT}.get(
        category, languages.PYTHON
    )
    style = package.PLAIN if plain else package.MODEL
    try:
        return package.checker()(functions, calls, answer, language, category, style)
    except (
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:  # the checker itself fails on some wrong values
        return {"valid": False, "error": [f"the checker broke: {error!r}"], "error_type": "value_error:checker"}


def _typed(call: Mapping[str, Any], functions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The arguments with the types of the schema: an int becomes a float where a float is declared."""
    function = functions.get(call["name"])
    properties: Mapping[str, Any] = function["parameters"]["properties"] if function else {}
    return {name: _as_typed(value, properties.get(name, {})) for name, value in call["arguments"].items()}


def _as_typed(value: Any, node: Mapping[str, Any]) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and node.get("type") == "float":
        return float(value)
    if isinstance(value, list):
        item: Mapping[str, Any] = node.get("items") or {}
        return [_as_typed(one, item) for one in cast("list[Any]", value)]
    if isinstance(value, dict):
        inner: Mapping[str, Any] = node.get("properties") or {}
        return {key: _as_typed(one, inner.get(key, {})) for key, one in cast("dict[str, Any]", value).items()}
    return value


def _without_optional(calls: Sequence[dict[str, Any]], answer: Sequence[Any], plain: bool) -> list[Any]:
    """The calls without the arguments that every expected call of that name may omit (the ground truth lists "" for
    them)."""
    required_only: list[Any] = []
    for call in calls:
        ((name, arguments),) = call.items()
        wanted = [values for expected in answer for true, values in expected.items() if _called(true, plain) == name]
        needed = {key for expected in wanted for key, values in expected.items() if "" not in values}
        required_only.append({name: {key: value for key, value in arguments.items() if key in needed}})
    return required_only


KINDS: tuple[tuple[str, Kind], ...] = (
    ("wrong_count", "count"),
    ("wrong_func_name", "wrong tool"),
    ("missing_required", "missing argument"),
    ("missing_optional", "missing argument"),
    ("unexpected_param", "needless argument"),
)


def _inner_kinds(parts: Iterable[Any]) -> Iterator[tuple[Kind, str]]:
    """The kinds of error in a list of results for several calls."""
    for part in parts:
        if isinstance(part, Mapping):
            for detail in cast("Mapping[str, Mapping[str, Any]]", part).values():
                yield kind_of({"error": detail["sub_error"], "error_type": detail["sub_error_type"]})


def kind_of(result: Mapping[str, Any]) -> tuple[Kind, str]:
    """The kind of error in the checker's result, and its message. For parallel calls it is that of the closest match."""
    if inner := list(_inner_kinds(result["error"])):
        return next((one for one in inner if one[0] != "wrong tool"), inner[0])
    detail = " ".join(str(part) for part in result["error"])
    kinds: list[Kind] = [kind for word, kind in KINDS if word in result["error_type"]]
    return (kinds[0] if kinds else "wrong value"), detail
