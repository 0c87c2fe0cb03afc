"""Ten tools out of a thousand, chosen by the index, beside the right one among ten: what a small model makes of each.

    python benchmarks/bench_routed.py --cases 60 --kept FILE    # goes on from what FILE holds
    python benchmarks/bench_routed.py --own                     # cases of our own

The tools are the 1,096 of `bench_search.py`; the cases are BFCL's examples 100 to 149 of simple_python, multiple, live_simple and
live_multiple, taken from each in turn, judged by the leaderboard's own checker. Each is put to the embedded model
with all tools, of which `ToolRouter` shows what a hybrid `ToolIndex` chooses; with the right tool among nine that a seed drew;
and with the right tool among the nine that the index finds most like it. The right tool stands in each as its case defines
it, since one name has several definitions there. With `--own` the cases are those of `benchmarks/cases/own` that want one
call, and their tools stand among the others.

The tools of all cases together hold many that do the same: `math.gcd` and `number_theory.gcd`, `calc_area_triangle` and
`geometry.area_triangle`. Beside the strict figure stands one that takes a call to such a twin for right: see `as_good`.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "src"), str(HERE)]

from bench_search import CATEGORIES, leaderboard

import toolspeak as ts
from toolspeak import stems
from toolspeak.drive import run_sync
from toolspeak.evals import bfcl, bfcl_package as package
from toolspeak.evals.case import Case
from toolspeak.evals.stats import difference, wilson
from toolspeak.models.base import TokenCounter
from toolspeak.models.tool_calling import calling
from toolspeak.nlu.entities.number_units import FULL
from toolspeak.search import ToolIndex
from toolspeak.search.embedders import Embedder, embedder
from toolspeak.search.router import ToolRouter
from toolspeak.types import Reply, Request, Tool

Row = tuple[str, str, str]
AnyTool = Tool[..., Any]
Kept = dict[str, dict[str, Any]]

FROM, TO = 100, 150
CASES = 60
SHOWN = 10
SEED = 0
LESS = 2.0
"""Points below the index's recall at ten that the share of what is reached may be."""
TOKENS = 10.0
"""Percent of the tokens of all definitions that those shown may have."""
ARMS = ("routed", "among ten", "among its ten")
"""What the index chooses; the right tool and nine drawn; what the index chooses, the right tool in any case."""
GOOD = ", as good"
"""What follows an arm's name where a call to a twin counts."""
SAYING_NOTHING = stems.stems("calc compute")
"""Words of names that say as little as "calculate" does."""


def rows(count: int = 8, kept: Path | None = None, *, own: bool = False) -> Iterator[Row]:
    """(what, value, the rest); a few cases alone where nobody says how many."""
    if not package.present():
        yield "BFCL", "-", "not here: python -m toolspeak.evals fetches it"
        return
    embed = embedder("minilm")
    tools, questions = leaderboard()
    held = [(question.text, question.tool) for question in questions if not question.tuned]
    every = cases(own)
    if own:
        tools = (*tools, *new_tools(every, {tool.name for tool in tools}))
        held = [(case.messages[-1]["content"], name_of(case)) for case in every]
    index = ToolIndex(tools, embed=embed)
    model = calling(ts.model("local"))
    chosen = every[:count]
    done = read(kept)
    for case in chosen:
        if set(ARMS) <= done.get(case.id, {}).keys():
            continue
        done[case.id] = {"case": case.id, **put(case, index, model, embed, done.get(case.id, {}))}
        if kept:
            with kept.open("a", encoding="utf-8") as file:
                file.write(json.dumps(done[case.id]) + "\n")
        print(f"    {done[case.id]}", file=sys.stderr, flush=True)
    yield from told([done[case.id] for case in chosen], index, model, held)


def cases(own: bool) -> list[Case]:
    """The cases that want one call, one of each category in turn."""
    if own:
        loaded = [bfcl.load(str(HERE / "cases" / "own" / f"{category}.jsonl")) for category in CATEGORIES]
    else:
        loaded = [bfcl.load(f"{category}[{FROM}:{TO}]") for category in CATEGORIES]
    turns = chain.from_iterable(zip_longest(*loaded))
    return [case for case in turns if case and len(case.expected) == 1]


def new_tools(of: Sequence[Case], known: set[str]) -> list[AnyTool]:
    """The tools of cases whose names are not known."""
    return list({tool.name: tool for case in of for tool in case.tools if tool.name not in known}.values())


def name_of(case: Case) -> str:
    """The name of the tool that a case wants."""
    return next(iter(case.expected[0]))


