"""A batch in one process: rows in, records out, each once; bad rows, bad inputs, and going on."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.errors import KeyRefused, ModelUnreachable, RateLimited, ServerFailed
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.models import retries
from toolspeak.types import Request


def refund(order: int) -> str:
    """Refund an order."""
    return f"refunded {order}"


@dataclass
class Order:
    """An order that a text speaks of."""

    number: int
    urgent: bool = False


class Echo:
    """A text model: `answer` makes its reply, or raises, from the last message; `requests` counts them."""

    name = "echo"
    capabilities: frozenset[str] = frozenset()

    def __init__(self, answer: Callable[[str], str]) -> None:
        self.answer = answer
        self.prompts: list[str] = []
        self.running = self.most = 0

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        prompt = str(request.messages[-1]["content"])
        self.prompts.append(prompt)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(0.001)
            text = self.answer(prompt)
        finally:
            self.running -= 1
        yield TextDelta(text)
        yield Finished("stop")


def call(name: str, **arguments: Any) -> str:
    return json.dumps({"tool": name, "tool_input": arguments})


def refunding(prompt: str) -> str:
    return call("refund", order=int(prompt.rpartition(" ")[2]))


def speaking(answer: Callable[[str], str]) -> tuple[ts.Model, Echo]:
    echo = Echo(answer)
    return ts.model(echo, dialect="tool-json"), echo  # type: ignore[arg-type]


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": i, "text": f"Refund order {i}"} for i in range(count)]


def test_each_row_has_a_record_in_the_order_of_the_input(tmp_path: Path) -> None:
    model, _ = speaking(refunding)
    summary = ts.batch(rows(250), tmp_path / "out", tools=[refund], model=model, shard=100)
    read = list(ts.read_batch(tmp_path / "out"))
    assert [row["id"] for row in read] == list(range(250))
    assert [json.loads(row["calls"])[0]["arguments"] for row in read] == [{"order": i} for i in range(250)]
    assert {row["fingerprint"] for row in read} == {summary.fingerprint}
    assert sorted(path.name for path in (tmp_path / "out").glob("part-*")) == [f"part-0000{i}.jsonl" for i in range(3)]
    assert (summary.rows, summary.done, summary.errors, summary.interrupted) == (250, 250, 0, False)


def test_the_columns_are_those_of_the_documentation(tmp_path: Path) -> None:
    model, _ = speaking(refunding)
    ts.batch(rows(1), tmp_path / "out", tools=[refund], model=model)
    (row,) = ts.read_batch(tmp_path / "out")
    columns = "id calls text thought value finish notes error attempts tokens seconds fingerprint"
    assert list(row)[: len(columns.split())] == columns.split()


def test_the_same_call_again_asks_nothing(tmp_path: Path) -> None:
    model, echo = speaking(refunding)
    ts.batch(rows(20), tmp_path / "out", tools=[refund], model=model)
    again = ts.batch(rows(25), tmp_path / "out", tools=[refund], model=model)
    assert len(echo.prompts) == 25
    assert (again.done, again.before, again.new) == (25, 20, 5)


def test_values_are_extracted(tmp_path: Path) -> None:
    model, _ = speaking(lambda prompt: call("record_order", number=int(prompt.split()[-1]), urgent=True))
    ts.batch(rows(3), tmp_path / "out", verb="extract", kind=Order, model=model)
    assert [row["value"] for row in ts.read_batch(tmp_path / "out")] == [
        {"number": i, "urgent": True} for i in range(3)
    ]


def test_values_are_extracted_by_a_schema(tmp_path: Path) -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    model, _ = speaking(lambda prompt: call("record_value", value=[int(prompt.split()[-1])]))
    ts.batch(rows(2), tmp_path / "out", verb="extract", kind=schema, model=model)
    assert [row["value"] for row in ts.read_batch(tmp_path / "out")] == [[0], [1]]


def test_calls_are_run(tmp_path: Path) -> None:
    ran: list[int] = []

    def charge(order: int) -> str:
        """Charge an order."""
        ran.append(order)
        return f"charged {order}"

    def answer(prompt: str) -> str:
        return call("charge", order=7) if prompt.startswith("Charge") else "It is done."

    model, _ = speaking(answer)
    ts.batch([{"id": "a", "text": "Charge order 7"}], tmp_path / "out", verb="run", tools=[charge], model=model)
    (row,) = ts.read_batch(tmp_path / "out")
    assert ran == [7]
    assert (row["text"], json.loads(row["calls"])[0]["name"], row["attempts"]) == ("It is done.", "charge", 2)


# ------------------------------------------------------------------ prompts and ids


def test_a_prompt_may_be_a_text_with_columns(tmp_path: Path) -> None:
    model, echo = speaking(lambda prompt: "fine")
    data = [{"id": 1, "subject": "Late", "body": "Where is it?"}]
    ts.batch(data, tmp_path / "out", prompt="{subject}: {body} {{json}}", model=model)
    assert echo.prompts == ["Late: Where is it? {json}"]


def test_without_an_id_it_comes_from_the_content(tmp_path: Path) -> None:
    model, echo = speaking(lambda prompt: "fine")
    data = [{"text": "a"}, {"text": "b"}, {"text": "a"}, {"text": "a"}]
    ts.batch(data, tmp_path / "out", id=None, model=model)
    ts.batch(data, tmp_path / "out", id=None, model=model)
    ids = [row["id"] for row in ts.read_batch(tmp_path / "out")]
    assert [ids[2], ids[3]] == [f"{ids[0]}-2", f"{ids[0]}-3"]
    assert len(echo.prompts) == 4


def test_a_doubled_id_is_refused_before_anything_is_asked(tmp_path: Path) -> None:
    model, echo = speaking(refunding)
    data = [*rows(5), {"id": "3", "text": "Refund order 3"}]
    with pytest.raises(ts.UsageError, match=r"row 6: the id '3' is also that of row 4; ids must be unique"):
        ts.batch(data, tmp_path / "out", tools=[refund], model=model)
    assert not echo.prompts


def test_a_doubled_id_that_comes_late_loses_nothing(tmp_path: Path) -> None:
    model, echo = speaking(refunding)
    data = [*rows(5), {"id": 3, "text": "Refund order 3"}]
    with pytest.raises(ts.UsageError, match="row 6: the id 3"):
        ts.batch(iter(data), tmp_path / "out", tools=[refund], model=model)
    assert len(list(ts.read_batch(tmp_path / "out"))) == 5
    ts.batch(iter(data[:5]), tmp_path / "out", tools=[refund], model=model)
    assert len(echo.prompts) == 5


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            [{"key": 1, "text": "a"}],
            "row 1: no column 'id' for the id; the columns are: key, text. Name another column \\(--id, in Python id=\\), or make the id from the content of the row \\(--no-id,",
        ),
        ([{"id": 1, "body": "a"}], "row 1: no column 'text'; the columns are: id, body"),
    ],
)
def test_a_missing_column_is_refused(tmp_path: Path, data: list[dict[str, Any]], message: str) -> None:
    model, _ = speaking(refunding)
    with pytest.raises(ts.UsageError, match=message):
        ts.batch(data, tmp_path / "out", model=model)


def test_a_bad_row_is_a_row_with_an_error(tmp_path: Path) -> None:
    def answer(prompt: str) -> str:
        if prompt.endswith("2"):
            raise ValueError("no")
        good = prompt.startswith("Refund") and not prompt.endswith("1")  # what is asked again begins otherwise
        return refunding(prompt) if good else call("refund", order="x")

    model, _ = speaking(answer)
    data = [*rows(4), {"id": 4}, {"id": 5, "text": None}, {"id": None, "text": "a"}, 7]
    summary = ts.batch(data, tmp_path / "out", tools=[refund], model=model)
    errors = {row["id"]: row["error"] for row in ts.read_batch(tmp_path / "out")}
    assert list(errors)[:6] == [0, 1, 2, 3, 4, 5]
    seventh, eighth = list(errors)[6:]
    assert [errors[0], errors[3]] == [None, None]
    assert errors[1].startswith("GenerationError: ")
    assert errors[2] == "ValueError: no"
    assert errors[4] == "UsageError: no column 'text'; the columns are: id"
    assert errors[5] == "UsageError: the column 'text' is empty"
    assert str(seventh).startswith("unreadable-")
    assert errors[seventh].startswith("UnreadableRow: row 7: there is no id in the column 'id'")
    assert errors[eighth] == "UnreadableRow: row 8: expected a dict, received int"
    assert summary.kinds == {"GenerationError": 1, "ValueError": 1, "UsageError": 2, "UnreadableRow": 2}


# ------------------------------------------------------------------ going on


def test_errors_are_asked_again_where_that_is_wanted(tmp_path: Path) -> None:
    broken = True

    def answer(prompt: str) -> str:
        if broken and int(prompt.split()[-1]) % 10 == 3:
            raise ValueError("later")
        return refunding(prompt)

    model, echo = speaking(answer)
    first = ts.batch(rows(50), tmp_path / "out", tools=[refund], model=model, shard=20)
    broken = False
    left = ts.batch(rows(50), tmp_path / "out", tools=[refund], model=model, shard=20)
    assert (first.errors, left.standing, len(echo.prompts)) == (5, 5, 50)
    again = ts.batch(rows(50), tmp_path / "out", tools=[refund], model=model, shard=20, retry_errors=True)
    read = list(ts.read_batch(tmp_path / "out"))
    assert (again.new, again.errors, len(echo.prompts)) == (5, 0, 55)
    assert [row["id"] for row in read] == list(range(50))
    assert all(row["error"] is None for row in read)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prompt": "Please: {text}"}, 'prompt "text" there, "Please: {text}" now'),
        ({"temperature": 0.5}, "sampling: temperature null there, 0.5 now"),
        ({"system": "Be kind."}, 'system null there, "Be kind." now'),
        ({"dialect": "hermes"}, 'dialect "tool-json" there, "hermes" now'),
        ({"tools": []}, "tools: refund "),
        ({"shard": 7}, "shard 10000 there, 7 now"),
        ({"id": None}, 'id "id" there, null now'),
    ],
)
def test_another_job_is_refused_with_what_changed(tmp_path: Path, changed: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"tools": [refund], "model": f"scripted:{refunding('1')}", "dialect": "tool-json"}
    ts.batch(rows(1), tmp_path / "out", **options)
    with pytest.raises(ts.UsageError, match="belongs to another job") as error:
        ts.batch(rows(1), tmp_path / "out", **{**options, **changed})
    assert message in str(error.value)


def test_a_directory_with_other_files_is_refused(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(ts.UsageError, match=r"contains other files \(thesis.txt\)"):
        ts.batch(rows(1), tmp_path, model="scripted:a")


def test_a_second_process_on_the_directory_is_refused(tmp_path: Path) -> None:
    async def both() -> None:
        model, _ = speaking(refunding)
        first = asyncio.create_task(ts.abatch(rows(200), tmp_path / "out", tools=[refund], model=model))
        while not (tmp_path / "out" / "_job.json").exists():
            await asyncio.sleep(0.001)
        with pytest.raises(ts.UsageError, match="another process is writing to"):
            await ts.abatch(rows(200), tmp_path / "out", tools=[refund], model=model)
        assert (await first).done == 200

    asyncio.run(both())


def test_cancelled_it_goes_on_later(tmp_path: Path) -> None:
    model, echo = speaking(refunding)

    async def halfway() -> None:
        work = asyncio.create_task(ts.abatch(rows(300), tmp_path / "out", tools=[refund], model=model, concurrency=8))
        while len(echo.prompts) < 100:
            await asyncio.sleep(0.001)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(halfway())
    done = len(list(ts.read_batch(tmp_path / "out")))
    assert 80 <= done < 300
    ts.batch(rows(300), tmp_path / "out", tools=[refund], model=model, concurrency=8)
    assert [row["id"] for row in ts.read_batch(tmp_path / "out")] == list(range(300))
    assert len(echo.prompts) <= 308


def test_rows_that_moved_in_the_input_are_asked_once(tmp_path: Path) -> None:
    model, echo = speaking(refunding)
    ts.batch(rows(10), tmp_path / "out", tools=[refund], model=model)
    moved = [{"id": "new", "text": "Refund order 77"}, *reversed(rows(10))]
    summary = ts.batch(moved, tmp_path / "out", tools=[refund], model=model)
    assert {row["id"] for row in ts.read_batch(tmp_path / "out")} == {"new", *range(10)}
    assert (summary.new, len(echo.prompts)) == (1, 11)


# ------------------------------------------------------------------ the upstream


def test_refusals_slow_it_down_and_lose_nothing(tmp_path: Path) -> None:
    refused: list[str] = []

    def answer(prompt: str) -> str:
        if len(refused) < 30 and prompt not in refused:
            refused.append(prompt)
            raise RateLimited("too many requests", retry_after=0.01)
        return refunding(prompt)

    model, _ = speaking(answer)
    limits: list[tuple[int, str]] = []
    summary = ts.batch(
        rows(100),
        tmp_path / "out",
        tools=[refund],
        model=model,
        progress=lambda summary: limits.append((summary.limit, summary.refusal)),
    )
    assert (summary.done, summary.errors, len(refused)) == (100, 0, 30)
    assert (1, "429") in limits


def test_no_more_rows_are_under_way_than_may_be(tmp_path: Path) -> None:
    model, echo = speaking(refunding)
    ts.batch(rows(100), tmp_path / "out", tools=[refund], model=model, concurrency=5)
    assert echo.most == 5


def test_a_server_that_fails_on_a_row_is_asked_a_few_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "FIRST", 0.001)

    def answer(prompt: str) -> str:
        if prompt.endswith("3"):
            raise ServerFailed("broken", code=500)
        return refunding(prompt)

    model, echo = speaking(answer)
    summary = ts.batch(rows(5), tmp_path / "out", tools=[refund], model=model)
    assert summary.kinds == {"ServerFailed": 1}
    assert len(echo.prompts) == 4 + 3


@pytest.mark.parametrize("error", [KeyRefused("no key"), ModelUnreachable("nobody there")])
def test_an_error_of_every_row_ends_the_job_before_rows_are_spoilt(tmp_path: Path, error: Exception) -> None:
    def answer(_: str) -> str:
        raise error

    model, _ = speaking(answer)
    with pytest.raises(type(error)):
        ts.batch(rows(100), tmp_path / "out", tools=[refund], model=model)
    assert list(ts.read_batch(tmp_path / "out")) == []
    model, _ = speaking(refunding)
    assert ts.batch(rows(100), tmp_path / "out", tools=[refund], model=model).done == 100


def test_an_iterable_is_read_in_the_thread_of_the_caller_and_may_fail(tmp_path: Path) -> None:
    import threading

    threads: set[int] = set()

    def source() -> Iterator[dict[str, Any]]:
        for row in rows(100):
            threads.add(threading.get_ident())
            yield row
        raise RuntimeError("the database is gone")

    model, _ = speaking(refunding)
    with pytest.raises(RuntimeError, match="the database is gone"):
        ts.batch(source(), tmp_path / "out", tools=[refund], model=model)
    assert threads == {threading.get_ident()}
    assert len(list(ts.read_batch(tmp_path / "out"))) >= 64


# ------------------------------------------------------------------ files


def test_an_unreadable_line_does_not_stop_the_others(tmp_path: Path) -> None:
    lines = [json.dumps(row).encode() for row in rows(5)]
    lines[1] = b'{"id": 1, "text": '
    lines[3] = b'{"id": 3, "text": "\xff"}'
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    model, echo = speaking(refunding)
    summary = ts.batch(tmp_path / "in.jsonl", tmp_path / "out", tools=[refund], model=model)
    read = list(ts.read_batch(tmp_path / "out"))
    assert [row["id"] for row in read] == [0, read[1]["id"], 2, 3, 4]
    assert read[1]["id"].startswith("unreadable-")
    assert "in.jsonl, line 2: not JSON: Expecting value at column 19" in read[1]["error"]
    assert "in.jsonl, line 4: not UTF-8" in read[3]["error"]
    assert (summary.errors, len(echo.prompts)) == (2, 3)
    lines[1] = json.dumps(rows(2)[1]).encode()  # mended: it takes the place of its error
    (tmp_path / "in.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    ts.batch(tmp_path / "in.jsonl", tmp_path / "out", tools=[refund], model=model)
    assert [row["id"] for row in ts.read_batch(tmp_path / "out")] == list(range(5))
    assert len(echo.prompts) == 4


def test_csv_is_read(tmp_path: Path) -> None:
    text = '\ufeffid;text\n1;"Refund\norder 1"\n2;Refund order 2;more\n3;Refund order 3\n'
    (tmp_path / "in.csv").write_text(text, "utf-8")
    model, _ = speaking(refunding)
    ts.batch(tmp_path / "in.csv", tmp_path / "out", tools=[refund], model=model)
    read = list(ts.read_batch(tmp_path / "out"))
    assert [row["id"] for row in read] == ["1", "2", "3"]
    assert "in.csv, line 4: expected 2 fields, received 3" in read[1]["error"]


@pytest.mark.parametrize("wrong", ['2,"Refund order 2', '2,"Refund" order 2', '"2,Refund order 2\n"3,Refund order 3'])
def test_a_quotation_mark_costs_its_own_line(tmp_path: Path, wrong: str) -> None:
    after = "".join(f"{i},Refund order {i}\n" for i in range(4, 200))
    (tmp_path / "in.csv").write_text(f"id,text\n1,Refund order 1\n{wrong}\n{after}", "utf-8")
    model, _ = speaking(refunding)
    ts.batch(tmp_path / "in.csv", tmp_path / "out", tools=[refund], model=model)
    read = list(ts.read_batch(tmp_path / "out"))
    bad = [row for row in read if row["error"]]
    assert bad[0]["error"].startswith(f"UnreadableRow: {tmp_path / 'in.csv'}, line 3: not CSV: ")
    assert [row["id"] for row in read if not row["error"]] == ["1", *map(str, range(4, 200))]
    assert len(bad) == wrong.count("\n") + 1


def test_a_csv_without_the_column_is_refused_by_its_header(tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("id,body\n")
    with pytest.raises(ts.UsageError, match=r"in.csv: no column 'text'; the columns are: id, body"):
        ts.batch(tmp_path / "in.csv", tmp_path / "out", model="scripted:a")


@pytest.mark.parametrize(
    ("name", "message"), [("no.csv", "does not exist"), ("in.xlsx", "expected .jsonl, .csv, .tsv or .parquet")]
)
def test_a_file_that_cannot_be_is_refused(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "in.xlsx").touch()
    with pytest.raises(ts.UsageError, match=message):
        ts.batch(tmp_path / name, tmp_path / "out", model="scripted:a")


def test_a_job_that_was_refused_leaves_its_directory_to_another(tmp_path: Path) -> None:
    model, echo = speaking(refunding)
    out = tmp_path / "out"
    for wrong in ({"data": [*rows(3), *rows(1)], "id": "id"}, {"data": rows(3), "id": "key"}):
        with pytest.raises(ts.UsageError, match="id"):
            ts.batch(wrong["data"], out, id=wrong["id"], tools=[refund], model=model)
    assert ts.batch(rows(3), out, prompt="{text}", id=None, tools=[refund], model=model).done == 3
    assert len(echo.prompts) == 3
    with pytest.raises(ts.UsageError, match="belongs to another job"):
        ts.batch(rows(3), out, tools=[refund], model=model)


def test_reading_what_is_no_batch_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ts.UsageError, match="contains no batch"):
        ts.read_batch(tmp_path)
