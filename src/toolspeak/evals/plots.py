"""Draws plots as SVG for a self-contained page. Colors come from the page's style sheet; every text is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from ..schema.phrases import beginning
from .case import KINDS, Kind
from .stats import Estimate, median
from .summary import ContenderSummary, percent

WIDTH, LEFT, RIGHT = 760, 190, 60
BAR, GAP = 14, 10
COLORS = 9
"""The number of series that have their own color in the style sheet."""


def accuracy(summaries: Sequence[ContenderSummary]) -> str:
    """Bar chart of accuracy with 95 % intervals: one bar per contender in each group."""
    names = list(dict.fromkeys(group.name for summary in summaries for group in summary.groups))
    rows = [(name, [summary.group(name).share for summary in summaries]) for name in names]
    if len(names) > 1:
        rows.append(("mean of groups", [summary.macro for summary in summaries]))
    return bars(rows)


def bars(rows: Sequence[tuple[str, Sequence[Estimate]]]) -> str:
    """Bar chart of shares with intervals. Each row is a name and one estimate per series."""
    parts: list[str] = []
    y = 24
    for name, estimates in rows:
        height = len(estimates) * BAR
        parts.append(_label(name, y + height / 2))
        for i, estimate in enumerate(estimates):
            if estimate.value == estimate.value:  # NaN: the share of no cases
                parts += _bar(y + i * BAR, estimate.value, estimate.low, estimate.high, i, percent(estimate))
        y += height + GAP
    return _svg(y + 4, [*_scale([(share / 4, f"{25 * share} %") for share in range(5)], y), *parts])


def kinds(summaries: Sequence[ContenderSummary]) -> str:
    """Stacked bars of the kinds of error as shares of all cases, one bar per contender."""
    parts: list[str] = []
    y = 24
    for summary in summaries:
        parts.append(_label(summary.contender, y + BAR))
        x, total = float(LEFT), summary.overall.total
        for kind, count in summary.kinds.items():
            width = _width(count / total)
            title = f"{kind}: {count} of {total}"
            parts.append(_box(x, y, width, 2 * BAR, f"s{_color(kind)}", title))
            if width > 24:
                parts.append(f'<text class="in" x="{x + width / 2:.1f}" y="{y + BAR + 4}">{count}</text>')
            x += width
        y += 2 * BAR + GAP
    return _svg(y + 4, [*_scale([(share / 4, f"{25 * share} %") for share in range(5)], y), *parts])


def seconds(summaries: Sequence[ContenderSummary], samples: Sequence[Sequence[float]]) -> str:
    """Box plot of the seconds per case: the box holds the middle half, split at the median."""
    step = _round_step(max((max(sample, default=0.0) for sample in samples), default=0.0))
    longest = 4 * step
    parts: list[str] = []
    y = 24
    for i, (summary, sample) in enumerate(zip(summaries, samples, strict=True)):
        ordered = sorted(sample)
        low, middle, high = (_quantile(ordered, q) for q in (0.25, 0.5, 0.75))
        parts.append(_label(summary.contender, y + BAR))
        line = f'y1="{y + BAR}" y2="{y + BAR}"'
        parts.append(f'<line class="whisker" x1="{_x(ordered[0] / longest)}" x2="{_x(ordered[-1] / longest)}" {line}/>')
        title = f"median {middle:.2f} s, half of them {low:.2f}–{high:.2f} s, longest {ordered[-1]:.2f} s"
        parts.append(
            _box(float(_x(low / longest)), y, _width((high - low) / longest), 2 * BAR, f"s{i % COLORS}", title)
        )
        at = _x(median(ordered) / longest)
        parts.append(f'<line class="median" x1="{at}" x2="{at}" y1="{y}" y2="{y + 2 * BAR}"/>')
        y += 2 * BAR + GAP
    ticks = [(share / 4, f"{step * share:g} s") for share in range(5)]
    return _svg(y + 4, [*_scale(ticks, y), *parts])


def _round_step(longest: float) -> float:
    """A quarter of a scale that reaches beyond `longest`, as a round number."""
    magnitude = 10.0 ** math.floor(math.log10(longest / 4)) if longest > 0 else 0.1
    return next(
        round(figure * magnitude, 12)
        for figure in (1, 1.5, 2, 2.5, 3, 4, 5, 7.5, 10)
        if 4 * figure * magnitude >= longest
    )


def legend(names: Sequence[str], colors: Sequence[int] | None = None) -> list[tuple[str, str]]:
    """(class, name) of each series."""
    return [(f"s{color % COLORS}", name) for color, name in zip(colors or range(len(names)), names, strict=True)]


def kinds_legend(summaries: Sequence[ContenderSummary]) -> list[tuple[str, str]]:
    """(class, name) of each kind of error that occurs."""
    there: list[Kind] = [kind for kind in KINDS if any(kind in summary.kinds for summary in summaries)]
    return legend(there, [_color(kind) for kind in there])


def _color(kind: Kind) -> int:
    return KINDS.index(kind) % COLORS if kind in KINDS else 0


def _quantile(ordered: Sequence[float], q: float) -> float:
    at = q * (len(ordered) - 1)
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (at - low) * (ordered[high] - ordered[low])


def _x(share: float) -> str:
    return f"{LEFT + _width(share):.1f}"


def _width(share: float) -> float:
    return share * (WIDTH - LEFT - RIGHT)


def _label(text: str, y: float) -> str:
    return f'<text class="label" x="{LEFT - 8}" y="{y + 4:.1f}">{escape(beginning(text, 26))}<title>{escape(text)}</title></text>'


def _bar(y: float, value: float, low: float, high: float, series: int, title: str) -> list[str]:
    middle = y + BAR / 2
    return [
        _box(LEFT, y + 1, _width(value), BAR - 2, f"s{series % COLORS}", title),
        f'<path class="whisker" d="M{_x(low)} {middle}H{_x(high)}M{_x(low)} {middle - 3}v6M{_x(high)} {middle - 3}v6"/>',
        f'<text class="value" x="{float(_x(high)) + 5:.1f}" y="{middle + 4}">{100 * value:.0f}</text>',
    ]


def _box(x: float, y: float, width: float, height: float, style: str, title: str) -> str:
    return (
        f'<rect class="{style}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="{height}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _scale(ticks: Sequence[tuple[float, str]], height: float) -> list[str]:
    lines = [f'<line class="grid" x1="{_x(at)}" x2="{_x(at)}" y1="18" y2="{height}"/>' for at, _ in ticks]
    return lines + [f'<text class="tick" x="{_x(at)}" y="12">{escape(text)}</text>' for at, text in ticks]


def _svg(height: float, parts: Sequence[str]) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img">{"".join(parts)}</svg>'
