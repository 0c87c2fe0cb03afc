"""Takes the screenshots of docs/images anew, with the server and the models of the browser tests:

python tests/browser/screenshots.py [FOLDER]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).parents[1]))

from browser.conftest import CALL, CHROMIUM, SWITCHES, WEATHER, script, settled, started
from browser.test_live import ask

IMAGES = Path(__file__).parents[2] / "docs" / "images"
CLIENT = '{"tool": "weather", "tool_input": {"city": "Rome"}}'
MODELS = {"small": (CALL, "It is sunny in Rome."), "phone": (CALL,), "client": (CLIENT,)}


def question(page: Any, model: str) -> None:
    page.get_by_label("Model", exact=True).select_option(model)
    page.get_by_label("Dialect", exact=True).select_option("hermes")
    page.get_by_role("button", name="Ask", exact=True).click()
    settled(page)


def playground(page: Any) -> None:
    question(page, "small")
    page.get_by_role("button", name="Run").click()
    page.get_by_text(" ms").last.wait_for()


def phone(page: Any) -> None:
    question(page, "phone")
    page.locator(".turn").scroll_into_view_if_needed()
    page.evaluate("document.querySelector('.turn').scrollIntoView()")


def dialects(page: Any) -> None:
    page.get_by_role("link", name="Dialects").click()
    page.get_by_role("button", name="Read", exact=True).click()
    page.get_by_label("How it is read").wait_for()


def live(page: Any) -> None:
    page.get_by_role("link", name="Live").click()
    page.get_by_role("row").last.get_by_role("button").click()
    page.get_by_role("region", name="Request").wait_for()


def reports(page: Any) -> None:
    page.get_by_role("link", name="Reports").click()
    page.get_by_role("main").get_by_role("button").nth(1).click()
    page.locator("iframe").wait_for()
    page.wait_for_timeout(1_000)  # a frame in which nothing runs says nothing


SHOTS = {
    "page-playground": (playground, "light", 1000, 1400),
    "page-dialects": (dialects, "light", 1000, 1100),
    "page-live": (live, "dark", 1000, 1160),
    "page-reports": (reports, "light", 1000, 900),
    "page-phone": (phone, "light", 390, 844),
}
QUESTIONS = {"Weather in Rome?": {"city": "Rome"}, "Weather in Oslo for 3 days?": {"city": "Oslo", "days": 3}}


def report(place: Path) -> None:
    """Has two models evaluated."""
    tools = [
        {
            "name": "weather",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}, "days": {"type": "integer"}}},
        }
    ]
    cases = place / "cases.jsonl"
    cases.write_text(
        "".join(
            json.dumps({"question": question, "tools": tools, "calls": [{"name": "weather", "arguments": arguments}]})
            + "\n"
            for question, arguments in QUESTIONS.items()
        )
    )
    script(place / "prose.jsonl", *["It is sunny."] * 4)
    models = ["-m", "local", "-m", "scripted:prose.jsonl"]
    command = [sys.executable, "-m", "toolspeak", "eval", "cases.jsonl", *models, "--out", str(place / "evaluation")]
    subprocess.run(command, cwd=place, check=True, capture_output=True)


def take(folder: Path) -> None:
    """Writes each screenshot into the folder."""
    with tempfile.TemporaryDirectory() as at, sync_playwright() as playwright:
        place = Path(at)
        (place / "weather.py").write_text(WEATHER)
        models = [f"--model={name}={script(place / f'{name}.jsonl', *replies)}" for name, replies in MODELS.items()]
        report(place)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        with started(*models, "--tools=weather.py", folder=place) as address:
            ask(address, "client")
            for name, (show, scheme, width, height) in SHOTS.items():
                page = browser.new_page(viewport={"width": width, "height": height}, color_scheme=scheme)
                page.goto(address)
                show(page)
                page.screenshot(path=folder / f"{name}.png")
                page.close()
        browser.close()


if __name__ == "__main__":
    take(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
