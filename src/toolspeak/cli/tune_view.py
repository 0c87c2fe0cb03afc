"""The table of strategies that `toolspeak tune` tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from .eval_view import print_table

if TYPE_CHECKING:
    from .terminal import Out


def table(out: Out, forms: Sequence[Mapping[str, Any]], chosen: str) -> None:
    """Print a row for each strategy, in the format of `Measured.as_dict`. The chosen one is marked."""
    titles = ["", "form", "tuning", "held back", "", "tokens", "seconds"]
    rows = [_row(form, chosen) for form in forms]
    print_table(out, titles, rows)


def _row(form: Mapping[str, Any], chosen: str) -> list[str]:
    label = str(form.get("form", ""))
    mark = "→" if label == chosen else ""
    if "failed" in form:
        return [mark, label, "–", f"could not be asked: {str(form['failed'])[:120]}", "", "", ""]
    back, interval = form.get("held_back"), form.get("interval")
    return [
        mark,
        label,
        _share(form.get("tuning")),
        _share(back),
        _interval(interval) if back else "",
        str(form.get("tokens") or "–"),
        str(form.get("seconds", "–")),
    ]


def _share(pair: Any) -> str:
    return "/".join(map(str, _two(pair)))


def _interval(pair: Any) -> str:
    return "–".join(f"{100 * one:.0f}" for one in _two(pair)) + " %"


def _two(pair: Any) -> list[float]:
    """Two numbers: a profile may have been edited."""
    listed = cast("list[Any]", pair) if isinstance(pair, list) else []
    return listed if len(listed) == 2 and all(isinstance(one, int | float) for one in listed) else []
