"""Choosing tools: recall on the leaderboard's questions, alone and among 5,000 cloud operations; what search costs.

    python benchmarks/bench_search.py            # recall, lexical
    python benchmarks/bench_search.py --dense    # the hybrid too (extra `dense`; embeds every tool once)
    python benchmarks/bench_search.py --speed    # time and memory, beside plain bm25s

The tools are those of BFCL's simple_python, multiple, live_simple and live_multiple, the first of each name; a question
is the user's last message, and right is the tool that the answer calls. Weights were tuned on the questions whose
id has an even first byte of SHA-256; the rows below tell of the others. Distractors are operations of botocore's service
models, if that package is there.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import html
import json
import platform
import re
import sys
import tracemalloc
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))

from toolspeak.evals import bfcl_package as package
from toolspeak.evals.bfcl import schema
from toolspeak.search import ToolIndex
from toolspeak.types import Tool

Row = tuple[str, str, str]
AnyTool = Tool[..., Any]

CATEGORIES = ("simple_python", "multiple", "live_simple", "live_multiple")
DISTRACTORS = 5_000
DEPTHS = (1, 3, 5, 10, 20)
BARS = {"lexical": {5: 85.0, 10: 90.0}, "hybrid": {5: 91.0, 10: 95.0}}
LOST = 4.0
"""Points of recall that the distractors may cost."""
MOST = {10_000: 1.0, 100_000: 5.0}
"""Milliseconds that 99 of 100 searches may take at most, by the number of tools."""


class Question(NamedTuple):
    """A question of the leaderboard, the tool that answers it, and whether weights were tuned on it."""

    category: str
    text: str
    tool: str
    tuned: bool


def rows(what: Sequence[str] = ("recall", "speed")) -> Iterator[Row]:
    """(what, recall or time, the rest)."""
    if not package.present():
        yield "BFCL", "-", "not here: python -m toolspeak.evals fetches it"
        return
    if "recall" in what:
        yield from recalls("lexical", None)
    if "dense" in what:
        yield from recalls("hybrid", "minilm")
    if "speed" in what:
        yield from speeds()


# ------------------------------------------------------------------ what is searched


@cache
def leaderboard() -> tuple[tuple[AnyTool, ...], tuple[Question, ...]]:
    """The tools and the questions."""
    tools: dict[str, AnyTool] = {}
    questions: list[Question] = []
    folder = package.ensure() / package.ROOT / "data"
    for category in CATEGORIES:
        name = f"BFCL_v4_{category}.json"
        answers = {one["id"]: one["ground_truth"] for one in lines(folder / "possible_answer" / name)}
        for entry in lines(folder / name):
            for f in entry["function"]:
                tools.setdefault(f["name"], Tool(f["name"], f["description"], schema(f["parameters"])))
            asked = [message["content"] for message in entry["question"][-1] if message["role"] == "user"]
            tuned = hashlib.sha256(entry["id"].encode()).digest()[0] % 2 == 0
            questions.append(Question(category, asked[-1], next(iter(answers[entry["id"]][0])), tuned))
    return tuple(tools.values()), tuple(questions)


def lines(path: Path) -> Iterator[Any]:
    return (json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip())


@cache
def operations(at_most: int) -> tuple[AnyTool, ...]:
    """Operations of whole services, in an order that is the same everywhere; none where botocore is not installed."""
    try:
        import botocore
    except ImportError:
        return ()
    found: list[AnyTool] = []
    folders = [path for path in (Path(botocore.__file__).parent / "data").iterdir() if path.is_dir()]
    for folder in sorted(folders, key=lambda path: hashlib.sha256(path.name.encode()).digest()):
        versions = sorted(folder.glob("*/service-2.json.gz"))
        if versions:
            found += of_service(folder.name, json.loads(gzip.decompress(versions[-1].read_bytes())))
        if len(found) >= at_most:
            break
    return tuple(found[:at_most])


def of_service(service: str, model: Any) -> Iterator[AnyTool]:
    for name, operation in model["operations"].items():
        shape = model["shapes"].get(operation.get("input", {}).get("shape"), {})
        properties = {}
        for member, told in shape.get("members", {}).items():
            inner = model["shapes"].get(told["shape"], {})
            properties[member] = {"type": "string", "description": plain(told.get("documentation", ""), 200)}
            if "enum" in inner:
                properties[member]["enum"] = inner["enum"]
        yield Tool(
            f"{service}_{name}",
            plain(operation.get("documentation", ""), 600),
            {"type": "object", "properties": properties},
        )


def plain(text: str, at_most: int) -> str:
    return html.unescape(re.sub(r"<[^>]*>", " ", text[: 4 * at_most])).strip()[:at_most]


# ------------------------------------------------------------------ recall


class Remembered:
    """An embedder that is asked for a question once, though questions are asked again."""

    def __init__(self, name: str) -> None:
        from toolspeak.search.embedders import embedder

        self.embedder, self.known = embedder(name), {}
        self.name = self.embedder.name

    def embed(self, texts: Sequence[str]) -> Any:
        if len(texts) > 1:
            return self.embedder.embed(texts)
        if texts[0] not in self.known:
            self.known[texts[0]] = self.embedder.embed(texts)
        return self.known[texts[0]]


def recalls(kind: str, spec: str | None) -> Iterator[Row]:
    tools, questions = leaderboard()
    embed = Remembered(spec) if spec else None
    held = [question for question in questions if not question.tuned]
    tuned = [question for question in questions if question.tuned]
    index = ToolIndex(tools, embed=embed)
    alone = recall(index, held)
    yield f"{kind}, {len(tools):,} tools", shown(alone), f"of {len(held)} questions held back; {judged(kind, alone)}"
    yield "  on those tuned on", shown(recall(index, tuned)), f"of {len(tuned)}"
    for category in CATEGORIES:
        part = [question for question in held if question.category == category]
        yield f"  held back, {category}", shown(recall(index, part)), f"of {len(part)}"
    if more := operations(DISTRACTORS):
        index.add(*more)
        among = recall(index, held)
        lost = max(alone[k] - among[k] for k in BARS[kind])
        verdict = "PASS" if lost <= LOST else f"over: at most {LOST}"
        yield f"{kind}, {len(index):,} tools", shown(among), f"held back; {lost:.1f} points lost at 5 or 10; {verdict}"
    else:
        yield f"{kind} among {DISTRACTORS:,} more", "-", "botocore is not installed"


def recall(index: ToolIndex, questions: Sequence[Question]) -> dict[int, float]:
    """Percent of questions whose tool is among the first k."""
    hits = dict.fromkeys(DEPTHS, 0)
    for question in questions:
        found = [tool.name for tool, _ in index.search(question.text, max(DEPTHS))]
        place = found.index(question.tool) if question.tool in found else max(DEPTHS)
        for k in DEPTHS:
            hits[k] += place < k
    return {k: 100 * count / len(questions) for k, count in hits.items()}


def shown(recall: dict[int, float]) -> str:
    return " / ".join(f"{recall[k]:.1f}" for k in DEPTHS)


def judged(kind: str, recall: dict[int, float]) -> str:
    bars = BARS[kind]
    wanted = ", ".join(f"R@{k} {bar:.0f}" for k, bar in bars.items())
    return f"{'PASS' if all(recall[k] >= bar for k, bar in bars.items()) else 'below'}: at least {wanted}"


# ------------------------------------------------------------------ speed


def speeds() -> Iterator[Row]:
    asked = [question.text for question in leaderboard()[1]][::4]
    yield "this machine", platform.machine(), f"CPython {platform.python_version()}, numpy {version('numpy')}; CPU time"
    for count, most in MOST.items():
        tools = many(count)
        begin = process_time()
        index = ToolIndex(tools)
        build = process_time() - begin
        ours = percentiles(lambda text, index=index: index.search(text, 10), asked)
        verdict = "PASS" if ours[1] <= most else f"over: at most {most} ms"
        yield (
            f"search, {count:,} tools",
            f"{ours[0]:.2f} / {ours[1]:.2f}",
            f"ms, p50 / p99, tokenising included; {verdict}",
        )
        yield from beside(tools, asked, build, ours)
        yield from changes(index, count)
    tracemalloc.start()
    kept = ToolIndex(many(10_000))
    size = tracemalloc.get_traced_memory()[0] / 1e6
    tracemalloc.stop()
    yield "memory, 10,000 tools", f"{size:.0f} MB", f"without the {len(kept):,} tools themselves; {within(size, 100)}"


def many(count: int) -> list[AnyTool]:
    """So many tools: the leaderboard's, then operations, then the same under other names."""
    pool = [*leaderboard()[0], *operations(30_000)]
    turns = -(-count // len(pool))
    return [
        Tool(f"{one.name}_{turn}" if turn else one.name, one.description, one.parameters)
        for turn in range(turns)
        for one in pool
    ][:count]


def percentiles(search: Any, asked: Sequence[str]) -> tuple[float, float]:
    """Milliseconds: the median and what 99 of 100 stay below, each question's best of three."""
    times: list[float] = []
    for text in asked:
        tries: list[float] = []
        for _ in range(3):
            begin = process_time()
            search(text)
            tries.append(process_time() - begin)
        times.append(min(tries) * 1e3)
    times.sort()
    return times[len(times) // 2], times[len(times) * 99 // 100]


def beside(tools: Sequence[AnyTool], asked: Sequence[str], build: float, ours: tuple[float, float]) -> Iterator[Row]:
    """Plain bm25s over the same texts: name, description and schema in one field."""
    yield f"build, {len(tools):,} tools", f"{build:.2f} s", within(build, 2 * len(tools) / 10_000)
    try:
        import bm25s
        import Stemmer
    except ImportError:
        yield "  beside bm25s", "-", "not installed"
        return
    stemmer = Stemmer.Stemmer("english")
    begin = process_time()
    texts = [f"{one.name} {one.description} {json.dumps(one.parameters)}" for one in tools]
    plain = bm25s.BM25()
    plain.index(bm25s.tokenize(texts, stemmer=stemmer, show_progress=False), show_progress=False)
    peer_build = process_time() - begin

    def search(text: str) -> None:
        tokens = bm25s.tokenize(text, stemmer=stemmer, return_ids=False, show_progress=False)
        plain.retrieve(tokens, k=10, show_progress=False)

    peer = percentiles(search, asked)
    yield (
        f"  bm25s {version('bm25s')}",
        f"{peer[0]:.2f} / {peer[1]:.2f}",
        f"ms; ours x{ours[0] / peer[0]:.2f} / x{ours[1] / peer[1]:.2f}; built in {peer_build:.2f} s, ours x{build / peer_build:.2f}",
    )


def changes(index: ToolIndex, count: int) -> Iterator[Row]:
    """What adding and removing single tools takes, the merges among them included."""
    new = [Tool(f"{one.name}_new", one.description, one.parameters) for one in leaderboard()[0]]
    adding = [timed(index.add, one) for one in new]
    removing = [timed(index.remove, one.name) for one in new]
    for what, times in (("add one", adding), ("remove one", removing)):
        worst = max(times)
        yield (
            f"{what}, {count:,} tools",
            f"{sum(times) / len(times):.2f} / {worst:.1f}",
            f"ms, mean / worst of {len(times):,}, the overlay's merges included"
            + (f"; {within(worst, 5)}" if count == 10_000 else ""),
        )


def timed(work: Any, *arguments: Any) -> float:
    begin = process_time()
    work(*arguments)
    return (process_time() - begin) * 1e3


def within(value: float, most: float) -> str:
    return "PASS" if value <= most else f"over: at most {most:g}"


def main() -> None:
    """Prints the rows asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--speed", action="store_true", help="time and memory instead of recall")
    parser.add_argument("--dense", action="store_true", help="recall of the hybrid too")
    given = parser.parse_args()
    for what, value, note in rows(["speed"] if given.speed else ["recall", *["dense"] * given.dense]):
        print(f"  {what:<36} {value:>34}  {note}", flush=True)


if __name__ == "__main__":
    main()