def read(kept: Path | None) -> Kept:
    """What was measured before, by case."""
    lines = kept.read_text("utf-8").splitlines() if kept and kept.exists() else []
    return {row["case"]: row for row in map(json.loads, lines)}


# ------------------------------------------------------------------ one case


def put(case: Case, index: ToolIndex, model: Any, embed: Embedder, before: Mapping[str, Any]) -> dict[str, Any]:
    """Whether each arm that was not measured `before` was right, how long it took, and what was shown."""
    right = next(tool for tool in case.tools if tool.name == name_of(case))
    index = having(right, index, embed)
    routed = ToolRouter(model, index)
    seen = shown(routed, case, index)
    made = {
        **before,
        "held": right.name in {tool.name for tool in seen},
        "shown": len(seen),
        "tokens": tokens(model, seen),
    }
    if ARMS[0] not in made:
        put_to(case, ARMS[0], index, routed, made)
    if ARMS[1] not in made:
        put_to(case, ARMS[1], among(case, right, index), ToolRouter(model), made)
    made["offered"] = made.get(f"{ARMS[0]}, called") in {tool.name for tool in case.tools} - {right.name}
    if made["held"]:  # what is asked then is the same, and the model decides alike
        made |= {key.replace(ARMS[0], ARMS[2]): value for key, value in made.items() if key.startswith(ARMS[0])}
    else:
        put_to(case, ARMS[2], [*seen[: SHOWN - 1], right], ToolRouter(model), made)
    return made


def put_to(case: Case, arm: str, tools: Any, model: ToolRouter, made: dict[str, Any]) -> None:
    """Puts a case to a model, and notes what came of it."""
    begin = perf_counter()
    try:
        reply = ts.decide(case.messages, tools=tools, model=model)
        verdict = case.judge(reply)
        called = ", ".join(call.name for call in reply.calls)
        made |= {arm: verdict.right, f"{arm}, wrong": verdict.kind, f"{arm}, called": called}
        made[arm + GOOD] = verdict.right or as_good(case.expected, reply)
    except ts.GenerationError as error:
        made |= {arm: False, f"{arm}, wrong": str(error)[:120], arm + GOOD: False}
    made[f"{arm}, s"] = round(perf_counter() - begin, 2)


def having(tool: AnyTool, index: ToolIndex, embed: Embedder) -> ToolIndex:
    """The index with a tool in the place of its namesake."""
    old = index[tool.name]
    if (old.description, old.parameters) == (tool.description, tool.parameters):
        return index
    return ToolIndex([tool if one is old else one for one in index], embed=embed)


def shown(routed: ToolRouter, case: Case, index: ToolIndex) -> Sequence[AnyTool]:
    """What the model is shown first."""
    return routed.narrowed_now(Request(list(case.messages), tuple(index))).tools or ()


def among(case: Case, right: AnyTool, index: ToolIndex) -> list[AnyTool]:
    """The right tool and nine others, in an order of the seed's."""
    draw = random.Random(f"{SEED} {case.id}")
    ten = [right, *draw.sample([tool for tool in index if tool.name != right.name], SHOWN - 1)]
    draw.shuffle(ten)
    return ten


def tokens(model: Any, tools: Sequence[AnyTool]) -> int:
    """The tokens of definitions as JSON, by the model's own tokenizer."""
    text = "\n".join(json.dumps([tool.name, tool.description, tool.parameters], ensure_ascii=False) for tool in tools)
    assert isinstance(model.model, TokenCounter)
    return run_sync(model.model.count(Request(prompt=text))) or 0


# ------------------------------------------------------------------ twins


def as_good(expected: Any, reply: Reply) -> bool:
    """Whether a reply is the one call expected, made to a twin of its tool.

    Twins have names of the same words, in any order, but for the group before the last point and words that say nothing.
    The call's values must be such as the right call may have, each for another argument in the same unit, and none of
    those that it must have may lack.
    """
    if len(reply.calls) != 1 or len(expected) != 1:
        return False
    call, (name, wanted) = reply.calls[0], next(iter(expected[0].items()))
    named = name_words(name)
    return bool(named) and named == name_words(call.name) and matched(list(call.arguments.items()), dict(wanted))


def name_words(name: str) -> set[str]:
    """What the words of a tool's name that say something are compared by."""
    return stems.stems(" ".join(stems.parts(name.rpartition(".")[2]))) - SAYING_NOTHING


