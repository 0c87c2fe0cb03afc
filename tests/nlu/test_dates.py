"""Dates as an argument asks for them; none that the text does not tell whole."""

from __future__ import annotations

import pytest

from toolspeak.nlu.entities import dates


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
    ("text", "wanted", "written"),
    [
        ("November 1, 2023 at 8pm London time", 1, ["2023-11-01T20:00:00"]),
        ("November 1, 2023 at 12:30 am", 1, ["2023-11-01T00:30:00"]),
        ("November 1, 2023, we meet", 1, ["2023-11-01T00:00:00"]),
        ("between 8:00 and 9:30 on the 3rd of April 2024", 2, ["2024-04-03T08:00:00", "2024-04-03T09:30:00"]),
        ("2024-05-01 at noon until 2024-05-02, 6 pm", 2, ["2024-05-01T12:00:00", "2024-05-02T18:00:00"]),
        ("from 2024-05-01 until 2024-05-02 at 6 pm", 2, ["2024-05-01T00:00:00", "2024-05-02T18:00:00"]),
        ("by half past seven on 2024-05-01", 1, ["2024-05-01T07:30:00"]),
    ],
)
def test_moments(text: str, wanted: int, written: list[str]) -> None:
    moments = dates.timed(dates.dates(text), dates.times(text), wanted)
    assert [dates.written(date, "YYYY-MM-DDThh:mm:ss") for date, _ in moments] == written


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the shop opens at 9:05 and closes at 11 pm", [(9, 5), (23, 0)]),
        ("at midnight", [(0, 0)]),
        ("wake me at quarter to six", [(5, 45)]),
        ("quarter past 3 in the afternoon", [(15, 15)]),
        ("tea at four in the afternoon", [(16, 0)]),
        ("a score of 3:1, a ratio of 16:9 and 5 apples", []),
    ],
)
def test_times_of_day(text: str, found: list[tuple[int, int]]) -> None:
    assert [(one.hour, one.minute) for one in dates.times(text)] == found


@pytest.mark.parametrize(
    ("description", "form", "layout"),
    [
        ("When the alarm rings, HH:MM", None, "hh:mm"),
        ("Such as '18:30'", None, "hh:mm"),
        ("Begin", "time", "hh:mm:ss"),
        ("The day and time, 'YYYY-MM-DD HH:MM'", None, ""),
        ("How long", None, ""),
    ],
)
def test_how_a_time_is_wanted(description: str, form: str | None, layout: str) -> None:
    assert dates.clock(description, form) == layout


@pytest.mark.parametrize(
    ("description", "form", "layout"),
    [
        ("The day, as YYYY-MM-DD.", None, "YYYY-MM-DD"),
        ("The day (mm/dd/yyyy)", None, "MM/DD/YYYY"),
        ("In the form 'YYYY-MM-DDTHH:MM:SS'.", None, "YYYY-MM-DDThh:mm:ss"),
        ("Start, 'YYYY-MM-DD HH:MM'", None, "YYYY-MM-DD hh:mm"),
        ("Start, YYYY-MM-DDTHH:MM:SSZ", None, "YYYY-MM-DDThh:mm:ssZ"),
        ("Such as '2023-05-01'", None, "YYYY-MM-DD"),
        ("Hired after this ISO date.", None, "YYYY-MM-DD"),
        ("The day", "date", "YYYY-MM-DD"),
        ("The day", None, ""),
    ],
)
def test_how_a_date_is_wanted(description: str, form: str | None, layout: str) -> None:
    assert dates.pattern(description, form) == layout
