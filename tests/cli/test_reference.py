"""The page on the command line tells the commands' own help."""

from __future__ import annotations

from pathlib import Path

from toolspeak.cli.reference import with_reference

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "cli.md"


def test_the_reference_is_up_to_date() -> None:
    page = PAGE.read_text("utf-8")
    assert page == with_reference(page), "run: python -m toolspeak.cli.reference"
