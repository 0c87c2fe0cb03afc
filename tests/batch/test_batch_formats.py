"""Formats of batches: Parquet, Arrow, OpenAI's Batch lines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_batch import call, refund, refunding, rows, speaking

import toolspeak as ts

arrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def test_parquet_comes_in_and_goes_out(tmp_path: Path) -> None:
    parquet.write_table(arrow.Table.from_pylist(rows(30)), tmp_path / "in.parquet")
    model, _ = speaking(refunding)
    summary = ts.batch(tmp_path / "in.parquet", tmp_path / "out", tools=[refund], model=model, shard=12)
    assert (summary.rows, summary.done) == (30, 30)
    table = parquet.read_table([str(path) for path in sorted((tmp_path / "out").glob("part-*.parquet"))])
    assert table.column("id").to_pylist() == list(range(30))
    assert table.schema.field("calls").type == arrow.string()
    assert [row["id"] for row in ts.read_batch(tmp_path / "out")] == list(range(30))
    assert parquet.read_table(tmp_path / "out").num_rows == 30  # the directory is a data set, for pandas and its like


def test_values_in_parquet_are_json_text_and_come_back_as_values(tmp_path: Path) -> None:
    schema = {"type": "array", "items": {"type": "integer"}}
    model, _ = speaking(lambda prompt: call("record_value", value=[7]))
    ts.batch(rows(2), tmp_path / "out", verb="extract", kind=schema, model=model, format="parquet")
    assert parquet.read_table(tmp_path / "out" / "part-00000.parquet").column("value").to_pylist() == ["[7]", "[7]"]
    assert [row["value"] for row in ts.read_batch(tmp_path / "out")] == [[7], [7]]


def test_ids_of_two_types_become_texts_in_parquet(tmp_path: Path) -> None:
    model, _ = speaking(refunding)
    ts.batch([*rows(2), 7], tmp_path / "out", tools=[refund], model=model, format="parquet")
    first, second, third = (row["id"] for row in ts.read_batch(tmp_path / "out"))
    assert (first, second, third[:11]) == ("0", "1", "unreadable-")


def test_errors_in_parquet_are_asked_again(tmp_path: Path) -> None:
    broken = True

    def answer(prompt: str) -> str:
        if broken and prompt.endswith("3"):
            raise ValueError("later")
        return refunding(prompt)

    model, _ = speaking(answer)
    table = arrow.Table.from_pylist(rows(10))
    ts.batch(table, tmp_path / "out", tools=[refund], model=model, shard=4)
    broken = False
    ts.batch(table, tmp_path / "out", tools=[refund], model=model, shard=4, retry_errors=True)
    read = list(ts.read_batch(tmp_path / "out"))
    assert [(row["id"], row["error"]) for row in read] == [(i, None) for i in range(10)]


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.parquet").write_bytes(b"no")
    with pytest.raises(ts.UsageError, match="is not a Parquet file"):
        ts.batch(tmp_path / "in.parquet", tmp_path / "out", model="scripted:a")


def test_a_parquet_without_the_column_is_refused(tmp_path: Path) -> None:
    parquet.write_table(arrow.Table.from_pylist([{"id": 1, "body": "a"}]), tmp_path / "in.parquet")
    with pytest.raises(ts.UsageError, match="no column 'text'; the columns are: id, body"):
        ts.batch(tmp_path / "in.parquet", tmp_path / "out", model="scripted:a")


# ------------------------------------------------------------------ OpenAI's Batch format

TOOL = {
    "type": "function",
    "function": {
        "name": "refund",
        "parameters": {"type": "object", "properties": {"order": {"type": "integer"}}, "required": ["order"]},
    },
}


def line(number: int, **body: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": f"Refund order {number}"}]
    return {
        "custom_id": f"request-{number}",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "gpt", "messages": messages, "tools": [TOOL], **body},
    }


def lines_of(path: Path, *lines: Any) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_lines_of_openai_become_responses_that_its_sdk_reads(tmp_path: Path) -> None:
    from openai.types.chat import ChatCompletion

    bad = {**line(3), "url": "/v1/embeddings"}
    wrong = line(4, temperature="hot")
    source = lines_of(tmp_path / "in.jsonl", line(1), line(2, tools=None), bad, wrong)
    model, _ = speaking(lambda prompt: "It is late." if prompt.endswith("2") else refunding(prompt))
    summary = ts.batch(source, tmp_path / "out", model=model)
    written = [json.loads(text) for text in (tmp_path / "out" / "part-00000.jsonl").read_text().splitlines()]
    assert [(row["custom_id"], row["response"]["status_code"]) for row in written] == [
        ("request-1", 200), ("request-2", 200), ("request-3", 400), ("request-4", 400),
    ]  # fmt: skip
    assert all(row.keys() == {"id", "custom_id", "response", "error"} for row in written)
    first, second = (ChatCompletion.model_validate(row["response"]["body"]) for row in written[:2])
    assert first.choices[0].message.tool_calls is not None
    assert first.choices[0].message.tool_calls[0].function.arguments == '{"order": 1}'  # type: ignore[union-attr]
    assert (second.choices[0].message.content, second.model) == ("It is late.", "gpt")
    assert written[2]["response"]["body"]["error"]["param"] == "url"
    assert "temperature" in written[3]["response"]["body"]["error"]["message"]
    assert summary.kinds == {"Refused": 2}


def test_lines_of_openai_are_asked_once(tmp_path: Path) -> None:
    source = lines_of(tmp_path / "in.jsonl", *map(line, range(20)))
    model, echo = speaking(refunding)
    ts.batch(source, tmp_path / "out", model=model)
    ts.batch(source, tmp_path / "out", model=model)
    assert len(echo.prompts) == 20
    assert [row["custom_id"] for row in ts.read_batch(tmp_path / "out")] == [f"request-{i}" for i in range(20)]


def test_what_stands_in_the_lines_cannot_be_set_beside_them(tmp_path: Path) -> None:
    source = lines_of(tmp_path / "in.jsonl", line(1))
    with pytest.raises(ts.UsageError, match="temperature, tools: each line of OpenAI's Batch format has its own"):
        ts.batch(source, tmp_path / "out", tools=[refund], temperature=0.1, model="scripted:a")
    with pytest.raises(ts.UsageError, match="the openai format is for an input in OpenAI's Batch format"):
        ts.batch(rows(1), tmp_path / "out", format="openai", model="scripted:a")
