"""What each part of deciding by likelihood brings: the leaderboard's examples 100 to 149, parts taken out one by one.

    python benchmarks/ablation.py [--examples 100:150] [--run DIR]

The method was set on these examples; how it does on others is measured by `toolspeak eval`, whose folder --run names,
and told in the same page. Writes benchmarks/results/ablation.md and the plots, and the tables into docs/explanation/weak-models.md.
Likelihoods are remembered in benchmarks/.memo, so that a variant costs what it asks anew; words are not made, for they
make no difference to what is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import sqlite3
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "src"))

from toolspeak import evals, stems
from toolspeak.evals import plots
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.models.base import Capability
from toolspeak.models.embedded.local import Local
from toolspeak.nlu import action_verbs, assignment, evidence, intent, slots
from toolspeak.nlu.entities import number_units
from toolspeak.nlu.multiple import calls
from toolspeak.types import Request
from toolspeak.wire.reading.collect import collect

GROUPS = ("simple", "multiple", "parallel", "live_simple", "live_multiple", "irrelevance")
PAGE = HERE.parent / "docs" / "explanation" / "weak-models.md"
IMAGES = HERE.parent / "docs" / "images"
Variant = tuple[str, Sequence[tuple[Any, str, Any]]]


class Remembered:
    """The embedded model, asked once for each likelihood and each text; without words."""

    capabilities: frozenset[Capability] = Local.capabilities
    name = "local"

    def __init__(self, path: Path) -> None:
        self.model = Local()
        self.memo = sqlite3.connect(path)
        self.memo.execute("create table if not exists k (h text primary key, v text)")

    def known(self, key: str) -> Any:
        row = self.memo.execute("select v from k where h = ?", (key,)).fetchone()
        return json.loads(row[0]) if row else None

    def keep(self, key: str, value: Any) -> None:
        with self.memo:
            self.memo.execute("insert or replace into k values (?, ?)", (key, json.dumps(value)))

    async def score(self, prompt: str, continuations: Sequence[str]) -> list[float]:
        """As the model's, remembered."""
        keys = [digest("S", prompt, text) for text in continuations]
        told = [self.known(key) for key in keys]
        new = [i for i, value in enumerate(told) if value is None]
        scores = await self.model.score(prompt, [continuations[i] for i in new]) if new else []
        for i, value in zip(new, scores, strict=True):
            told[i] = value
            self.keep(keys[i], value)
        return told

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        """A continued prompt, remembered; of a conversation no words."""
        if request.prompt is not None:
            body = {"prompt": request.prompt, "max_tokens": request.max_tokens, "temperature": 0, "cache_prompt": True}
            body |= {"stop": list(request.stop)} if request.stop else {}
            body |= {"json_schema": dict(request.schema)} if request.schema else {}
            key = digest("C", json.dumps(body, sort_keys=True))
            if (kept := self.known(key)) is None:
                events = [event async for event in self.model.stream(request)]
                reply = collect(events)
                kept = {"text": reply.text, "finish": reply.finish}
                self.keep(key, kept)
            yield TextDelta(kept["text"])
            yield Finished(kept["finish"])
            return
        yield Finished()


def digest(*parts: str) -> str:
    return hashlib.sha1("\0".join(parts).encode(), usedforsecurity=False).hexdigest()


def first_alone(_tool: Any, _text: str, arguments: Any) -> tuple[list[dict[str, Any]], int]:
    return [dict(arguments)], 0


def always(value: Any) -> Callable[..., Any]:
    """A function that gives the value, whatever it is asked."""
    return lambda *_: value


VARIANTS: list[Variant] = [
    ("all of it", []),
    ("a call, whatever is asked", [(intent, "surplus", always(1e9))]),
    ("no words compared for a tool", [(intent, name, 0.0) for name in ("NAME_WORTH", "SHARE_WORTH", "TOLD_WORTH")]),
    (
        "no numbers counted for a tool",
        [(intent, name, 0.0) for name in ("NUMBERS_FIT", "NUMBERS_EXACT", "NUMBER_WANTED")],
    ),
    ("what is asked for has no say", [(intent, name, 0.0) for name in ("SOUGHT_WORTH", "UNSOUGHT")]),
    ("arguments have no say", [(intent, name, 0.0) for name in ("FILLED_WORTH", "COPIED_WORTH")]),
    ("no words around numbers", [(stems, "nearness", always(0.0))]),
    ("nothing given out word for word", [(assignment.pieces, "marked", always([]))]),
    (
        "no form, name or option looked for",
        [(evidence, "by_form", always({})), (evidence, "named", always([])), (evidence, "option", always(None))],
    ),
    ("no units read", [(number_units, "unit_support", always(0.0))]),
    ("no verbs of tools compared", [(action_verbs, "differ", always(False))]),
    ("no pieces grown to names", [(slots.pieces, "grown", lambda _text, span: span)]),
    ("one call at most", [(calls, "alternatives", first_alone), (calls, "clauses", always([]))]),
]


