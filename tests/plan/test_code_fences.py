"""Code fences around a text and in it."""

from __future__ import annotations

import pytest

from cost import LINEAR, growth
from toolspeak.plan.code_fences import fenced, unfenced


@pytest.mark.parametrize(
    ("text", "contents"),
    [
        ("```json\n1\n```", ["1\n"]),
        ("Here:\n```json title=x\n1\n```\nand\n```\n2```\nend", ["1\n", "2"]),
        ('```json\n{"code": "```py```"}\n```', ['{"code": "```py```"}\n']),  # fences in a string are no ends
        ("- one\n  ```\n  1\n  ```\n", ["  1\n"]),
        ("```json\n1", []),
        ("`code` and ```code```", []),
    ],
)
def test_the_contents_of_fences(text: str, contents: list[str]) -> None:
    assert list(fenced(text)) == contents


def test_the_fence_around_all_of_a_text() -> None:
    assert unfenced(" ```json\n1\n``` ") == "1\n"
    assert unfenced("so: ```json\n1\n```") == "so: ```json\n1\n```"


@pytest.mark.parametrize("unit", ["```\n", "``` ", "```json\n1\n", "  \n"])
def test_many_fences_take_linear_time(unit: str) -> None:
    def work(n: int):
        text = unit * n
        return lambda: (list(fenced(text)), unfenced(text))

    assert growth(work) < LINEAR
