"""What a worker of a cluster does with rows, without a cluster: the verbs on batches, the two functions around an engine."""

from __future__ import annotations

import asyncio
import json
import pickle
import re
import socket
import time
from typing import Any

import pytest

import toolspeak as ts
from toolspeak.ray.connect import LOST, Cluster

pyarrow = pytest.importorskip("pyarrow")
np = pytest.importorskip("numpy")


def refund(order: int, urgent: bool = False) -> str:
    """Refund an order."""
    return ""


class Answering:
    """A text model that refunds the order whose number ends the question; it counts how many are asked at once."""

    name = "answering"
    capabilities: frozenset[str] = frozenset()

    def __init__(self) -> None:
        self.running = self.most = 0

    async def stream(self, request: Any) -> Any:
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        self.running -= 1
        order = str(request.messages[-1]["content"]).rpartition(" ")[2]
        text = json.dumps({"tool": "refund", "tool_input": {"order": int(order)}}) if order.isdigit() else order
        yield ts.TextDelta(text)
        yield ts.Finished("stop")


def model() -> Any:
    return ts.model(Answering(), dialect="tool-json")  # type: ignore[arg-type]


def orders(column: Any) -> list[list[int]]:
    return [[call["arguments"]["order"] for call in json.loads(calls)] for calls in column]


def table(count: int) -> dict[str, list[Any]]:
    return {"key": list(range(count)), "question": [f"Refund {number}" for number in range(count)]}


def as_arrays(columns: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: np.array(values, dtype=object if name == "question" else None) for name, values in columns.items()}


@pytest.mark.parametrize("form", [as_arrays, pyarrow.table], ids=["numpy", "arrow"])
def test_decide_adds_columns_to_a_batch_in_its_form(form: Any) -> None:
    batch = form(table(5))
    out = asyncio.run(ts.ray.Decide(prompt="question", tools=[refund], model=model())(batch))
    assert type(out) is type(batch)
    columns = out if isinstance(out, dict) else out.to_pydict()
    assert orders(columns["calls"]) == [[number] for number in range(5)]
    assert list(columns["key"]) == list(range(5))
    assert list(columns["error"]) == [None] * 5
    assert len(set(columns["fingerprint"])) == 1


def test_arrow_columns_have_one_type_whatever_is_in_them() -> None:
    decide = ts.ray.Decide(prompt="question", tools=[refund], model=model())

    async def schemas() -> list[Any]:
        return [(await decide(pyarrow.table({"question": [one]}))).schema for one in ("Refund 1", "no_call")]

    first, second = asyncio.run(schemas())
    assert first == second


def test_batches_of_one_actor_share_its_limit() -> None:
    answering = Answering()
    asked = ts.model(answering, dialect="tool-json")  # type: ignore[arg-type]
    decide = ts.ray.Decide(prompt="question", tools=[refund], model=asked, concurrency=3)

    async def both() -> list[Any]:
        return await asyncio.gather(*(decide(as_arrays(table(20))) for _ in range(3)))

    for out in asyncio.run(both()):
        assert orders(out["calls"]) == [[number] for number in range(20)]
    assert 1 < answering.most <= 3


def test_a_bad_row_is_a_row_with_an_error() -> None:
    batch = {"question": np.array(["Refund 1", None, "Refund 3"], dtype=object)}
    out = asyncio.run(ts.ray.Decide(prompt="question", tools=[refund], model=model())(batch))
    assert orders(out["calls"]) == [[1], [], [3]]
    assert out["error"] == [None, "UsageError: the column 'question' is empty", None]


def test_messages_in_a_column_are_a_conversation() -> None:
    messages = np.empty(1, dtype=object)
    messages[0] = np.array([{"role": "user", "content": "Hello"}, {"role": "user", "content": "Refund 8"}])
    out = asyncio.run(ts.ray.Decide(prompt="turns", tools=[refund], model=model())({"turns": messages}))
    assert orders(out["calls"]) == [[8]]


