"""The audit: a line for each decision about a call, without anything that somebody wrote."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import toolspeak as ts
from replies import calls, native
from toolspeak.audit import TRIES, SqliteHandler, audit, request_id
from toolspeak.gateway.call_policy import CallPolicy, policed
from toolspeak.gateway.config.load import parse_config
from toolspeak.gateway.config.settings import Audit
from toolspeak.gateway.generation import answer
from toolspeak.gateway.telemetry.audit_database import close_audit, use_audit_file
from toolspeak.gateway.telemetry.log_lines import LogLines
from toolspeak.models.tool_calling import calling
from toolspeak.types import Request

SECRET = "canary-7f3a"
POLICY = ts.Policy(allow=["look"], deny=["remove"])


def look(text: str) -> str:
    """Look."""
    return text


def remove(text: str) -> str:
    """Remove."""
    return text


def move(text: str) -> str:
    """Move."""
    return text


WANTED = [(name, {"text": SECRET}) for name in ("look", "remove", "move")]


def rows(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [record.__dict__["audit"] for record in caplog.records if record.name == "toolspeak.audit"]


def run(**options: Any) -> ts.Reply:
    return ts.run("go", tools=[look, remove, move], model=native(calls(*WANTED), "Done."), policy=POLICY, **options)


@pytest.mark.parametrize(
    ("approve", "outcome"),
    [
        (None, "pending"), (lambda call: True, "approved"), (lambda call: False, "declined"), (lambda call: "no", "declined"),
        (lambda call: ts.Edit({"text": "b"}), "edited"), (lambda call: ts.Answer("b"), "answered"),
    ],
)  # fmt: skip
def test_a_decision_is_a_line(caplog: pytest.LogCaptureFixture, approve: Any, outcome: str) -> None:
    with caplog.at_level(logging.INFO, "toolspeak.audit"):
        run(approve=approve)
    found = sorted(rows(caplog), key=lambda row: row["verdict"])
    assert [(row["verdict"], row["rule"], row["outcome"]) for row in found][:1] == [("allow", "look", "allowed")]
    assert ("deny", "remove", "refused") in [(row["verdict"], row["rule"], row["outcome"]) for row in found]
    assert ("ask", "", outcome) in [(row["verdict"], row["rule"], row["outcome"]) for row in found]
    assert SECRET not in caplog.text
    assert len({row["call"] for row in found}) == 3


def test_nothing_is_worked_out_where_nobody_listens(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "toolspeak.audit"):
        run()
    assert rows(caplog) == []


def test_the_gateway_names_the_key_and_digests_a_call_alike(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """A digest is the same in the library and in the gateway, and its log tells the fields."""
    with caplog.at_level(logging.INFO, "toolspeak.audit"):
        run()
        own = {row["call"] for row in rows(caplog)}
        caplog.clear()
        tools = tuple(map(ts.tool, (look, remove, move)))
        request = Request(messages=[{"role": "user", "content": "go"}], tools=tools)
        model = calling(native(calls(*WANTED)))

        async def go() -> None:
            async for _ in policed(
                lambda asked: answer(asked, model), request, CallPolicy(POLICY, "mark"), who="alice"
            ):
                pass

        asyncio.run(go())
    found = rows(caplog)
    assert {row["call"] for row in found} == own
    assert [(row["who"], row["outcome"]) for row in found] == [
        ("alice", "allowed"),
        ("alice", "refused"),
        ("alice", "marked"),
    ]
    written = os.open(tmp_path / "log", os.O_CREAT | os.O_WRONLY)
    try:
        lines = LogLines(written)
        logged = [json.loads(lines.line(record)) for record in caplog.records if record.name == "toolspeak.audit"]
    finally:
        os.close(written)
    assert (logged[0]["logger"], logged[0]["who"], logged[0]["rule"]) == ("toolspeak.audit", "alice", "look")
    assert SECRET not in json.dumps(logged)


def test_decisions_are_rows_of_a_file(tmp_path: Path) -> None:
    """Of several processes, without the arguments of calls unless they are asked for, and no longer than they are kept."""
    plain, whole = tmp_path / "plain.sqlite", tmp_path / "whole.sqlite"
    log = logging.getLogger("toolspeak.audit")
    log.setLevel(logging.INFO)
    for number in range(2):  # one after the other, as processes are
        handlers = [SqliteHandler(plain)]
        if number:
            handlers.append(SqliteHandler(whole, arguments=True, age=0.0))
        try:
            for handler in handlers:
                log.addHandler(handler)
            run(approve=lambda call: "no")
        finally:
            for handler in handlers:
                log.removeHandler(handler)
                handler.close()
    log.setLevel(logging.NOTSET)

    def rows(path: Path) -> list[tuple[Any, ...]]:
        with closing(sqlite3.connect(path)) as database:
            return database.execute(
                "SELECT outcome, verdict, rule, who, arguments FROM audit ORDER BY outcome"
            ).fetchall()

    expected = [
        ("allowed", "allow", "look", "", None),
        ("declined", "ask", "", "", None),
        ("refused", "deny", "remove", "", None),
    ]
    assert rows(plain) == [row for row in expected for _ in range(2)]
    assert SECRET.encode() not in plain.read_bytes()
    assert plain.stat().st_mode & 0o077 == 0
    assert [json.loads(row[4]) for row in rows(whole)] == [
        [name, {"text": SECRET}] for name in ("look", "move", "remove")
    ]


def test_a_file_of_an_earlier_version_gets_the_new_column(tmp_path: Path) -> None:
    path = tmp_path / "audit.sqlite"
    old = "time REAL, outcome TEXT, verdict TEXT, rule TEXT, origin TEXT, call TEXT, who TEXT, arguments TEXT"
    with closing(sqlite3.connect(path)) as database, database:
        database.execute(f"CREATE TABLE audit ({old})")
        database.execute("INSERT INTO audit VALUES (1.0, 'allowed', 'allow', 'look', '', 'sha256:0', 'alice', NULL)")
    use_audit_file(Audit(str(path), age=1e12))
    token = request_id.set("req_1")
    try:
        for _ in range(2):
            audit(ts.ToolCall("c0", "look", {"text": SECRET}), None, "allowed", who="bob")
    finally:
        request_id.reset(token)
        close_audit()
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT who, request, arguments FROM audit").fetchall()
    assert rows == [("alice", None, None), ("bob", "req_1", None), ("bob", "req_1", None)]


def test_decisions_are_events_of_the_span() -> None:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("work"):
        run()
    [span] = exporter.get_finished_spans()
    told = [dict(event.attributes or {}) for event in span.events if event.name == "toolspeak.call_decision"]
    assert sorted(str(row["toolspeak.decision.outcome"]) for row in told) == ["allowed", "pending", "refused"]
    assert SECRET not in str(told)


def test_the_gateway_writes_them_to_the_file_of_its_configuration(tmp_path: Path) -> None:
    text = '[models.m]\nupstream = "scripted:Hi"\n[audit]\npath = "audit.sqlite"\narguments = true\n'
    call = ts.ToolCall("c0", "look", {"text": SECRET})
    use_audit_file(parse_config(text, folder=tmp_path).audit)
    audit(call, None, "allowed", who="alice")
    close_audit()
    audit(call, None, "allowed", who="bob")
    with closing(sqlite3.connect(tmp_path / "audit.sqlite")) as database:
        rows = database.execute("SELECT who, outcome, arguments FROM audit").fetchall()
    assert rows == [("alice", "allowed", json.dumps(["look", {"text": SECRET}], separators=(",", ":")))]


def test_a_locked_file_loses_nothing_and_ends_soon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows that wait are tried together: each for itself delayed the end of the process by its own half minute."""
    monkeypatch.setattr("toolspeak.audit.WAIT", 0.01)
    path = tmp_path / "audit.sqlite"
    tries: list[int] = []
    real = SqliteHandler._write

    def counted(self: SqliteHandler, rows: list[tuple[Any, ...]]) -> bool:
        tries.append(len(rows))
        return real(self, rows)

    monkeypatch.setattr(SqliteHandler, "_write", counted)
    call = ts.ToolCall("c0", "look", {})
    use_audit_file(Audit(str(path)))
    audit(call, None, "allowed")
    close_audit()
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        use_audit_file(Audit(str(path)))
        for _ in range(50):
            audit(call, None, "allowed")
        close_audit()
        assert sum(count == 50 for count in tries) <= 2
        assert len(tries) <= 1 + TRIES + 2
        use_audit_file(Audit(str(path)))
        for _ in range(50):
            audit(call, None, "refused")
        database.execute("ROLLBACK")
    close_audit()
    with closing(sqlite3.connect(path)) as database:
        assert [row[0] for row in database.execute("SELECT outcome FROM audit")] == ["allowed"] + ["refused"] * 50


