"""The table of the forms that were tried."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .results import print_table

if TYPE_CHECKING:
    from .screen import Out


def table(out: Out, forms: Sequence[Mapping[str, Any]], chosen: str) -> None:
    """A row for each form, as `Tried.told` tells it; the one that is chosen is marked."""
    titles = ["", "form", "tuning", "held back", "", "tokens", "seconds"]
    rows = [_row(form, chosen) for form in forms]
    print_table(out, titles, rows)


def _row(form: Mapping[str, Any], chosen: str) -> list[str]:
    label = str(form.get("form", ""))
    mark = "→" if label == chosen else ""
    if "failed" in form:
        return [mark, label, "–", f"could not be asked: {str(form['failed'])[:120]}", "", "", ""]
    low, high = form.get("interval", (0, 0))
    back = form.get("held_back")
    return [
        mark,
        label,
        _share(form.get("tuning")),
        _share(back),
        f"{100 * low:.0f}–{100 * high:.0f} %" if back else "",
        str(form.get("tokens") or "–"),
        str(form.get("seconds", "–")),
    ]


def _share(pair: Any) -> str:
    return f"{pair[0]}/{pair[1]}" if isinstance(pair, list) and len(pair) == 2 else ""  # pyright: ignore[reportUnknownArgumentType]
