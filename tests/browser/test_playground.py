"""The playground in a real browser: a question, what streams, the call against its schema, its result, the next turn."""

from __future__ import annotations

from typing import Any

from browser.conftest import CALL, settled


def question(page: Any, address: str, model: str, dialect: str = "hermes") -> None:
    """Asks a model in a dialect."""
    page.goto(address)
    page.get_by_label("Model", exact=True).select_option(model)
    page.get_by_label("Dialect", exact=True).select_option(dialect)
    page.get_by_role("button", name="Ask", exact=True).click()


def test_a_call_is_run_its_result_edited_and_the_conversation_goes_on(page: Any, address: str) -> None:
    question(page, address, "weather")
    settled(page)
    turn = page.locator(".turn").first
    assert "prompted in hermes" in turn.inner_text()
    system = turn.get_by_label("Message of system")
    assert "How much rain falls" in " ".join(system.locator("[data-kind=tools]").all_inner_texts())
    assert (
        turn.get_by_label("Message of user").locator("[data-kind=user]").inner_text() == "What is the weather in Rome?"
    )
    assert turn.get_by_label("What the model wrote").inner_text() == CALL
    assert "CallStart" in turn.get_by_label("Events").inner_text()
    assert turn.get_by_label("Answer").inner_text() == "I will look."
    assert [row.inner_text().split("\t") for row in turn.locator("tbody tr").all()] == [
        ["city", "string", '"Rome"', "fits"],
        ["days", "integer", "2", "fits"],
    ]
    assert "coerced" in turn.get_by_label("Notes").first.inner_text()

    turn.get_by_role("button", name="Run", exact=True).click()
    result = turn.get_by_label("Result of weather")
    from playwright.sync_api import expect

    expect(result).to_have_value("Sunny in Rome for 2 days")
    result.fill("Cloudy in Rome")
    turn.get_by_role("button", name="Continue").click()
    settled(page, 2)
    later = page.locator(".turn").nth(1)
    assert "Cloudy in Rome" in later.locator("[data-kind=tool]").last.inner_text()
    assert later.get_by_label("Answer").inner_text() == "It is cloudy in Rome."


def test_an_error_of_a_tool_is_told(page: Any, address: str) -> None:
    question(page, address, "rain")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("ValueError: the gauge is broken").wait_for()


def test_pasted_tools_are_offered_and_their_results_typed(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_label("More, as JSON").fill(
        '[{"type": "function", "function": {"name": "stock", "parameters": {"type": "object", "properties": {"item": {"type": "string"}}}}}]'
    )
    page.get_by_label("Model", exact=True).select_option("stock")
    page.get_by_label("Dialect", exact=True).select_option("hermes")
    page.get_by_role("button", name="Ask", exact=True).click()
    settled(page)
    assert page.locator(".call h3").inner_text() == "stock"
    assert page.get_by_role("button", name="Run", exact=True).count() == 0
    page.get_by_text("Type its result.").wait_for()


def test_tools_that_are_no_json_are_told_and_nothing_is_asked(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_label("More, as JSON").fill("[{")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("status").get_by_text("The tools are not JSON").wait_for()
    assert page.locator(".turn").count() == 0


def test_two_dialects_are_asked_side_by_side(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_label("Model", exact=True).select_option("hello")
    page.get_by_label("Compare with a second model").check()
    page.get_by_label("Second model", exact=True).select_option("salve")
    page.get_by_label("Dialect of the second").select_option("pythonic")
    page.get_by_role("button", name="Ask", exact=True).click()
    settled(page, 2)
    lanes = [page.get_by_role("region", name=name) for name in ("hello", "salve in pythonic")]
    assert [lane.get_by_label("Answer").inner_text() for lane in lanes] == ["Hello", "Salve"]
    assert "prompted in pythonic" in lanes[1].inner_text()


def test_a_hostile_text_is_shown_and_does_nothing(page: Any, address: str) -> None:
    question(page, address, "hostile")
    settled(page)
    for label in ("Answer", "What the model wrote"):
        shown = page.get_by_label(label)
        assert '<img src=x onerror="window.hurt=1"></script>' in shown.inner_text()
        assert shown.locator(":not(.mark)").count() == 0
        assert shown.locator(".mark").all_inner_texts() == ["U+001B", "U+0007", "U+202E", "U+200B"]
    assert page.evaluate("[window.hurt, document.images.length, document.scripts.length]") == [None, 0, 1]


def test_ten_thousand_events_neither_fill_the_page_nor_stop_it(page: Any, address: str) -> None:
    page.goto(address)
    page.evaluate("""() => {
        window.drawn = 0;
        const count = () => { window.drawn += 1; requestAnimationFrame(count); };
        requestAnimationFrame(count);
    }""")
    page.get_by_label("Model", exact=True).select_option("long")
    page.get_by_role("button", name="Ask", exact=True).click()
    settled(page)
    assert "10,001" in page.locator(".turn summary").nth(2).inner_text()
    assert page.get_by_label("What the model wrote").inner_text().endswith("00004999")
    assert page.evaluate("document.querySelectorAll('*').length") < 1000
    assert page.evaluate("window.drawn") > 5


def test_many_rows_are_bounded(page: Any, address: str) -> None:
    page.goto(address)
    left = page.evaluate("""async () => {
        const { EventList } = await import("./stream.js");
        const list = new EventList();
        document.querySelector("main").replaceChildren(list.list, list.count);
        for (let i = 0; i < 10000; i++) list.add(i, i % 2 ? "CallStart" : "TextDelta", `text ${i}`);
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        return [list.list.childElementCount, list.list.lastElementChild.textContent, list.count.textContent];
    }""")
    assert left[0] == 300
    assert "text 9999" in left[1]
    assert "10,000" in left[2]


def test_a_turn_is_stopped(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_label("Model", exact=True).select_option("local")
    page.get_by_label("Question").fill("Write a very long story about the sea.")
    page.get_by_role("button", name="Ask", exact=True).click()
    page.get_by_role("button", name="Stop").click()
    settled(page)
    page.get_by_text("Stopped.").wait_for()