def test_the_rows_that_wait_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("toolspeak.audit.WAITING", 5)
    (tmp_path / "folder").mkdir()
    use_audit_file(Audit(str(tmp_path / "folder")))
    for _ in range(8):
        audit(ts.ToolCall("c0", "look", {}), None, "allowed")
    close_audit()
    assert "8 decisions were not written" in caplog.text


def test_the_arguments_that_wait_have_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Ten thousand rows may wait for a locked file, and each could have megabytes of arguments."""
    monkeypatch.setattr("toolspeak.audit.ROOM", 1_000)
    monkeypatch.setattr("toolspeak.audit.TRIES", 1)
    monkeypatch.setattr("toolspeak.audit.WAIT", 0.01)
    path = tmp_path / "audit.sqlite"
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        use_audit_file(Audit(str(path), arguments=True))
        for _ in range(8):
            audit(ts.ToolCall("c0", "look", {"text": "x" * 400}), None, "allowed")
        database.execute("ROLLBACK")
    close_audit()
    with closing(sqlite3.connect(path)) as database:
        rows = [row[0] for row in database.execute("SELECT arguments FROM audit")]
    assert [row is not None for row in rows] == [True] * 2 + [False] * 6
    assert "the arguments of 6 decisions were not written" in caplog.text


def test_large_calls_are_decided_in_a_thread(caplog: pytest.LogCaptureFixture) -> None:
    """A digest of megabytes, and a look through a long conversation, take tenths of a second."""
    caplog.set_level(logging.INFO, "toolspeak.audit")
    rule = CallPolicy(ts.Policy(allow=["look"]))

    async def go(length: int, history: int) -> None:
        messages: list[Any] = [{"role": "user", "content": "Hi" * history}]
        request = Request(messages, tools=(ts.tool(look),))
        model = native([*calls(("look", {"text": "x" * length}))])
        async for _ in policed(lambda one: answer(one, model), request, rule):
            pass

    for length, history in ((1, 1), (200_000, 1), (1, 200_000)):
        asyncio.run(go(length, history))
    here = [one.thread == threading.get_ident() for one in caplog.records]
    assert here == [True, False, False]


def test_the_same_settings_keep_the_file(tmp_path: Path) -> None:
    """A reload must not miss a decision while the file is replaced."""
    first = Audit(str(tmp_path / "a.sqlite"))
    use_audit_file(first)
    [handler] = logging.getLogger("toolspeak.audit").handlers[-1:]
    assert use_audit_file(Audit(str(tmp_path / "a.sqlite"))) == []
    assert handler in logging.getLogger("toolspeak.audit").handlers
    assert use_audit_file(Audit(str(tmp_path / "b.sqlite"))) == [handler]
    handler.close()
    close_audit()
