"""Writes the results as a page: one self-contained HTML file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import Any, cast

from ..errors import UsageError
from ..files import replacing
from . import plots
from .compare import Comparison, PairedCounts, compare, p_text
from .results import Manifest, Record, read, read_manifest
from .stats import Estimate
from .summary import summarise, table
from .trace import Step, unpacked

MOST_FAILURES = 200
"""The most failed cases of a contender that the page lists; the JSON Lines file has all."""
STEPS, LONG = 40, 20_000
"""The most steps of a case on the page, and the most characters of a text."""
TITLE = 120
"""Characters of each half of the page's title."""
PAGE = "report.html"
STYLE = "page.css"
"""The style sheet of all pages."""


def write(folder: Path | str, records: Sequence[Record] | None = None) -> Path:
    """Writes the page for a folder's results (or only for `records`) into the folder, and returns its path."""
    home = Path(folder)
    every = list(read(home) if records is None else records)
    if not every:
        raise UsageError(f"{home} has no results yet")
    path = home / PAGE
    text = page(every, read_manifest(home))
    with replacing(path) as file:
        file.write(text.encode())
    return path


def page(records: Sequence[Record], manifest: Manifest | None = None) -> str:
    """The HTML page for these records."""
    summaries = summarise(records)
    by = {s.contender: [record for record in records if record.contender == s.contender] for s in summaries}
    titles, rows = table(summaries)
    return rendered(
        PAGE,
        about=_title(titles[1:], manifest),
        manifest=None if manifest is None else _about(manifest),
        titles=titles,
        rows=rows,
        accuracy=plots.accuracy(summaries),
        contenders=plots.legend([summary.contender for summary in summaries]),
        kinds=plots.kinds(summaries),
        kinds_legend=plots.kinds_legend(summaries),
        seconds=plots.seconds(summaries, [[record.seconds for record in own] for own in by.values()]),
        comparisons=[_compared(compare(by[a], by[b])) for a, b in combinations(by, 2) if _common(by[a], by[b])],
        failures=[_failures(name, own) for name, own in by.items()],
    )


def rendered(template: str, **values: Any) -> str:
    """A page rendered from a template in this folder."""
    from minijinja import Environment

    home = files(__package__ or "")
    parts = {name: home.joinpath(name).read_text("utf-8") for name in (template, STYLE)}
    return Environment(templates=parts).render_template(template, **values)


def _title(contenders: Sequence[str], manifest: Manifest | None) -> str:
    """The title of a page, which distinguishes it from others."""
    names = ", ".join(name[:TITLE] for name in contenders[:3]) + (
        f" and {len(contenders) - 3} more" * (len(contenders) > 3)
    )
    sources = f" on {manifest.cases} cases of {', '.join(manifest.sources)}"[:TITLE] if manifest else ""
    return f"How well {names} did{sources}"


def _about(manifest: Manifest) -> dict[str, Any]:
    settings = ", ".join(f"{name} {value}" for name, value in manifest.settings.items() if value is not None)
    return {
        "sources": ", ".join(manifest.sources),
        "cases": manifest.cases,
        "settings": settings,
        "version": manifest.version,
    }


def _common(one: Sequence[Record], other: Sequence[Record]) -> bool:
    return bool({record.case for record in one} & {record.case for record in other})


def _compared(comparison: Comparison) -> dict[str, Any]:
    return {
        "first": comparison.first,
        "second": comparison.second,
        "verdict": comparison.verdict,
        "rows": compared_rows(comparison),
    }


def compared_rows(comparison: Comparison) -> list[list[str]]:
    """The rows of a comparison table (name, cases, won, lost, points, p): the groups, their mean, all cases together."""
    if len(comparison.groups) == 1:
        return [_row(comparison.groups[0])]
    between = ["mean of groups", "", "", "", points(comparison.macro), ""]
    return [*map(_row, comparison.groups), between, _row(comparison.overall)]


def _row(line: PairedCounts) -> list[str]:
    return [line.name, str(line.total), str(line.won), str(line.lost), points(line.difference), p_text(line.p)]


def points(estimate: Estimate) -> str:
    """A difference of shares in percentage points: `+4 (−1 to +9)`."""
    low, high = 100 * estimate.low, 100 * estimate.high
    return f"{100 * estimate.value:+.1f} ({low:+.1f} to {high:+.1f})".replace("-", "−")


def _failures(contender: str, records: Sequence[Record]) -> dict[str, Any]:
    wrong = [record for record in records if not record.right]
    by: dict[str, list[dict[str, Any]]] = {}
    for record in wrong[:MOST_FAILURES]:
        by.setdefault(record.kind, []).append(_failure(record))
    kinds = sorted(by.items(), key=lambda item: -len(item[1]))
    return {
        "contender": contender,
        "count": len(wrong),
        "total": len(records),
        "kinds": kinds,
        "left": max(0, len(wrong) - MOST_FAILURES),
    }


def _failure(record: Record) -> dict[str, Any]:
    steps = unpacked(record.steps)
    return {
        "id": record.case,
        "group": record.group,
        "detail": record.detail,
        "question": record.question,
        "tools": ", ".join(record.tools),
        "expected": _json(record.expected),
        "came": _json(record.calls) if record.calls else record.text or "nothing",
        "notes": record.notes,
        "seconds": f"{record.seconds:.2f}",
        "messages": _json(record.messages) if len(record.messages) > 1 else "",
        "steps": [_step(step, i) for i, step in enumerate(steps[:STEPS], 1)],
        "left": max(0, len(steps) - STEPS),
    }


def _step(step: Step, number: int) -> dict[str, Any]:
    if "score" in step:
        score = step["score"]
        pairs = zip(score["texts"], score["scores"], strict=True)
        return {
            "title": f"{number}. how likely",
            "sent": _cut(score["prompt"]),
            "scores": [(t, f"{s:.2f}") for t, s in pairs],
        }
    ask, came = step["ask"], step.get("came", {})
    rest = {name: value for name, value in ask.items() if name not in ("prompt", "grammar")}
    sent = [ask["prompt"]] if "prompt" in ask else []
    rest_text = json.dumps(rest, ensure_ascii=False, indent=1, default=str) if rest else ""
    return {
        "title": f"{number}. asked",
        "sent": _cut("\n\n".join([*sent, *filter(None, (rest_text, ask.get("grammar", "")))])),
        "came": _cut(_reply_text(came)),
    }


def _reply_text(came: dict[str, Any]) -> str:
    parts = [came.get("thought", ""), came.get("text", ""), _json(came["calls"]) if came.get("calls") else ""]
    return "\n\n".join(filter(None, parts)) or "nothing"


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[:LONG]}\n… {len(text) - LONG} more characters are in the JSON lines"


def _json(value: Any) -> str:
    if isinstance(value, str):
        return value
    listed = cast("list[Any]", value if isinstance(value, list) else [value])
    return "\n".join(json.dumps(one, ensure_ascii=False, default=str) for one in listed) or "no call"
