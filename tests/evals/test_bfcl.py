"""The leaderboard's cases and its checker: read rightly, judged by its own code."""

from __future__ import annotations

import shutil
import sys
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import toolspeak as ts
from toolspeak.evals import bfcl, bfcl_package, load
from toolspeak.evals.case import Case
from toolspeak.types import Reply, ToolCall

FETCHED = bfcl_package.present()
NEEDS_BFCL = pytest.mark.skipif(
    not FETCHED, reason="bfcl-eval is not in the cache: make fetch, or python -m toolspeak.evals"
)

WRONG_TRUTHS = {
    "parallel_multiple_12": "needless argument",
    "parallel_multiple_26": "needless argument",
    "live_simple_106-63-0": "missing argument",
    "live_simple_112-68-0": "missing argument",
    "live_multiple_507-149-4": "missing argument",
    "live_multiple_862-181-3": "needless argument",
    "live_multiple_964-207-0": "missing argument",
}
"""Cases that nobody can get right: the answer names an argument that the function lacks, or lacks a required one."""


def reply(*calls: dict[str, Any]) -> Reply:
    return Reply(calls=tuple(ToolCall(f"c{i}", c["name"], c["arguments"]) for i, c in enumerate(calls)))


def case(name: str) -> Case:
    (found,) = load(f"bfcl:{name}")
    return found


def true_calls(answer: Sequence[Any]) -> list[dict[str, Any]]:
    """The calls that an answer of the leaderboard stands for: of each argument the first value that it allows."""
    return [
        {"name": name, "arguments": first_of(values, value_of)}
        for expected in answer
        for name, values in expected.items()
    ]


def first_of(values: Mapping[str, Sequence[Any]], read: Callable[[Any], Any]) -> dict[str, Any]:
    """The first value allowed of each; left out is what allows only "", which stands for leaving it out."""
    given = {
        key: [v for v in allowed if v != "" and (v is not None or "" not in allowed)] for key, allowed in values.items()
    }
    return {key: read(allowed[0]) for key, allowed in given.items() if allowed}


def value_of(value: Any) -> Any:
    """A value allowed. A dict, by itself or in a list, holds a list of what is allowed for each key, one level deep."""
    if isinstance(value, dict):
        return first_of(cast("dict[str, list[Any]]", value), lambda inner: inner)
    if isinstance(value, list):
        return [value_of(one) if isinstance(one, dict) else one for one in cast("list[Any]", value)]
    return value


@NEEDS_BFCL
@pytest.mark.parametrize("category", bfcl.COMPARED)
def test_the_ground_truth_is_right(category: str) -> None:
    cases = load(f"bfcl:{category}")
    wrong = {c.id: v.kind for c in cases if not (v := c.judge(reply(*true_calls(c.expected)))).right}
    assert wrong == {name: kind for name, kind in WRONG_TRUTHS.items() if name in {c.id for c in cases}}


OWN = Path(__file__).parents[2] / "benchmarks" / "cases" / "own"


@NEEDS_BFCL
@pytest.mark.parametrize("path", sorted(OWN.glob("*.jsonl")), ids=lambda path: path.stem)
def test_cases_of_ones_own_in_the_same_form(path: Path) -> None:
    cases = load(f"bfcl:{path}")
    assert {c.group for c in cases} == {path.stem}
    wrong = {c.id: v.detail for c in cases if not (v := c.judge(reply(*true_calls(c.expected)))).right}
    assert wrong == {}
    assert [c.id for c in load(f"bfcl:{path}[3:5]")] == [c.id for c in cases[3:5]]


def test_a_file_in_that_form_that_is_not_there() -> None:
    with pytest.raises(ts.UsageError, match=r"there is no file .*nowhere\.jsonl"):
        load("bfcl:/nowhere.jsonl")


@NEEDS_BFCL
@pytest.mark.parametrize("category", [name for name in bfcl.CATEGORIES if "turn" not in name])
def test_every_case_has_tools_that_can_be_offered(category: str) -> None:
    for one in load(f"bfcl:{category}"):
        assert one.messages
        assert one.tools or category == "live_irrelevance"
        assert all(tool.parameters["type"] == "object" for tool in one.tools)


@NEEDS_BFCL
def test_parts_and_short_names() -> None:
    assert [c.id for c in load("bfcl:simple[100:102]")] == ["simple_python_100", "simple_python_101"]
    assert load("bfcl:simple_python[-1:]")[0].id == "simple_python_399"
    assert len(load("bfcl:multiple[:100]", "bfcl:irrelevance[100:]")) == 240