def matched(given: list[tuple[str, Any]], wanted: dict[str, list[Any]]) -> bool:
    """Whether each argument given can stand for another one wanted, and those left over may be left out."""
    if not given:
        return all("" in values for values in wanted.values())
    (name, value), *rest = given
    return any(
        unit(name) == unit(other)
        and any(same(value, one) for one in values)
        and matched(rest, {key: kept for key, kept in wanted.items() if key != other})
        for other, values in wanted.items()
    )


def unit(name: str) -> str:
    """The unit that an argument's name ends with, or ""."""
    last = stems.parts(name)[-1:]
    return FULL.get(last[0].casefold(), "") if last else ""


def same(one: Any, other: Any) -> bool:
    """Whether two values are one; upper and lower case apart."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    return one == other or str(one).casefold() == str(other).casefold()


# ------------------------------------------------------------------ what came of it


def told(
    done: Sequence[dict[str, Any]], index: ToolIndex, model: Any, held: Sequence[tuple[str, str]]
) -> Iterator[Row]:
    """What came of the cases, and the recall on questions `held`, with the names of their tools."""
    hits = sum(name in {tool.name for tool, _ in index.search(question, SHOWN)} for question, name in held)
    reached = 100 * hits / len(held)
    yield f"recall at {SHOWN}, {len(index):,} tools", f"{reached:.1f} %", f"of {len(held)} questions"
    found = wilson(sum(one["held"] for one in done), len(done))
    yield "  the right tool is shown", percent(found), f"of the {len(done)} cases here"
    for arm in ARMS:
        right = sum(one[arm] for one in done)
        seconds = sorted(one[f"{arm}, s"] for one in done)[len(done) // 2]
        yield (
            f"right, {arm}",
            percent(wilson(right, len(done))),
            f"{right} of {len(done)}; {seconds:.1f} s a case, median",
        )
    for arm in ARMS[1:]:
        yield verdict(done, reached, arm)
    for arm in ARMS:
        right = sum(one[arm + GOOD] for one in done)
        yield f"  twins too, {arm}", percent(wilson(right, len(done))), f"{right} of {len(done)}"
    yield verdict(done, reached, ARMS[1], GOOD)
    strayed = [one for one in done if one[ARMS[1]] and not one[ARMS[0]]]
    other = sum(one[f"{ARMS[0]}, wrong"] == "wrong tool" for one in strayed)
    named = sum(one["offered"] for one in strayed)
    yield (
        "lost beside among ten",
        f"{len(strayed)}",
        f"{other} to another tool, of which the case itself offers {named}",
    )
    whole = sum(tokens(model, [tool]) for tool in index)
    mean = sum(one["tokens"] for one in done) / len(done)
    share = 100 * mean / whole
    judged = "PASS" if share <= TOKENS else "over"
    yield "tokens of definitions", f"{mean:,.0f} of {whole:,}", f"{share:.2f} %; {judged}: at most {TOKENS:.0f} %"


def verdict(done: Sequence[dict[str, Any]], reached: float, arm: str, judged: str = "") -> Row:
    """What the routed arm reaches of the other, and the difference of the two with its paired interval."""
    pairs = [(one[arm + judged], one[ARMS[0] + judged]) for one in done]
    counts = [pairs.count(kind) for kind in ((True, True), (False, True), (True, False), (False, False))]
    apart = difference(*counts)
    best = sum(first for first, _ in pairs)
    share = 100 * sum(second for _, second in pairs) / best if best else 0.0
    least = reached - LESS
    return (
        f"{'  twins too, ' if judged else 'routed '}beside {arm}",
        f"{share:.1f} %",
        f"{'PASS' if share >= least else 'below'}: at least {least:.1f}; {points(apart.value)} points "
        f"[{points(apart.low)}, {points(apart.high)}], routed alone right {counts[1]}, the other alone {counts[2]}",
    )


def percent(estimate: Any) -> str:
    return f"{100 * estimate.value:.1f} % [{100 * estimate.low:.1f}, {100 * estimate.high:.1f}]"


def points(share: float) -> str:
    return f"{100 * share:+.1f}"


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--cases", type=int, default=CASES, help="how many, at most")
    parser.add_argument("--own", action="store_true", help="cases of our own")
    parser.add_argument("--kept", type=Path, help="a file of what is measured: the next run goes on from it")
    given = parser.parse_args()
    for what, value, note in rows(given.cases, given.kept, own=given.own):
        print(f"  {what:<30} {value:>24}  {note}", flush=True)


if __name__ == "__main__":
    main()
