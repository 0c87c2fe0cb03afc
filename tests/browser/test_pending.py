"""Calls that a policy asks about, in a real browser: shown whole, decided by a person, run by the code of `ts.resume`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browser.conftest import NOTES, POLICY, SCHEMES, called, script, settled, started
from browser.test_access import CONTRAST

HOSTILE = "plan\x1b[2J\u202e<img src=x onerror=window.hurt=1>\nsecond line"
READ, REMOVE = called("read_note", name="plan"), called("remove_note", name=HOSTILE)
TWO = called("remove_note", name="one") + "\n" + called("remove_note", name="two")
MODELS = {
    "notes": (READ, REMOVE, "It is gone."),
    "refused": (REMOVE, "Then it stays."),
    "edited": (REMOVE, "The draft is gone."),
    "answered": (REMOVE, "You did it."),
    **{f"keys-{scheme}": (REMOVE, "Done.") for scheme in SCHEMES},
    "two": (TWO, "Both are done."),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("pending")


@pytest.fixture(scope="session")
def address(folder: Path) -> Iterator[str]:
    (folder / "notes.py").write_text(NOTES)
    (folder / "policy.toml").write_text(POLICY)
    models = [f"--model={name}={script(folder / f'{name}.jsonl', *replies)}" for name, replies in MODELS.items()]
    with started(*models, "--tools=notes.py", "--policy=policy.toml", folder=folder) as found:
        yield found


@pytest.fixture
def removed(folder: Path) -> Any:
    """What the tool has removed in this test."""
    log = folder / "removed.txt"
    log.write_text("")
    return lambda: log.read_text().splitlines()


def waiting(page: Any, address: str, model: str) -> Any:
    """The pending calls of a run with this model."""
    page.goto(address)
    page.get_by_label("Model", exact=True).select_option(model)
    page.get_by_label("Dialect", exact=True).select_option("hermes")
    page.get_by_role("button", name="Ask", exact=True).click()
    settled(page)
    return page.get_by_role("region", name="Pending call of remove_note")


def decide(place: Any, decision: str, field: str = "", text: str = "") -> None:
    place.get_by_label("Decision about remove_note").select_option(label=decision)
    if field:
        place.get_by_label(field).fill(text)


def go_on(page: Any, turns: int = 2) -> Any:
    page.get_by_role("button", name="Continue").last.click()
    settled(page, turns)
    return page.locator(".turn").nth(turns - 1)


def test_a_call_is_shown_whole_and_approved(page: Any, address: str, removed: Any) -> None:
    place = waiting(page, address, "notes")
    first = page.locator(".turn").first
    assert "remove all" in first.get_by_label("What read_note gave").inner_text()  # the policy lets it run
    arguments = place.get_by_label("Arguments of remove_note")
    assert arguments.locator(".mark").all_inner_texts() == ["U+001B", "U+202E"]
    assert arguments.inner_text().endswith("<img src=x onerror=window.hurt=1>\nsecond line")
    assert page.get_by_label("What remove_note gave").count() == 0  # it waits, and has not failed
    facts = place.locator("dl").inner_text()
    assert "ask remove_note" in facts
    assert "untrusted: text that is not trusted came before it" in facts
    assert page.get_by_role("button", name="Run", exact=True).count() == 0
    page.get_by_role("button", name="Continue").click()  # nothing was decided
    page.get_by_role("status").get_by_text("Decide about a call first.").wait_for()
    assert removed() == []
    decide(place, "Approve")
    later = go_on(page)
    assert removed() == HOSTILE.splitlines()
    assert later.get_by_label("Answer").inner_text() == "It is gone."
    assert page.evaluate("[window.hurt, document.images.length]") == [None, 0]


@pytest.mark.parametrize(
    ("model", "decision", "field", "text", "gone", "said"),
    [
        ("refused", "Refuse", "Reason", "keep it", [], "was not approved: keep it"),
        (
            "edited",
            "Approve with other arguments",
            "Arguments, as JSON",
            '{"name": "draft"}',
            ["draft"],
            "removed draft",
        ),
        (
            "answered",
            "Do not run it, answer instead",
            "Answer, which",
            "I removed it myself",
            [],
            "I removed it myself",
        ),
    ],
)
def test_what_else_can_be_decided(
    page: Any, address: str, removed: Any, model: str, decision: str, field: str, text: str, gone: list[str], said: str
) -> None:
    place = waiting(page, address, model)
    decide(place, decision, field, text)
    later = go_on(page)
    assert removed() == gone
    assert said in later.get_by_label("What remove_note gave").inner_text()
    assert said in later.locator("[data-kind=tool]").last.inner_text()  # the model has read it
    assert later.get_by_label("Answer").inner_text() == MODELS[model][-1]


def test_one_of_two_is_decided_later_and_wrong_json_is_told(page: Any, address: str, removed: Any) -> None:
    places = waiting(page, address, "two")
    decide(places.nth(0), "Approve with other arguments", "Arguments, as JSON", "{")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("status").get_by_text("The arguments of remove_note are not JSON").wait_for()
    decide(places.nth(0), "Approve")
    second = go_on(page)
    assert removed() == ["one"]
    place = second.get_by_role("region", name="Pending call of remove_note")
    assert place.count() == 1
    decide(place, "Refuse")
    last = go_on(page, 3)
    assert removed() == ["one"]
    assert last.get_by_label("Answer").inner_text() == "Both are done."


@pytest.mark.parametrize("scheme", SCHEMES)
def test_pending_calls_can_be_read_on_a_phone_and_used_by_keyboard(
    page: Any, address: str, removed: Any, scheme: str
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": 360, "height": 740})
    place = waiting(page, address, f"keys-{scheme}")
    decide(place, "Refuse")
    assert page.evaluate(CONTRAST)[1] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    place.get_by_label("Decision about remove_note").focus()
    page.keyboard.type("Approve")
    page.get_by_role("button", name="Continue").focus()
    page.keyboard.press("Enter")
    settled(page, 2)
    assert removed() == HOSTILE.splitlines()


def test_no_tool_is_pasted_where_a_policy_runs_calls(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_text("Calls run as the policy says.").wait_for()
    assert page.get_by_label("More, as JSON").count() == 0