@NEEDS_BFCL
def test_calls_in_another_order_are_right() -> None:
    found = case("parallel[110:111]")
    true = true_calls(found.expected)
    assert found.judge(reply(*reversed(true))).right
    assert found.judge(reply(true[0])).kind == "count"
    assert found.judge(reply(true[0], true[0])).kind == "wrong value"


@NEEDS_BFCL
def test_names_without_dots_for_servers_that_take_none() -> None:
    dotted = next(c for c in load("bfcl:multiple[100:]") if "." in true_calls(c.expected)[0]["name"])
    plain = next(c for c in load("bfcl:multiple[100:]", plain_names=True) if c.id == dotted.id)
    (true,) = true_calls(dotted.expected)
    renamed = {**true, "name": true["name"].replace(".", "_")}
    assert not any("." in tool.name for tool in plain.tools)
    assert plain.judge(reply(renamed)).right
    assert dotted.judge(reply(true)).right
    assert plain.judge(reply(true)).kind == dotted.judge(reply(renamed)).kind == "wrong tool"


@NEEDS_BFCL
def test_kinds_of_error() -> None:
    found = case("multiple[112:113]")
    (true,) = true_calls(found.expected)
    other = next(tool.name for tool in found.tools if tool.name != true["name"])
    first = next(iter(true["arguments"]))
    kinds = {
        "no call": reply(),
        "wrong tool": reply({**true, "name": other}),
        "missing argument": reply({**true, "arguments": {}}),
        "wrong value": reply({**true, "arguments": {**true["arguments"], first: "no such thing"}}),
        "needless argument": reply({**true, "arguments": {**true["arguments"], "invented": 1}}),
        "count": reply(true, true),
    }
    assert {kind: found.judge(came).kind for kind, came in kinds.items()} == {kind: kind for kind in kinds}


FUNCTIONS = [
    {
        "name": "shop.buy",
        "description": "Buy.",
        "parameters": {
            "type": "dict",
            "properties": {
                "weights": {"type": "array", "items": {"type": "float"}},
                "price": {"type": "float"},
                "note": {"type": "string", "default": "none"},
                "size": {"type": "dict", "properties": {"height": {"type": "float"}}},
            },
            "required": ["price"],
        },
    }
]


def bought(answer: dict[str, list[Any]], **arguments: Any) -> str:
    came = reply({"name": "shop.buy", "arguments": arguments})
    return bfcl.compared("simple_python", FUNCTIONS, [{"shop.buy": answer}], came).kind


@NEEDS_BFCL
def test_whole_numbers_stand_for_floats_wherever_those_are_asked_for() -> None:
    answer = {"weights": [[1.0, 2.5]], "price": [3.0], "size": [{"height": [2.0]}]}
    assert bought(answer, weights=[1, 2.5], price=3, size={"height": 2}) == ""
    assert bought(answer, weights=[1, 2.5], price=True, size={"height": 2}) == "wrong value"


@NEEDS_BFCL
def test_an_optional_argument_given_wrongly_is_needless() -> None:
    assert bought({"price": [3.0], "note": ["none", ""]}, price=3, note="gift") == "needless argument"
    assert bought({"price": [3.0], "note": ["none", ""]}, price=4, note="gift") == "wrong value"


@NEEDS_BFCL
def test_values_on_which_the_checker_breaks_are_wrong() -> None:
    assert bought({"price": [3.0], "size": [{"height": [2.0]}]}, price=3, size={"height": [[]]}) == "wrong value"


def test_relevance() -> None:
    called, silent = reply({"name": "f", "arguments": {}}), Reply(text="Hello")
    assert bfcl.relevance(False, silent).right
    assert bfcl.relevance(False, called).kind == "needless call"
    assert bfcl.relevance(True, called).right
    assert bfcl.relevance(True, silent).kind == "no call"