@contextmanager
def without(changes: Sequence[tuple[Any, str, Any]]) -> Iterator[None]:
    with ExitStack() as stack:
        for module, name, value in changes:
            stack.enter_context(patch.object(module, name, value))
        yield


def ablation(examples: str) -> list[evals.ContenderSummary]:
    """One summary for every variant."""
    cases = evals.load(*(f"bfcl:{group}[{examples}]" for group in GROUPS))
    model = Remembered(HERE / ".memo")
    done: list[evals.ContenderSummary] = []
    for title, changes in VARIANTS:
        with without(changes), tempfile.TemporaryDirectory() as out:
            records = asyncio.run(evals.arun(cases, [evals.Contender(model, title=title)], out))
        done += evals.summarise(records)
        print(
            f"{title}: {mean(done[-1]):.1f} of 100, irrelevance {share(done[-1], 'irrelevance'):.0f}", file=sys.stderr
        )
    return done


def share(summary: evals.ContenderSummary, group: str) -> float:
    names = [one.name for one in summary.groups if one.name.startswith(group)]
    return 100 * summary.group(names[0]).share.value if names else float("nan")


def mean(summary: evals.ContenderSummary) -> float:
    """Of the five groups in which a call is wanted."""
    return sum(share(summary, group) for group in GROUPS[:5]) / 5


def parts_table(done: Sequence[evals.ContenderSummary]) -> str:
    """The ablation as Markdown."""
    rows = [["without", "mean of five", *GROUPS], ["---"] * (len(GROUPS) + 2)]
    for summary in done:
        whole = summary is done[0]
        rows.append(
            [
                f"nothing: {summary.contender}" if whole else summary.contender,
                f"{mean(summary):.1f}" + ("" if whole else f" ({mean(summary) - mean(done[0]):+.1f})"),
                *(f"{share(summary, group):.0f}" for group in GROUPS),
            ]
        )
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def measured(folder: Path) -> tuple[str, evals.ContenderSummary]:
    """The table of a run of `toolspeak eval`, and its summary."""
    (summary,) = evals.summarise(evals.read(folder))
    rows = [["the first examples of", "right", "wrong because of"], ["---"] * 3]
    wrong: dict[str, dict[str, int]] = {}
    for record in evals.read(folder):
        if not record.right:
            kinds = wrong.setdefault(record.group, {})
            kinds[record.kind] = kinds.get(record.kind, 0) + 1
    for group in summary.groups:
        kinds = sorted(wrong.get(group.name, {}).items(), key=lambda one: -one[1])
        low, high = group.share.low, group.share.high
        told = f"{100 * group.share.value:.0f} % ({100 * low:.0f}–{100 * high:.0f}), {group.right} of {group.total}"
        rows.append([group.name, told, ", ".join(f"{kind} {count}" for kind, count in kinds)])
    rows.append(["**mean of the five with calls**", f"**{mean(summary):.1f} %**", ""])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows), summary


def written(marker: str, text: str, page: str) -> str:
    """The page with a generated part anew, between `<!-- made: marker -->` and `<!-- end -->`."""
    before, mark, rest = page.partition(f"<!-- made: {marker} -->\n")
    if not mark:
        raise SystemExit(f"{PAGE} has no part {marker!r}")
    _, end, after = rest.partition("<!-- end -->")
    return f"{before}{mark}{text}{end}{after}"


def picture(name: str, draw: Callable[[], str]) -> None:
    """A plot as a file of its own, in colours that both light and dark pages bear."""
    colors = " ".join(f".s{i}{{fill:{color}}}" for i, color in enumerate(PALETTE))
    style = f"<style>text{{font:12px sans-serif;fill:#888}} .in{{fill:#fff}} line,path{{stroke:#999}} {colors}</style>"
    svg = draw()
    head, close, body = svg.partition(">")
    if "xmlns" not in head:
        head += ' xmlns="http://www.w3.org/2000/svg"'
    IMAGES.mkdir(exist_ok=True)
    (IMAGES / name).write_text(f"{head}{close}{style}{body}\n", encoding="utf-8")


PALETTE = ("#4c78a8", "#f58518", "#54a24b", "#e45756", "#72b7b2", "#b279a2", "#ff9da6", "#9d755d", "#bab0ac")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--examples", default="100:150")
    parser.add_argument("--run", type=Path, help="a folder of toolspeak eval, over examples 0 to 99")
    options = parser.parse_args()
    page = PAGE.read_text(encoding="utf-8")
    results = HERE / "results" / "ablation.md"
    if options.run:
        table, summary = measured(options.run)
        line = f"\n{summary.seconds_mean:.1f} seconds a case in the mean, {summary.seconds_median:.1f} in the median.\n"
        page = written("measured", table + line, page)
        picture("small-accuracy.svg", lambda: plots.accuracy([summary]))
        picture("small-errors.svg", lambda: plots.kinds([summary]))
    done = ablation(options.examples)
    page = written("parts", parts_table(done), page)
    PAGE.write_text(page, encoding="utf-8")
    results.write_text(f"# What each part brings\n\n{parts_table(done)}", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
