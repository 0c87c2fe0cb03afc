"""Errors that every row would get end the job, and leave no row with a record."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_batch import refund, refunding, rows, speaking

import toolspeak as ts
from toolspeak.batch.common_error import SAME, SAME_404
from toolspeak.errors import BadRequest, ModelError, PromptTooLong, TemplateError

NOT_FOUND = BadRequest("the server refused the request (404): no model 'gpt-x'", code=404)


def failing(error: Callable[[int], Exception | None]) -> Callable[[str], str]:
    """Answers each row, or raises its error."""

    def answer(prompt: str) -> str:
        if failure := error(int(prompt.rpartition(" ")[2])):
            raise failure
        return refunding(prompt)

    return answer


@pytest.mark.parametrize("concurrency", [1, 16])
@pytest.mark.parametrize(
    ("error", "needed"),
    [
        (lambda number: BadRequest(str(NOT_FOUND), code=404), SAME_404),
        (lambda number: BadRequest("the server refused the request (400): no parameter 'seed'", code=400), SAME),
        (lambda number: BadRequest(f"max_tokens is too large: {number + 900} of 512", code=400), SAME),
        (lambda number: PromptTooLong(f"{number + 9000} tokens do not fit into 4096", tokens=9000, limit=4096), SAME),
        (lambda number: TemplateError("the template takes no tools"), SAME),
        (lambda number: ModelError("the model has no such output"), SAME),
    ],
)
def test_an_error_of_every_row_ends_the_job_and_spoils_none(
    tmp_path: Path, error: Callable[[int], Exception], needed: int, concurrency: int
) -> None:
    model, echo = speaking(failing(error))
    job: dict[str, Any] = {"tools": [refund], "concurrency": concurrency}
    with pytest.raises(type(error(0)), match=f"the first {needed} rows all got this error, so the job ended: "):
        ts.batch(rows(200), tmp_path / "out", model=model, **job)
    assert needed <= len(echo.prompts) < needed + concurrency + 1
    assert list(ts.read_batch(tmp_path / "out")) == []
    model, _ = speaking(refunding)
    assert ts.batch(rows(200), tmp_path / "out", model=model, **job).errors == 0


def test_a_row_that_the_model_answers_proves_the_errors_to_be_of_their_rows(tmp_path: Path) -> None:
    model, echo = speaking(failing(lambda number: None if number == 10 else BadRequest("no", code=400)))
    summary = ts.batch(rows(100), tmp_path / "out", tools=[refund], model=model, concurrency=1, shard=3)
    assert (summary.done, summary.errors, len(echo.prompts)) == (100, 99, 100)
    assert [row["id"] for row in ts.read_batch(tmp_path / "out")] == list(range(100))


def test_a_wrong_reply_is_a_reply(tmp_path: Path) -> None:
    def answer(prompt: str) -> str:
        if prompt.endswith(" 0"):
            return '{"tool": "refund", "tool_input": {"order": "x"}}'
        raise BadRequest("no", code=404)

    model, _ = speaking(answer)
    summary = ts.batch(rows(50), tmp_path / "out", tools=[refund], model=model, concurrency=1, tries=1)
    assert summary.kinds == {"GenerationError": 1, "BadRequest": 49}


def test_different_errors_are_of_their_rows(tmp_path: Path) -> None:
    model, _ = speaking(failing(lambda number: BadRequest("ab"[number % 2], code=404)))
    summary = ts.batch(rows(100), tmp_path / "out", tools=[refund], model=model, concurrency=1)
    assert summary.kinds == {"BadRequest": 100}


def test_fewer_rows_than_it_takes_get_their_errors(tmp_path: Path) -> None:
    model, _ = speaking(failing(lambda number: BadRequest("no", code=400)))
    summary = ts.batch(rows(SAME - 1), tmp_path / "out", tools=[refund], model=model, shard=2)
    assert (summary.done, summary.errors) == (SAME - 1, SAME - 1)
    assert [row["error"] for row in ts.read_batch(tmp_path / "out")] == ["BadRequest: no"] * (SAME - 1)


def test_a_row_that_was_never_sent_proves_nothing(tmp_path: Path) -> None:
    model, _ = speaking(failing(lambda number: BadRequest("no", code=400)))
    some = [{"id": f"empty {i}", "text": ""} for i in range(40)]
    mixed = [row for pair in zip(some, rows(40), strict=True) for row in pair]
    with pytest.raises(BadRequest, match="the first 20 rows all got this error"):
        ts.batch(mixed, tmp_path / "out", tools=[refund], model=model, concurrency=4)
