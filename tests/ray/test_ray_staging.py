"""What a cluster leaves in the directory of a job, merged: without a cluster, from files as Ray's writer names them."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.batch.ask import prepared
from toolspeak.batch.formats import output_format
from toolspeak.batch.prompts import prompt
from toolspeak.batch.row import OutputRow, Row
from toolspeak.batch.store import DONE, WAITING, Store, open_store, read_records
from toolspeak.cli import main

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

from toolspeak.ray.actor import BlockAsker, Work  # noqa: E402
from toolspeak.ray.exchange_folder import Merge, Staging, new_run  # noqa: E402


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A job of ten rows, none of which is done."""
    with open_store(tmp_path / "out", {}, "f", output_format("jsonl"), 4) as one:
        assert one.register([(number, str(number)) for number in range(10)]) == [(n, WAITING) for n in range(10)]
        yield one


def write(staging: Staging, name: str, numbers: range, text: str, *, pending: bool = False) -> None:
    """A block as workers write it."""
    rows = [{"place": number, "id": str(number), "row": json.dumps({"id": number, "text": text})} for number in numbers]
    parquet.write_table(pyarrow.Table.from_pylist(rows), staging.records / f"{name}_000000.parquet")
    ids = pyarrow.table({"id": [str(number) for number in numbers]})
    parquet.write_table(ids, staging.checkpoint / f"{name}{'.pending' if pending else ''}.parquet")


def texts(store: Store) -> dict[int, str]:
    store.write_rest()
    return {row["id"]: row["text"] for row in read_records(store.path)}


def test_blocks_count_when_their_checkpoint_is_committed(store: Store, tmp_path: Path) -> None:
    merge = Merge(store)
    staging = new_run(tmp_path / "home", merge)
    write(staging, "a", range(3), "first")
    write(staging, "b", range(3, 6), "lost", pending=True)
    assert [record.id for record in merge.merge(staging)] == [0, 1, 2]
    assert list(merge.merge(staging)) == []
    write(staging, "b", range(3, 6), "second")
    assert [record.id for record in merge.merge(staging)] == [3, 4, 5]
    assert texts(store) == {0: "first", 1: "first", 2: "first", 3: "second", 4: "second", 5: "second"}


def test_what_a_killed_driver_left_is_merged_once(store: Store, tmp_path: Path) -> None:
    merge = Merge(store)
    earlier = new_run(tmp_path / "home", merge)
    write(earlier, "a", range(3), "earlier")
    write(earlier, "b", range(3, 6), "lost", pending=True)
    store.add(1, OutputRow(1, text="in one process"))
    store.commit()
    staging = new_run(tmp_path / "home", merge)
    assert staging.path != earlier.path
    assert not earlier.path.exists()
    assert texts(store) == {0: "earlier", 1: "in one process", 2: "earlier"}
    states = [state for _, state in store.register([(99, str(number)) for number in range(4)])]
    assert states == [DONE, DONE, DONE, WAITING]
    staging.remove()
    assert not (tmp_path / "home").exists()


def test_a_shard_is_written_when_none_of_its_rows_is_under_way(store: Store, tmp_path: Path) -> None:
    merge = Merge(store)
    staging = new_run(tmp_path / "home", merge)
    merge.left.update({0: 4, 1: 4, 2: 2})
    write(staging, "a", range(2, 6), "x")
    list(merge.merge(staging))
    assert not list(store.path.glob("part-*"))
    write(staging, "b", range(2), "x")
    list(merge.merge(staging))
    assert [path.name for path in store.path.glob("part-*")] == ["part-00000.jsonl"]


def test_rows_come_out_of_a_block_as_they_went_in(tmp_path: Path, store: Store) -> None:
    staging = new_run(tmp_path / "home", Merge(store))
    rows = [
        Row(4, "a", {"text": "é\ud800", "turns": [{"role": "user", "content": "x"}]}, "file, line 5"),
        Row(5, 6, {}, ""),
    ]
    staging.write_block(rows)
    assert staging.read_block(0) == rows


# ------------------------------------------------------------------ an actor


def refund(order: int) -> str:
    """Refund an order."""
    return ""