def test_types_become_those_of_json_schema_all_the_way_down() -> None:
    node = {
        "type": "dict",
        "properties": {
            "point": {"type": "tuple", "items": {"type": "float"}, "description": "Where."},
            "anything": {"type": "any", "default": 3},
            "sizes": {"type": "array", "items": {"type": "string"}, "enum": ["s", "m"]},
            "box": {
                "type": "dict",
                "properties": {"deep": {"type": "integer", "optional": True}},
                "required": ["deep"],
            },
        },
        "required": ["point", "gone"],
    }
    assert bfcl.schema(node) == {
        "type": "object",
        "properties": {
            "point": {"type": "array", "items": {"type": "number"}, "description": "Where."},
            "anything": {"default": 3},
            "sizes": {"type": "array", "items": {"type": "string", "enum": ["s", "m"]}},
            "box": {"type": "object", "properties": {"deep": {"type": "integer"}}, "required": ["deep"]},
        },
        "required": ["point"],
    }


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("paralel", r"no category of BFCL is called paralel.*parallel"),
        ("simple[1]", r"expected bfcl:CATEGORY or bfcl:CATEGORY\[FROM:TO\]"),
        ("web_search_base", r"is not measured here: it needs the web"),
        ("", "expected bfcl:CATEGORY"),
    ],
)
def test_names_that_mean_nothing(name: str, said: str) -> None:
    with pytest.raises(ts.UsageError, match=said):
        load(f"bfcl:{name}")


@NEEDS_BFCL
def test_an_empty_part() -> None:
    with pytest.raises(ts.UsageError, match=r"bfcl:simple\[1000:\] is empty: simple_python has 400 cases"):
        load("bfcl:simple[1000:]")


# ------------------------------------------------------------------ the package


@NEEDS_BFCL
def test_its_code_leaves_nothing_behind() -> None:
    assert bfcl_package.checker().__module__ == "bfcl_eval.eval_checker.ast_eval.ast_checker"
    assert not [name for name in sys.modules if name.startswith("bfcl_eval")]
    assert not [path for path in sys.path if "bfcl-eval" in path]


@NEEDS_BFCL
def test_a_package_of_that_name_that_is_installed_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bfcl_eval").mkdir()
    (tmp_path / "bfcl_eval" / "__init__.py").write_text("mine = True", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import bfcl_eval  # type: ignore[import-not-found]

    try:
        module = bfcl_package.loaded.__wrapped__("eval_checker.ast_eval.ast_checker")
        assert module.PYTHON_TYPE_MAPPING["float"] is float
        assert sys.modules["bfcl_eval"] is bfcl_eval
    finally:
        del sys.modules["bfcl_eval"]


def wheel(folder: Path, files: dict[str, str]) -> None:
    """A wheel of the package's name and version, with these files."""
    folder.mkdir()
    info = "bfcl_eval-2026.3.23.dist-info"
    files |= {
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: bfcl-eval\nVersion: 2026.3.23\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/RECORD": "",
    }
    with zipfile.ZipFile(folder / "bfcl_eval-2026.3.23-py3-none-any.whl", "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and an installer that finds only what lies in a folder."""
    pytest.importorskip("pip")
    for name, value in {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "shop"),
        "TOOLSPEAK_CACHE": str(tmp_path / "cache"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    return tmp_path


def test_another_file_under_its_name_is_refused(elsewhere: Path) -> None:
    wheel(elsewhere / "shop", {"bfcl_eval/__init__.py": "import os", "bfcl_eval/../../evil.py": ""})
    with pytest.raises(ts.WeightsError, match=r"bfcl-eval==2026.3.23 is not what it should be: expected SHA-256"):
        bfcl_package.ensure()
    assert [path.name for path in (elsewhere / "cache").iterdir()] == [".lock"]
    assert not list(elsewhere.rglob("evil.py"))


def test_without_a_network_it_says_what_to_do(elsewhere: Path) -> None:
    (elsewhere / "shop").mkdir()
    with pytest.raises(ts.WeightsError, match=r"pip could not fetch bfcl-eval==2026.3.23.*Your own cases need none"):
        load("bfcl:simple")
    assert not bfcl_package.present()


@NEEDS_BFCL
def test_what_is_fetched_is_what_is_kept(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TOOLSPEAK_CACHE")
    there = bfcl_package.home() / bfcl_package.ROOT
    files = {
        f"bfcl_eval/{p.relative_to(there).as_posix()}": p.read_text("utf-8")
        for p in there.rglob("*")
        if p.is_file() and "__pycache__" not in p.parts
    }
    files["bfcl_eval/model_handler/heavy.py"] = "import everything"
    wheel(elsewhere / "shop", files)
    monkeypatch.setenv("TOOLSPEAK_CACHE", str(elsewhere / "cache"))
    home = bfcl_package.ensure()
    assert (home / "bfcl_eval/data/BFCL_v4_multiple.json").is_file()
    assert not (home / "bfcl_eval/model_handler").exists()
    shutil.rmtree(elsewhere / "shop")
    assert bfcl_package.ensure() == home
