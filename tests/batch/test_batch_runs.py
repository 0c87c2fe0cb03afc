"""Batches that run calls: keys by which a tool knows a call again, and calls that may have run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from test_batch import call, speaking

import toolspeak as ts
from toolspeak.batch.formats import JsonLines
from toolspeak.batch.store import open_store, read_manifest
from toolspeak.errors import RateLimited

KEYS: list[str] = []
DATA = [{"id": "a", "text": "Charge order 7"}, {"id": "b", "text": "Charge order 8"}]


def charge(order: int, idempotency_key: Annotated[str, ts.Injected]) -> str:
    """Charge an order."""
    KEYS.append(idempotency_key)
    return f"charged {order}"


@pytest.fixture(autouse=True)
def no_keys() -> None:
    KEYS.clear()


def charging(prompt: str) -> str:
    return call("charge", order=int(prompt[-1])) if prompt.startswith("Charge") else "It is done."


def run(out: Path, answer: Any = charging, **options: Any) -> ts.Summary:
    model, _ = speaking(answer)
    return ts.batch(DATA, out, verb="run", tools=[charge], model=model, **options)


def test_a_tool_gets_the_key_of_its_call(tmp_path: Path) -> None:
    summary = run(tmp_path / "out")
    assert sorted(KEYS) == [f"a:{summary.fingerprint}:0", f"b:{summary.fingerprint}:0"]


def under_way_at_a_kill(out: Path) -> None:
    """Leaves the directory as a kill leaves it that came while the calls of the first row were run."""
    run(out)
    manifest = read_manifest(out)
    (out / "part-00000.jsonl").unlink()
    with open_store(out, manifest["job"], manifest["fingerprint"], JsonLines(), manifest["shard"]) as store:
        store.journal.execute("UPDATE rows SET state = 0")
        store.begin(0, "charge")
    KEYS.clear()


def test_calls_that_may_have_run_are_not_run_again_by_themselves(tmp_path: Path) -> None:
    under_way_at_a_kill(tmp_path / "out")
    summary = run(tmp_path / "out")
    first, second = ts.read_batch(tmp_path / "out")
    assert first["error"] == "MayHaveRun: the process died after charge began; it may have run"
    assert second["error"] is None
    assert [f"b:{summary.fingerprint}:0"] == KEYS
    assert run(tmp_path / "out", retry_errors=True).errors == 0
    assert KEYS[1:] == [f"a:{summary.fingerprint}:0"]


def test_calls_that_may_have_run_are_run_again_with_the_same_key_where_that_is_wanted(tmp_path: Path) -> None:
    under_way_at_a_kill(tmp_path / "out")
    summary = run(tmp_path / "out", may_have_run="again")
    assert summary.errors == 0
    assert sorted(KEYS) == [f"a:{summary.fingerprint}:0", f"b:{summary.fingerprint}:0"]


def test_a_call_that_a_policy_wants_asked_about_waits(tmp_path: Path) -> None:
    run(tmp_path / "out", policy=ts.Policy(allow=["charge(order=7)"]))
    first, second = ts.read_batch(tmp_path / "out")
    assert (first["text"], first["notes"]) == ("It is done.", [])
    assert (second["finish"], second["notes"], len(json.loads(second["calls"]))) == (
        "tool_calls",
        ["waits-for-approval: charge"],
        1,
    )
    assert [key[:2] for key in KEYS] == ["a:"]


def test_a_refusal_after_a_call_does_not_run_it_again(tmp_path: Path) -> None:
    def answer(prompt: str) -> str:
        if not prompt.startswith("Charge"):
            raise RateLimited("too many requests", retry_after=0.0)
        return charging(prompt)

    summary = run(tmp_path / "out", answer)
    assert summary.kinds == {"RateLimited": 2}
    assert len(KEYS) == 2
