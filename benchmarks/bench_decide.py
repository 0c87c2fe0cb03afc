"""How the embedded model decides: tool or no tool, which, with what; three methods on the cases in decisions.jsonl.

    python benchmarks/bench_decide.py [cases] [--methods likelihood,prompt,schema] [--json wrong.jsonl]

prompt: the tools in the prompt as JSON Schema, the answer read as `{"tool", "tool_input", "message"}`.
schema: the same, and the sampling held to a JSON Schema of the offered tools. likelihood: what
`decide(model="local")` does. A decision is right when no call comes where none is wanted, or when the one
wanted comes with all its arguments right; strings are compared without case and outer blanks, an optional
argument may be left out where its default is meant. Each request is put once (`tries=1`), greedily, and
words are cut at WORDS tokens in every method. The first cases alone are run with a number: they are
taken from every group in turn.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

import toolspeak as ts
from toolspeak.errors import GenerationError
from toolspeak.events import Event
from toolspeak.models.base import Capability, Model
from toolspeak.models.embedded.local import Local
from toolspeak.types import Request

HERE = Path(__file__).resolve().parent
WORDS = 96
GROUPS = ("simple", "multiple", "none")
Case = dict[str, Any]


class Plain:
    """A local model that offers nothing but text; held to a JSON Schema where one is given."""

    capabilities: frozenset[Capability] = frozenset()

    def __init__(self, model: Local, schema: dict[str, Any] | None = None) -> None:
        self.model, self.schema, self.name = model, schema, model.name

    def stream(self, request: Request) -> AsyncIterator[Event]:
        return self.model.stream(replace(request, schema=self.schema))


def schema_of(tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One object: a tool with its own arguments, or words with no tool."""

    def form(tool: Any, given: Any, message: Any) -> dict[str, Any]:
        fields = {"tool": tool, "tool_input": given, "message": message}
        return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}

    called = [form({"const": t["function"]["name"]}, t["function"]["parameters"], {"const": ""}) for t in tools]
    return {"oneOf": [*called, form({"const": None}, {"const": None}, {"type": "string"})]}


METHODS = {
    "prompt": lambda local, _: Plain(local),
    "schema": lambda local, tools: Plain(local, schema_of(tools)),
    "likelihood": lambda local, _: local,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one case: `kind` is right, call (a call too many), words (a call too few), tool, arguments or error."""

    case: Case
    kind: str
    came: str
    seconds: float


def cases(first: int | None = None, path: Path = HERE / "decisions.jsonl") -> list[Case]:
    """The cases, one group after the other in turn."""
    read = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    grouped = [[case for case in read if case["group"] == group] for group in GROUPS]
    turns = [case for case in chain.from_iterable(zip_longest(*grouped)) if case is not None]
    return turns[:first]


def put(case: Case, model: Model) -> Outcome:
    """One decision, and what is wrong with it."""
    begin = time.perf_counter()
    try:
        reply = ts.decide(case["request"], tools=case["tools"], model=model, tries=1, max_tokens=WORDS)
    except GenerationError as error:
        return Outcome(case, "error", str(error)[:300], time.perf_counter() - begin)
    seconds = time.perf_counter() - begin
    came = [{"name": call.name, "arguments": call.arguments} for call in reply.calls]
    shown = json.dumps(came, ensure_ascii=False) if came else f"words: {reply.text[:120]!r}"
    return Outcome(case, judged(case, came), shown, seconds)


def judged(case: Case, came: list[dict[str, Any]]) -> str:
    """`right`, or the first thing that is wrong."""
    wanted = case["calls"]
    if not wanted or not came:
        return "right" if len(wanted) == len(came) else "call" if came else "words"
    if len(came) != len(wanted) or came[0]["name"] != wanted[0]["name"]:
        return "tool"
    tool = next(t["function"] for t in case["tools"] if t["function"]["name"] == wanted[0]["name"])
    defaults = {k: s["default"] for k, s in tool["parameters"]["properties"].items() if "default" in s}
    gold = defaults | wanted[0]["arguments"]
    given = defaults | {key: value for key, value in came[0]["arguments"].items() if value is not None}
    same = gold.keys() == given.keys() and all(fits(gold[key], given[key]) for key in gold)
    return "right" if same else "arguments"


def fits(gold: Any, given: Any) -> bool:
    """Whether a value is the one wanted, or one of those that are accepted."""
    if isinstance(gold, dict):
        return any(fits(one, given) for one in gold["any"])
    if isinstance(gold, list):
        return (
            isinstance(given, list)
            and len(gold) == len(given)
            and all(fits(a, b) for a, b in zip(gold, given, strict=True))
        )
    if isinstance(gold, str):
        return isinstance(given, str) and gold.casefold().strip() == given.casefold().strip()
    return isinstance(gold, bool) == isinstance(given, bool) and gold == given


def wilson(right: int, total: int, z: float = 1.96) -> tuple[float, float]:
    """The 95 % interval of a share, after Wilson."""
    share, spread = right / total, z * z / total
    middle = (share + spread / 2) / (1 + spread)
    half = z / (1 + spread) * math.sqrt(share * (1 - share) / total + spread / (4 * total))
    return max(0.0, middle - half), min(1.0, middle + half)


def share(outcomes: Sequence[Outcome]) -> tuple[str, str]:
    """Right decisions in percent, with their interval and number."""
    right = sum(outcome.kind == "right" for outcome in outcomes)
    low, high = wilson(right, len(outcomes))
    return f"{right / len(outcomes):.0%}", f"{low:.0%} – {high:.0%}, {right} of {len(outcomes)}"


def rows(
    first: int | None = None, methods: Sequence[str] = tuple(METHODS), outcomes: list[Outcome] | None = None
) -> Iterator[tuple[str, str, str]]:
    """Right decisions of each method, whole and by group; then seconds a decision, as ratios to the cheapest."""
    local = Local()
    chosen = cases(first)
    put(chosen[0], local)  # loads the file
    seconds: dict[str, float] = {}
    for method in methods:
        done = [put(case, METHODS[method](local, case["tools"])) for case in chosen]
        seconds[method] = sum(outcome.seconds for outcome in done) / len(done)
        yield f"{method}: right", *share(done)
        for group in GROUPS:
            if some := [outcome for outcome in done if outcome.case["group"] == group]:
                yield f"{method}: {group}", *share(some)
        kinds = ", ".join(
            f"{kind} {n}"
            for kind in sorted({o.kind for o in done} - {"right"})
            if (n := sum(o.kind == kind for o in done))
        )
        yield f"{method}: wrong", str(sum(o.kind != "right" for o in done)), kinds
        if outcomes is not None:
            outcomes += done
    for method, mean in seconds.items():
        yield f"{method}: seconds a decision", f"{mean:.2f} s", f"{mean / min(seconds.values()):.1f} × the cheapest"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="?", type=int, help="only so many cases")
    parser.add_argument("--methods", default=",".join(METHODS), help=f"of {', '.join(METHODS)}")
    parser.add_argument("--json", type=Path, help="write every wrong decision there, one a line")
    given = parser.parse_args()
    outcomes: list[Outcome] = []
    for what, value, note in rows(given.cases, given.methods.split(","), outcomes):
        print(f"{what:<36} {value:>12}  {note}", flush=True)
    if given.json:
        wrong = [o for o in outcomes if o.kind != "right"]
        lines = [{"id": o.case["id"], "kind": o.kind, "request": o.case["request"], "came": o.came} for o in wrong]
        given.json.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