def work(staging: Staging, model: Any) -> Work:
    """What an actor is sent."""
    asked = {"model": model}
    task = asyncio.run(prepared(prompt("text"), "decide", [refund], None, asked)).task
    return Work(
        form="rows", prompt=prompt("text"), verb="decide", tools=tuple(ts.Toolbox(refund)), kind=None, settings=asked,
        further={"tries": None, "dialect": None}, concurrency=4, again=False, parts=json.dumps(task.parts, default=str),
        fingerprint=task.fingerprint, run=staging.path, folder=Path.cwd(),
    )  # fmt: skip


def block(staging: Staging, count: int) -> Any:
    """The number of a block of so many rows, as Ray gives it to an actor."""
    staging.write_block([Row(number, number, {"text": f"Refund {number}"}, "") for number in range(count)])
    return pyarrow.table({"id": [0]})


REPLY = '{"tool": "refund", "tool_input": {"order": 7}}'


def test_an_actor_answers_a_block(store: Store, tmp_path: Path) -> None:
    staging = new_run(tmp_path / "home", Merge(store))
    sent = pickle.loads(pickle.dumps(replace(work(staging, ts.Scripted(REPLY, repeat=True)), tools=())))
    actor = BlockAsker(replace(sent, tools=tuple(ts.Toolbox(refund))))
    rows = asyncio.run(actor(block(staging, 9))).to_pylist()
    assert [row["place"] for row in rows] == list(range(9))
    assert all(json.loads(json.loads(row["row"])["calls"])[0]["arguments"] == {"order": 7} for row in rows)


def test_an_actor_leaves_out_what_it_has_not_begun_when_the_job_is_to_end(store: Store, tmp_path: Path) -> None:
    staging = new_run(tmp_path / "home", Merge(store))
    staging.stop.touch()
    out = asyncio.run(BlockAsker(work(staging, ts.Scripted(REPLY, repeat=True)))(block(staging, 9)))
    assert out.num_rows == 0
    assert out.schema.names == ["place", "id", "row"]


def test_the_error_that_ends_the_job_comes_to_the_driver_as_it_was(store: Store, tmp_path: Path) -> None:
    staging = new_run(tmp_path / "home", Merge(store))
    assert staging.error() is None
    with pytest.raises(ts.KeyRefused):
        asyncio.run(BlockAsker(work(staging, ts.Scripted([ts.KeyRefused("no such key")])))(block(staging, 1)))
    error = staging.error()
    assert isinstance(error, ts.KeyRefused)
    assert str(error) == "no such key"


def test_an_actor_that_would_ask_in_another_way_refuses(store: Store, tmp_path: Path) -> None:
    staging = new_run(tmp_path / "home", Merge(store))
    sent = work(staging, ts.Scripted(REPLY))
    parts = {**json.loads(sent.parts), "version": "0.0.1"}
    other = replace(sent, parts=json.dumps(parts), fingerprint="0")
    with pytest.raises(ts.UsageError, match=f"version: {ts.__version__}, not 0.0.1"):
        asyncio.run(BlockAsker(other)(block(staging, 1)))


# ------------------------------------------------------------------ without Ray


def has_ray() -> bool:
    try:
        import ray.data  # type: ignore[import-not-found] # noqa: F401
    except ImportError:
        return False
    return True


@pytest.mark.skipif(has_ray(), reason="Ray is installed")
def test_without_ray_the_command_says_what_to_install(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"id": 1, "text": "Hello"}\n')
    out = tmp_path / "out"
    assert main(["batch", str(rows), str(out), "--model", "scripted:Hi", "--ray"]) == 1
    assert capsys.readouterr().err == "error: A cluster needs Ray Data: pip install 'toolspeak[ray]'\n"
    assert not out.exists()


def test_options_of_a_cluster_are_for_a_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", "rows.jsonl", str(tmp_path / "out"), "--model", "scripted:Hi", "--workers", "2"]) == 2
    assert "--address and --workers need --ray" in capsys.readouterr().err


def test_functions_that_use_the_package_can_be_sent() -> None:
    assert pickle.loads(pickle.dumps(ts)) is ts
