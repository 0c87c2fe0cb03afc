"""Dates as an argument asks for them; none that the text does not tell whole."""

from __future__ import annotations

import pytest

from toolspeak.plan import dates


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("on March 14, 2024", ["2024-03-14"]),
        ("the 1st of May 2022 or 2 June 2023", ["2022-05-01", "2023-06-02"]),
        ("Sept. 3rd, 2021; March.11, 2022", ["2021-09-03", "2022-03-11"]),
        ("due 2023-04-01", ["2023-04-01"]),
        ("from April 3rd to April 5th 2023", ["2023-04-03", "2023-04-05"]),
        ("on May 2", []),
        ("may 45 people come in 2020?", []),
        ("12/31/2020", ["2020-12-31"]),
        ("13/13/2020", []),
    ],
)
def test_dates(text: str, found: list[str]) -> None:
    assert [dates.written(date, "YYYY-MM-DD") for date in dates.dates(text)] == found


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("November 1, 2023 at 8pm London time", "2023-11-01T20:00:00"),
        ("November 1, 2023 at 12:30 am", "2023-11-01T00:30:00"),
        ("November 1, 2023, we meet", "2023-11-01T00:00:00"),
    ],
)
def test_times(text: str, written: str) -> None:
    (date,) = dates.dates(text)
    assert dates.written(date, "YYYY-MM-DDThh:mm:ss") == written


@pytest.mark.parametrize(
    ("description", "form", "layout"),
    [
        ("The day, as YYYY-MM-DD.", None, "YYYY-MM-DD"),
        ("The day (mm/dd/yyyy)", None, "MM/DD/YYYY"),
        ("In the form 'YYYY-MM-DDTHH:MM:SS'.", None, "YYYY-MM-DDThh:mm:ss"),
        ("Such as '2023-05-01'", None, "YYYY-MM-DD"),
        ("The day", "date", "YYYY-MM-DD"),
        ("The day", None, ""),
    ],
)
def test_how_a_date_is_wanted(description: str, form: str | None, layout: str) -> None:
    assert dates.pattern(description, form) == layout
