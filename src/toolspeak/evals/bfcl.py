"""Cases of the Berkeley Function-Calling Leaderboard (BFCL v4), judged by its own checker.

Named `bfcl:CATEGORY`, with a part of it in brackets as Python slices: `bfcl:multiple[:100]`; or `bfcl:FILE.jsonl`, cases
of one's own in the leaderboard's form, with `ground_truth` in each line, the category being the file's name. Single-turn
categories: those whose calls the checker compares (`simple_python` or `simple` for short, `multiple`, `parallel`, …, `live_*`), and
those that ask whether a call is wanted at all (`irrelevance`, `live_irrelevance`, `live_relevance`). Of many turns:
`multi_turn_base` and its like (`bfcl_turns`).
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
"""The checker compares the calls."""
LANGUAGES = ("simple_java", "simple_javascript")
"""The checker compares the calls, whose arguments are source text in that language."""
RELEVANCE = ("irrelevance", "live_irrelevance", "live_relevance")
"""What counts is whether there is a call."""
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
"""The leaderboard's words for types in JSON Schema's; any other (`any`) is no type at all."""
SCHEMA_KEYWORDS = ("description", "enum", "default", "minItems", "maxItems", "minimum", "maximum")


def load(name: str, *, plain_names: bool = False) -> list[Case]:
    """The cases of `CATEGORY` or `CATEGORY[a:b]`, with `plain_names` functions called `a_b` where the leaderboard has
    `a.b`: for servers that take no dots. UsageError for what is none, WeightsError where it cannot be fetched."""
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
    """The file of one's own that `FILE.jsonl` or `FILE.jsonl[a:b]` names, if any, and the category and part named."""
    found = FILE.fullmatch(name)
    if found is None:
        return None, _named(name)
    path = Path(found[1]).expanduser()
    if not path.is_file():
        raise UsageError(f"there is no file {path}; expected cases in the leaderboard's form, or bfcl:CATEGORY")
    named = _named(f"{path.stem}{found[2] or ''}")
    if named[0] in bfcl_turns.CATEGORIES:
        raise UsageError(f"{path}: cases of many turns are taken from the leaderboard alone")
    return path, named


def _named(name: str) -> tuple[str, int | None, int | None]:
    found = NAME.fullmatch(name)
    if found is None:
        raise UsageError(
            f"expected bfcl:CATEGORY or bfcl:CATEGORY[FROM:TO], such as bfcl:multiple[:100], received bfcl:{name}"
        )
    category = ALIASES.get(found[1], found[1])
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
    start, stop = (int(part) if part else None for part in (found[2], found[3]))
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
    """A parameter of another language: a string with the value as that language writes it, as the leaderboard asks."""
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
    """The JSON Schema of what the leaderboard writes for a type, all the way down."""
    made: dict[str, Any] = {key: node[key] for key in SCHEMA_KEYWORDS if key in node}
    kind = TYPES.get(str(node.get("type")))
    if kind:
        made["type"] = kind
    if isinstance(node.get("properties"), Mapping):
        made |= _fields(cast("Mapping[str, Mapping[str, Any]]", node["properties"]), node.get("required") or ())
    if isinstance(node.get("items"), Mapping):
        made["items"] = schema(cast("Mapping[str, Any]", node["items"]))
    if kind == "array" and "enum" in made:  # written on the list, meant for what is in it
        made["items"] = {"enum": made.pop("enum"), **made.get("items", {})}
    return made


# ------------------------------------------------------------------ verdicts


def relevance(wanted: bool, reply: Reply) -> Verdict:
    """Whether there is a call exactly where one is wanted."""
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
    """The official checker's verdict on a reply's calls; `plain` is how their functions are called, see `load`."""
    if not reply.calls:
        return Verdict(False, "no call", short(reply.text))
    known = {_called(function["name"], plain): function for function in functions}
    calls = [{call["name"]: _typed(call, known)} for call in calls_of(reply)]
    told = _checked(category, functions, calls, answer, plain)
    if told["valid"]:
        return RIGHT
    kind, detail = kind_of(told)
    kept = _without_optional(calls, answer, plain)
    if kind == "wrong value" and _checked(category, functions, kept, answer, plain)["valid"]:
        kind = "needless argument"  # all would be right without what need not be given
    return Verdict(False, kind, detail)


def _checked(category: str, functions: Any, calls: list[Any], answer: Sequence[Any], plain: bool) -> dict[str, Any]:
    languages = package.languages()
    language = {"simple_java": languages.JAVA, "simple_javascript": languages.JAVASCRIPT}.get(
        category, languages.PYTHON
    )
    style = package.PLAIN if plain else package.MODEL
    try:
        return package.checker()(functions, calls, answer, language, category, style)
    except (AttributeError, LookupError, TypeError, ValueError) as error:  # on some wrong values the checker breaks
        return {"valid": False, "error": [f"the checker broke: {error!r}"], "error_type": "value_error:checker"}


def _typed(call: Mapping[str, Any], functions: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The arguments as a caller with types would give them: a whole number for a float is a float."""
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
    """The calls without the arguments that every expected call of that name lets out ("" stands for that)."""
    kept: list[Any] = []
    for call in calls:
        ((name, arguments),) = call.items()
        wanted = [values for expected in answer for true, values in expected.items() if _called(true, plain) == name]
        needed = {key for expected in wanted for key, values in expected.items() if "" not in values}
        kept.append({name: {key: value for key, value in arguments.items() if key in needed}})
    return kept


KINDS: tuple[tuple[str, Kind], ...] = (
    ("wrong_count", "count"),
    ("wrong_func_name", "wrong tool"),
    ("missing_required", "missing argument"),
    ("missing_optional", "missing argument"),
    ("unexpected_param", "needless argument"),
)


def _inner_kinds(parts: Iterable[Any]) -> Iterator[tuple[Kind, str]]:
    """What is wrong with each of several calls."""
    for part in parts:
        if isinstance(part, Mapping):
            for detail in cast("Mapping[str, Mapping[str, Any]]", part).values():
                yield kind_of({"error": detail["sub_error"], "error_type": detail["sub_error_type"]})


def kind_of(told: Mapping[str, Any]) -> tuple[Kind, str]:
    """The kind of error that the checker found, and its sentence. Of parallel calls: the nearest to a match."""
    if inner := list(_inner_kinds(told["error"])):
        return next((one for one in inner if one[0] != "wrong tool"), inner[0])
    detail = " ".join(str(part) for part in told["error"])
    kinds: list[Kind] = [kind for word, kind in KINDS if word in told["error_type"]]
    return (kinds[0] if kinds else "wrong value"), detail
