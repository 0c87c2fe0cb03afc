"""The view of dialects in a real browser."""

from __future__ import annotations

from typing import Any

TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}"
    "<call>{{ c.function | tojson }}</call>{% endfor %}<|im_end|>\n{% endfor %}"
)


def opened(page: Any, address: str) -> None:
    page.goto(address)
    page.get_by_role("link", name="Dialects").click()


def test_a_reply_is_read_character_by_character(page: Any, address: str) -> None:
    opened(page, address)
    page.get_by_label("What a model wrote").fill(
        'Yes.\n<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call><b>bold</b>'
    )
    page.get_by_role("button", name="Read", exact=True).click()
    page.get_by_role("heading", name="Read as hermes").wait_for()
    block = page.get_by_label("How it is read")
    assert block.locator("[data-kind=name]").inner_text() == "weather"
    assert block.locator("[data-kind=arguments]").inner_text() == '{"city": "Rome"}'
    assert block.locator("[data-kind=literal]").all_inner_texts() == ["<tool_call>", "</tool_call>"]
    assert block.locator("b").count() == 0
    block.focus()
    page.keyboard.press("ArrowRight")
    page.get_by_text("characters 0 to 3: text for the user").wait_for()


def test_another_dialect_is_chosen_from_those_that_read_it(page: Any, address: str) -> None:
    opened(page, address)
    page.get_by_role("button", name="Read", exact=True).click()
    page.get_by_role("button", name="granite4", exact=True).click()
    page.get_by_role("heading", name="Read as granite4").wait_for()
    assert page.get_by_label("Dialect", exact=True).input_value() == "granite4"


def test_of_words_no_dialect_is_said_to_read_them(page: Any, address: str) -> None:
    opened(page, address)
    page.get_by_label("What a model wrote").fill("I would look at the weather of Rome.")
    page.get_by_role("button", name="Read", exact=True).click()
    page.get_by_role("heading", name="No dialect finds a call in it").wait_for()
    assert page.get_by_label("How it is read").locator("[data-kind=text]").count() == 1
    assert page.get_by_text("Dialects that read it").count() == 0
    page.get_by_label("Dialect", exact=True).select_option("hermes")
    page.get_by_role("button", name="Read", exact=True).click()
    page.get_by_role("heading", name="Read as hermes").wait_for()
    page.get_by_text("No call.", exact=True).wait_for()


def test_the_draft_of_a_template_is_shown(page: Any, address: str) -> None:
    opened(page, address)
    page.get_by_label("Template (Jinja)").fill(TEMPLATE)
    page.get_by_role("button", name="Find the dialect").click()
    source = page.get_by_label("The dialect as Python")
    source.filter(has_text='("<call>", JsonCall(), "</call>")').wait_for()
    page.get_by_label("Template (Jinja)").fill("no template")
    page.get_by_role("button", name="Find the dialect").click()
    page.get_by_role("status").get_by_text("expected a chat template").wait_for()
    page.wrong.clear()  # the browser logs that the server refused it
