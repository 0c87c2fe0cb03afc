"""Compares two runs over the same cases: which cases changed, and whether the difference is more than noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import UsageError
from ..schema.suggestions import did_you_mean, near
from .results import Record, read
from .stats import Estimate, difference, mean, sign_test

ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class PairedCounts:
    """The same cases in two runs: how many were right in both, only in the second (`won`), only in the first (`lost`),
    or in neither."""

    name: str
    both: int
    won: int
    lost: int
    neither: int

    @property
    def total(self) -> int:
        return self.both + self.won + self.lost + self.neither

    @property
    def difference(self) -> Estimate:
        """The accuracy of the second run minus that of the first, with its 95 % interval."""
        return difference(self.both, self.won, self.lost, self.neither)

    @property
    def p(self) -> float:
        """The probability that chance splits the changed cases at least as unevenly: McNemar's exact test, two-sided."""
        return sign_test(self.won, self.lost)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The changes from the run `first` to the run `second`.

    `left_out` counts the cases that only one of them has, or that have different expected calls. `changes` are pairs
    of records, lost cases first.
    """

    first: str
    second: str
    groups: tuple[PairedCounts, ...]
    changes: tuple[tuple[Record, Record], ...]
    left_out: int

    @property
    def overall(self) -> PairedCounts:
        """All cases together."""
        sums = [sum(getattr(group, name) for group in self.groups) for name in ("both", "won", "lost", "neither")]
        return PairedCounts("all cases", *sums)

    @property
    def macro(self) -> Estimate:
        """The mean of the groups' differences, with equal weights."""
        return mean([group.difference for group in self.groups])

    @property
    def verdict(self) -> str:
        """One sentence: whether the difference is more than noise."""
        whole = self.overall
        summary = f"{whole.won} cases won, {whole.lost} lost of {whole.total}, p = {p_text(whole.p)}"
        if whole.p >= ALPHA:
            return f"No more than noise: {summary}."
        better, worse = (self.second, self.first) if whole.won > whole.lost else (self.first, self.second)
        return f"More than noise, {better} is better than {worse}: {summary}."


def compare(first: Sequence[Record], second: Sequence[Record], titles: tuple[str, str] | None = None) -> Comparison:
    """Compares the records of two runs, each of one contender. Raises UsageError if they share no case."""
    after = {record.case: record for record in second}
    pairs = [(one, after[one.case]) for one in first if one.case in after]
    same = [(one, two) for one, two in pairs if one.expected == two.expected and one.match == two.match]
    if not same:
        raise UsageError("the two runs have no case in common")
    groups = [_paired(name, same) for name in dict.fromkeys(one.group for one, _ in same)]
    changed = [(one, two) for one, two in same if one.right != two.right]
    return Comparison(
        *(titles or (same[0][0].contender, same[0][1].contender)),
        groups=tuple(groups),
        changes=tuple(sorted(changed, key=lambda pair: pair[1].right)),
        left_out=len({record.case for record in (*first, *second)}) - len(same),
    )


def _paired(name: str, pairs: Sequence[tuple[Record, Record]]) -> PairedCounts:
    outcomes = [(one.right, two.right) for one, two in pairs if one.group == name]
    counts = [outcomes.count(kind) for kind in ((True, True), (False, True), (True, False), (False, False))]
    return PairedCounts(name, *counts)


def p_text(p: float) -> str:
    """A p-value as text: `0.18`, `0.0023`, `< 0.0001`."""
    return "< 0.0001" if p < 0.0001 else f"{p:.2g}"


# ------------------------------------------------------------------ folders by name


def compare_folders(first: str, second: str | None = None) -> list[Comparison]:
    """Compares two folders, each named `DIR` or `DIR#CONTENDER`, or the two contenders of one folder.

    If both hold several contenders, those of the same name are compared. Raises UsageError.
    """
    if second is None:
        contenders = _contenders(first)
        if len(contenders) != 2:
            raise UsageError(
                f"expected two contenders to compare, and {first} holds {', '.join(contenders)}: give two folders, or DIR#CONTENDER twice"
            )
        one, two = contenders.values()
        return [compare(one, two)]
    before, after = _contenders(first), _contenders(second)
    if len(before) == len(after) == 1:
        (a, one), (b, two) = *before.items(), *after.items()
        titles = (a, b) if a != b else (first, second)
        return [compare(one, two, titles)]
    shared = [name for name in before if name in after]
    if not shared:
        raise UsageError(
            f"{first} holds {', '.join(before)} and {second} {', '.join(after)}: say which, as in {first}#{next(iter(before))}"
        )
    return [compare(before[name], after[name], (f"{first}: {name}", f"{second}: {name}")) for name in shared]


def _contenders(name: str) -> dict[str, list[Record]]:
    """The records of a folder by contender; only one contender if the name selects it."""
    folder, _, wanted = (name, "", "") if Path(name).is_dir() else name.partition("#")
    by: dict[str, list[Record]] = {}
    for record in read(Path(folder).expanduser()):
        by.setdefault(record.contender, []).append(record)
    if not by:
        raise UsageError(f"{folder} has no results yet")
    if wanted and wanted not in by:
        raise UsageError(
            f"{folder} holds no {wanted!r}.{did_you_mean(near(wanted, list(by)))} There are: {', '.join(by)}"
        )
    return {wanted: by[wanted]} if wanted else by