def test_extract_gives_values_as_json_text() -> None:
    schema = {"title": "person", "type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    reply = '{"tool": "record_person", "tool_input": {"age": 31}}'
    extract = ts.ray.Extract(schema, model=ts.Scripted(reply, repeat=True))
    out = asyncio.run(extract(pyarrow.table({"text": ["Alice is 31", "Bob too"]})))
    assert [json.loads(value) for value in out.to_pydict()["value"]] == [{"age": 31}] * 2


def test_what_would_come_for_every_row_is_raised() -> None:
    decide = ts.ray.Decide(tools=[refund], model=model())
    with pytest.raises(ts.UsageError, match="no column 'text'; the columns are: question"):
        asyncio.run(decide({"question": np.array(["x"])}))
    decide = ts.ray.Decide(prompt="question", tools=[refund], model="http://127.0.0.1:9/v1#m")
    with pytest.raises(ts.ModelUnreachable):
        asyncio.run(decide({"question": np.array(["x"] * 40)}))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"concurrency": 0}, "concurrency: expected a whole number from 1, received 0"),
        ({"concurency": 3}, "Did you mean 'concurrency'"),
        ({"prompt": "{"}, "prompt: '{'"),
    ],
)
def test_options_are_checked_where_they_are_given(options: dict[str, Any], problem: str) -> None:
    with pytest.raises(ts.UsageError, match=re.escape(problem)):
        ts.ray.Decide(**options)


# ------------------------------------------------------------------ around an engine

CALL = '<tool_call>\n{"name": "refund", "arguments": {"order": 7}}\n</tool_call>'


def around() -> tuple[Any, Any]:
    """The two functions, as a worker gets them."""
    return pickle.loads(pickle.dumps((ts.ray.render([refund], "hermes"), ts.ray.parse([refund], "hermes"))))


def test_rows_go_through_an_engine_and_come_out_with_calls() -> None:
    render, parse = around()
    row = {"id": 1, "text": "Refund 7"}
    asked = {**row, **render(row)}
    assert "<tools>" in asked["prompt"]
    assert asked["prompt"].endswith("<|im_start|>assistant\n")
    assert asked["sampling_params"] == {"skip_special_tokens": False, "stop": ["<|im_end|>"]}
    out = parse({**asked, "generated_text": CALL, "num_input_tokens": 90, "num_generated_tokens": 20})
    assert json.loads(out["calls"])[0]["arguments"] == {"order": 7}
    assert (out["id"], out["error"], out["tokens"]) == (1, None, 110)
    assert not {"prompt", "messages", "sampling_params"} & out.keys()


def test_a_call_that_does_not_fit_its_tool_is_an_error() -> None:
    _, parse = around()
    for text in (CALL.replace("7", '"seven"'), CALL.replace("refund", "delete")):
        assert parse({"generated_text": text})["error"].startswith("GenerationError: no valid reply in 1 try")


def test_requests_for_a_server_and_its_answers() -> None:
    render = ts.ray.render([refund], "hermes", "{subject}!", payload={"model": "m", "max_tokens": 9})
    payload = render({"subject": "Refund 7"})["payload"]
    assert (payload["model"], payload["max_tokens"], payload["stop"]) == ("m", 9, ["<|im_end|>"])
    assert payload["messages"][-1] == {"role": "user", "content": "Refund 7!"}
    _, parse = around()
    body = {"choices": [{"message": {"content": CALL}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5}}
    assert json.loads(parse({"http_response": body})["calls"])[0]["name"] == "refund"
    assert parse({"http_response": {"error": "busy"}})["error"].startswith("ServerFailed: the server answered without")


def test_rows_that_cannot_be_rendered() -> None:
    render, parse = around()
    assert render({"text": None}) == {"__inference_error__": "UsageError: the column 'text' is empty"}
    with pytest.raises(ts.UsageError, match="no column 'text'; the columns are: body"):
        render({"body": "x"})
    with pytest.raises(ts.UsageError, match="generated_text"):
        parse({"body": "x"})


# ------------------------------------------------------------------ a cluster that goes away


def test_a_cluster_that_is_gone_is_told_after_a_while() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        long_ago = time.monotonic() - LOST - 1
        there = Cluster(address, 1, seen=long_ago, looked=0)
        asyncio.run(there.check())
        assert there.seen > long_ago
    asyncio.run(there.check())  # it was looked at a moment ago
    there.looked = 0
    asyncio.run(there.check())  # one that has just gone may come back
    there.looked, there.seen = 0, long_ago
    with pytest.raises(ts.ModelError, match=f"the cluster is gone: nobody has listened at {address} for 30 s"):
        asyncio.run(there.check())
