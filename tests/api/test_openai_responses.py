"""The Responses API: requests and replies there and back, held against the types of OpenAI's own SDK."""

from __future__ import annotations

import json
import threading
from contextlib import suppress
from typing import Any, get_args

import pytest
from hypothesis import strategies as st
from openai.types.responses import Response, ResponseStreamEvent

from properties import property_test
from replies import events_in
from toolspeak.api import openai_chat
from toolspeak.api.incoming import Stamp
from toolspeak.api.openai_responses import (
    BODY,
    ReplyReader,
    ReplyWriter,
    read_request,
    response_events,
    stored_items,
    write_error,
    write_reply,
    write_request,
)
from toolspeak.errors import ModelError, RateLimited, Refused, ServerFailed, StreamCut, UsageError
from toolspeak.events import (
    ArgumentsDelta,
    CallEnd,
    CallStart,
    Event,
    Finished,
    Logprobs,
    Noted,
    TextDelta,
    ThoughtDelta,
)
from toolspeak.gateway.body import check_body
from toolspeak.schema.validators import judge
from toolspeak.types import Message, Note, Request, Tool, Usage
from toolspeak.wire.reading.collect import collect

STAMP = Stamp("0123", 1_700_000_000, "m")
WEATHER = {
    "type": "function",
    "name": "weather",
    "description": "The weather in a city.",
    "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}
PATCH = {"type": "custom", "name": "patch", "description": "Changes files."}
EVENTS = {
    get_args(kind.model_fields["type"].annotation)[0]: kind for kind in get_args(get_args(ResponseStreamEvent)[0])
}


def check_arguments(tool: Tool[..., Any], arguments: dict[str, Any]) -> None:
    assert judge(tool.parameters).is_valid(arguments)
    assert not judge(tool.parameters).is_valid({})


def body(**fields: Any) -> dict[str, Any]:
    made = {"model": "m", "input": "Hi", **fields}
    check_body(made, BODY)
    return made


def told(data: bytes) -> list[dict[str, Any]]:
    """The events of a stream, each held against the SDK's type of it, in order and numbered without a gap."""
    events: list[dict[str, Any]] = []
    for block in data.decode().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n") if line and not line.startswith(":"))
        if lines.get("data", "[DONE]") != "[DONE]":
            payload = json.loads(lines["data"])
            assert lines["event"] == payload["type"]
            EVENTS[payload["type"]].model_validate(payload, strict=True)
            events.append(payload)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    return events


def stream(events: list[Event], **fields: Any) -> bytes:
    writer = ReplyWriter(read_request(body(**fields)), STAMP)
    return writer.begin() + b"".join(writer.feed(event) for event in events) + writer.close()


def read(data: bytes, size: int | None = None) -> list[Event]:
    return events_in(ReplyReader(), data, size)


def merged(events: list[Event]) -> list[Event]:
    """The same events, neighbouring pieces of one kind joined."""
    out: list[Event] = []
    for event in events:
        last = out[-1] if out else None
        if isinstance(event, ArgumentsDelta) and isinstance(last, ArgumentsDelta):
            out[-1] = ArgumentsDelta(last.json + event.json)
        elif isinstance(event, TextDelta) and isinstance(last, TextDelta):
            out[-1] = TextDelta(last.text + event.text)
        elif isinstance(event, ThoughtDelta) and isinstance(last, ThoughtDelta):
            out[-1] = ThoughtDelta(last.text + event.text)
        else:
            out.append(event)
    return out


def call(name: str, key: str, arguments: str) -> list[Event]:
    return [CallStart(name, key), ArgumentsDelta(arguments), CallEnd()]


# ------------------------------------------------------------------ requests

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
filled = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
names = st.from_regex(r"[a-z][a-z_]{0,7}", fullmatch=True)
texts = st.fixed_dictionaries({"type": st.just("text"), "text": words})
images = st.fixed_dictionaries(
    {"type": st.just("image_url"), "image_url": st.fixed_dictionaries({"url": filled, "detail": st.just("low")})}
)
contents = words | st.lists(texts | images, min_size=2, max_size=3) | st.lists(images, min_size=1, max_size=1)


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Messages in the form that reading gives: a turn of the assistant is one message, each result has its call."""
    messages: list[Message] = []
    for turn in range(draw(st.integers(1, 3))):
        messages.append({"role": draw(st.sampled_from(["user", "system", "developer"])), "content": draw(contents)})
        if draw(st.booleans()):
            answer: Message = {"role": "assistant", "content": draw(filled)}
            if draw(st.booleans()):
                answer["reasoning_content"] = draw(filled)
            keys = [f"call_{turn}_{i}" for i in range(draw(st.integers(0, 2)))]
            if keys:
                answer["content"] = draw(st.none() | filled)
                answer["tool_calls"] = [
                    {"id": key, "type": "function", "function": {"name": draw(names), "arguments": draw(words)}}
                    for key in keys
                ]
            messages.append(answer)
            messages += [{"role": "tool", "tool_call_id": key, "content": draw(contents)} for key in keys]
    return messages


tools = st.lists(
    st.builds(Tool, names, words.map(str.strip), st.just(WEATHER["parameters"]), strict=st.booleans()),
    max_size=3,
    unique_by=lambda tool: tool.name,
).map(tuple)


@st.composite
def requests(draw: st.DrawFn) -> Request:
    offered = draw(tools)
    choices = ["auto", "none", "required", *(tool.name for tool in offered)] if offered else ["auto"]
    effort = draw(st.sampled_from([None, "none", "low"]))
    sampling: dict[str, Any] = {"top_p": 0.5, "frequency_penalty": 1, "verbosity": "low"} if draw(st.booleans()) else {}
    return Request(
        draw(conversations()),
        offered,
        draw(st.sampled_from(choices)),
        parallel=draw(st.booleans()) or not offered,
        max_tokens=draw(st.none() | st.integers(1, 99)),
        temperature=draw(st.none() | st.sampled_from([0.0, 0.7])),
        schema=draw(st.none() | st.just(WEATHER["parameters"])),
        thinking=False if effort == "none" else None,
        logprobs=draw(st.none() | st.integers(0, 20)),
        sampling=sampling | ({"reasoning_effort": effort} if effort else {}),
    )


@property_test(100, requests())
def test_a_request_there_and_back_is_the_same(request: Request) -> None:
    written = write_request(request, "m", thoughts=True)
    check_body(written, BODY)
    asked = read_request(json.loads(json.dumps(written)))
    assert asked.request == request
    assert (asked.model, asked.stream, asked.store, asked.ignored) == ("m", True, False, ())


def test_a_turn_of_several_items_is_one_message() -> None:
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "Weather?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
         "content": [{"type": "output_text", "text": "Let me look.", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "weather", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "b", "name": "patch", "input": "x\ny"},
        {"type": "function_call_output", "call_id": "a", "output": "sunny"},
        {"type": "custom_tool_call_output", "call_id": "b", "output": [{"type": "input_text", "text": "done"}]},
    ]  # fmt: skip
    assert read_request(body(input=items, instructions="Be brief.")).request.messages == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Weather?"},
        {
            "role": "assistant",
            "reasoning_content": "hm",
            "content": "Let me look.",
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "weather", "arguments": "{}"}},
                {"id": "b", "type": "function", "function": {"name": "patch", "arguments": '{"input": "x\\ny"}'}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "sunny"},
        {"role": "tool", "tool_call_id": "b", "content": "done"},
    ]


@pytest.mark.parametrize(
    ("fields", "param", "words"),
    [
        ({"tools": [{"type": "teleport", "parameters": {}}]}, "tools.0.type", "are not supported"),
        ({"tools": [{"type": "teleport"}], "tool_choice": {"type": "beam"}}, "tool_choice.type", "only its provider runs"),
        ({"input": [{"type": "compaction_trigger"}, {"role": "user", "content": "x"}]}, "input.0", "the last item"),
        ({"tools": [{"type": "namespace", "name": "x", "tools": [{"type": "shell"}]}]}, "tools.0.tools.0.type",
         "are not supported"),
        ({"tools": [{"type": "function", "function": {"name": "x"}}]}, "tools.0.name", "beside its type"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "name": "whether"}}, "tool_choice.name", "weather"),
        ({"tools": [WEATHER], "tool_choice": {"type": "web_search_preview"}}, "tool_choice.type", "provider"),
        ({"tool_choice": "required"}, "tool_choice", "no tool is offered"),
        ({"tools": [WEATHER], "tool_choice": {"type": "allowed_tools", "mode": "required", "tools": []}},
         "tool_choice", "no tool is offered"),
        ({"background": True}, "background", "in the background are not supported"),
        ({"conversation": "conv_1"}, "conversation", "previous_response_id"),
        ({"prompt": {"id": "pmpt_1"}}, "prompt", "prompts are not stored"),
        ({"text": {"format": {"type": "json_schema", "name": "x"}}}, "text.format.schema", "missing"),
        ({"input": [{"type": "teleport_call", "id": "ws"}]}, "input.0.type", "are not supported"),
        ({"input": [{"type": "shell_call", "action": {"commands": ["ls"]}}]}, "input.0.call_id", "got nothing"),
        ({"input": [{"type": "shell_call_output", "call_id": "a", "output": []}]}, "input.0.call_id", "send the call"),
        ({"input": [{"type": "shell_call_output", "call_id": "a", "output": 3}]}, "input.0.output", "got 3"),
        ({"tools": [{"type": "shell", "environment": {"type": "container_auto"}}], "tool_choice": {"type": "shell"}},
         "tool_choice.name", "not among the tools"),
        ({"input": [{"type": "item_reference", "id": "msg_1"}]}, "input.0", "send the item itself"),
        ({"input": [{}]}, "input.0.type", "needs a type"),
        ({"input": [{"role": "tool", "content": "x"}]}, "input.0.role", "expected user"),
        ({"input": [{"role": "user", "content": 3}]}, "input.0.content", "got 3"),
        ({"input": [{"role": "user"}]}, "input.0.content", "got nothing"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}, "input.0.content.0",
         "no files"),
        ({"input": [{"role": "user", "content": [{"type": "video"}]}]}, "input.0.content.0", "input_text"),
        ({"input": [{"type": "function_call_output", "call_id": "a", "output": "x"}]}, "input.0.call_id",
         "send the call with its output"),
        ({"input": [{"type": "function_call", "call_id": "a", "name": "x"}]}, "input.0.arguments", "got nothing"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_plainly(fields: dict[str, Any], param: str, words: str) -> None:
    with pytest.raises(Refused, match=words) as caught:
        read_request(body(**fields))
    assert (caught.value.status, caught.value.param) == (400, param)


def test_what_says_nothing_here_is_named() -> None:
    lark = {"type": "grammar", "syntax": "lark", "definition": "start: nothing"}
    asked = read_request(
        body(
            tools=[PATCH | {"format": lark}],
            user="u",
            truncation="auto",
            include=["reasoning.encrypted_content"],
            unheard_of=1,
            input=[{"role": "user", "content": "x"}, {"type": "reasoning", "summary": [], "encrypted_content": "abc"}],
        )
    )
    assert asked.ignored == (
        "input.encrypted_content", "tools.0.format", "truncation", "unheard_of", "user",
    )  # fmt: skip
    assert "start: nothing" in asked.request.tools[0].description


def test_allowed_tools_leave_the_others_out() -> None:
    choice = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "weather"}]}
    request = read_request(body(tools=[WEATHER, PATCH], tool_choice=choice)).request
    assert ([tool.name for tool in request.tools or ()], request.choice) == (["weather"], "required")


def test_a_tool_may_be_called_like_a_word_of_the_choice() -> None:
    tools = [WEATHER | {"name": "none"}, WEATHER]
    request = read_request(body(tools=tools, tool_choice={"type": "function", "name": "none"})).request
    assert ([tool.name for tool in request.tools or ()], request.choice) == (["none"], "required")


def test_a_regex_for_a_custom_tool_is_held_to() -> None:
    form = {"type": "grammar", "syntax": "regex", "definition": "[0-9]+"}
    tool = read_request(body(tools=[PATCH | {"format": form}])).request.tools[0]
    assert tool.parameters["properties"]["input"]["pattern"] == "^([0-9]+)$"


def test_tools_in_a_namespace_have_one_name_each_and_are_called_by_both() -> None:
    space = {"type": "namespace", "name": "mcp__docs", "description": "Docs.", "tools": [WEATHER, PATCH]}
    own = {"type": "namespace", "name": "functions", "description": "", "tools": [WEATHER]}
    before = {"type": "function_call", "call_id": "z", "namespace": "mcp__docs", "name": "weather", "arguments": "{}"}
    fields = {"tools": [space, own], "input": [{"role": "user", "content": "Hi"}, before]}
    asked = read_request(body(**fields, tool_choice={"type": "function", "namespace": "mcp__docs", "name": "weather"}))
    assert [tool.name for tool in asked.request.tools or ()] == ["mcp__docs__weather", "mcp__docs__patch", "weather"]
    assert asked.request.choice == "mcp__docs__weather"
    assert asked.request.messages[1]["tool_calls"][0]["function"]["name"] == "mcp__docs__weather"
    assert "tools.0.description" in asked.ignored
    events = [*call("mcp__docs__weather", "a", "{}"), *call("mcp__docs__patch", "b", '{"input": "x"}'), Finished()]
    output = told(stream(events, **fields))[-1]["response"]["output"]
    assert [(item["type"], item["namespace"], item["name"]) for item in output] == [
        ("function_call", "mcp__docs", "weather"), ("custom_tool_call", "mcp__docs", "patch"),
    ]  # fmt: skip


def test_what_the_api_has_no_word_for_is_not_sent() -> None:
    for request in (Request([], stop=("x",)), Request([], seed=1), Request([{"role": "function", "content": "x"}])):
        with pytest.raises(UsageError, match="Responses API has no"):
            write_request(request, "m")


def test_stored_items_have_ids_and_parts() -> None:
    items = stored_items(
        [{"role": "user", "content": "x"}, {"type": "function_call", "call_id": "a", "id": "fc_9"}], "7"
    )
    assert items[0] == {
        "id": "msg_in_7_0", "type": "message", "status": "completed", "role": "user",
        "content": [{"type": "input_text", "text": "x"}],
    }  # fmt: skip
    assert items[1]["id"] == "fc_9"
    assert stored_items(items, "8") == items


# ------------------------------------------------------------------ replies


@st.composite
def replies(draw: st.DrawFn) -> list[Event]:
    """A reply's events as a model gives them, a piece at a time."""
    events: list[Event] = []
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.sampled_from([TextDelta, ThoughtDelta]))
        events += [kind(piece) for piece in draw(st.lists(filled, min_size=1, max_size=3))]
    calls = draw(st.integers(0, 3))
    for number in range(calls):
        value = json.dumps({draw(words): draw(words)}, ensure_ascii=draw(st.booleans()))
        cut = draw(st.integers(1, len(value) - 1))
        pieces = [ArgumentsDelta(value[:cut]), ArgumentsDelta(value[cut:])]
        events += [CallStart(draw(names), f"call_{number}"), *pieces, CallEnd()]
    usage = Usage(*draw(st.tuples(*[st.integers(0, 9)] * 4)))
    finish = draw(st.sampled_from(["length", "content_filter", "tool_calls" if calls else "stop"]))
    return [*events, Finished(finish, usage)]


@property_test(100, replies(), st.integers(1, 40), st.booleans())
def test_a_reply_there_and_back_is_the_same_at_every_cut(events: list[Event], size: int, summary: bool) -> None:
    data = stream(events, reasoning={"summary": "auto"} if summary else None)
    assert merged(read(data, size)) == merged(events)
    rows = told(data)
    assert rows[-1]["type"] in ("response.completed", "response.incomplete")


@property_test(100, replies())
def test_a_body_there_and_back_is_the_same(events: list[Event]) -> None:
    reply = collect(events)
    written = write_reply([reply], read_request(body()), STAMP)
    Response.model_validate(written, strict=True)
    back = collect(read(json.dumps(written).encode(), 7))
    assert (back.text, back.thought, back.finish, back.usage) == (reply.text, reply.thought, reply.finish, reply.usage)
    assert [(c.id, c.name, c.arguments) for c in back.calls] == [(c.id, c.name, c.arguments) for c in reply.calls]


def test_every_item_has_its_life_in_order() -> None:
    events = [
        ThoughtDelta("hm"),
        TextDelta("Hel"),
        TextDelta("lo"),
        *call("weather", "a", '{"city": "X"}'),
        Finished("tool_calls"),
    ]
    rows = told(stream(events, tools=[WEATHER]))
    assert [row["type"].removeprefix("response.") for row in rows] == [
        "created", "in_progress",
        "output_item.added", "content_part.added", "reasoning_text.delta", "reasoning_text.done", "content_part.done",
        "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.delta", "output_text.done",
        "content_part.done", "output_item.done",
        "output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    done = [row["item"] for row in rows if row["type"] == "response.output_item.done"]
    added = [row["item"] for row in rows if row["type"] == "response.output_item.added"]
    assert rows[-1]["response"]["output"] == done
    assert [item["id"] for item in added] == [item["id"] for item in done]
    assert {row["item_id"] for row in rows if "item_id" in row} == {item["id"] for item in done}
    assert len({item["id"] for item in done}) == 3


def test_a_thought_is_told_as_a_summary_where_one_is_asked_for() -> None:
    rows = told(stream([ThoughtDelta("hm"), Finished()], reasoning={"effort": "low", "summary": "auto"}))
    item = next(row["item"] for row in rows if row["type"] == "response.output_item.done")
    assert item["summary"] == [{"type": "summary_text", "text": "hm"}]
    assert "response.reasoning_summary_text.delta" in [row["type"] for row in rows]


def test_a_custom_tool_is_called_with_its_text() -> None:
    rows = told(stream([*call("patch", "a", '{"input": "x\\ny"}'), Finished("tool_calls")], tools=[PATCH]))
    item = rows[-1]["response"]["output"][0]
    assert (item["type"], item["call_id"], item["input"]) == ("custom_tool_call", "a", "x\ny")
    assert [row["delta"] for row in rows if row["type"] == "response.custom_tool_call_input.delta"] == ["x\ny"]


CLIENT_CALLS: list[Any] = [
    ("local_shell", {}, {"command": ["ls", "-l"], "timeout_ms": 9}, "local_shell_call",
     {"action": {"type": "exec", "command": ["ls", "-l"], "env": {}, "timeout_ms": 9}}, "a.txt", "a.txt"),
    ("shell", {"environment": {"type": "local"}}, {"commands": ["ls", "false"]}, "shell_call",
     {"action": {"commands": ["ls", "false"]}},
     [{"stdout": "a.txt\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
      {"stdout": "", "stderr": "no", "outcome": {"type": "timeout"}}], "a.txt\nExit code: 0\nno\nIt took too long."),
    ("apply_patch", {}, {"type": "create_file", "path": "a", "diff": "+x"}, "apply_patch_call",
     {"operation": {"type": "create_file", "path": "a", "diff": "+x"}}, "Exists.", "failed\nExists."),
    ("computer", {}, {"actions": [{"type": "click", "button": "left", "x": 1, "y": 2}]}, "computer_call",
     {"actions": [{"type": "click", "button": "left", "x": 1, "y": 2}], "pending_safety_checks": []},
     {"type": "computer_screenshot", "image_url": "data:image/png;base64,AA"},
     [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}}]),
    ("computer_use_preview", {"display_width": 800, "display_height": 600, "environment": "linux"},
     {"action": {"type": "wait"}}, "computer_call", {"action": {"type": "wait"}, "pending_safety_checks": []},
     {"type": "computer_screenshot", "image_url": "https://e.org/a.png"},
     [{"type": "image_url", "image_url": {"url": "https://e.org/a.png"}}]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "more", "arguments", "item", "fields", "output", "said"), CLIENT_CALLS)
def test_a_tool_that_the_client_runs_has_items_of_its_own(
    kind: str, more: Any, arguments: Any, item: str, fields: Any, output: Any, said: Any
) -> None:
    tool = {"type": kind, **more}
    asked = read_request(body(tools=[tool], tool_choice={"type": kind} if "computer" not in kind else "required"))
    [offered] = asked.request.tools or ()
    assert not asked.ignored
    check_arguments(offered, arguments)
    events = [*call(offered.name, "c1", json.dumps(arguments)), Finished("tool_calls")]
    rows = told(stream(events, tools=[tool]))
    [whole] = write_reply([collect(events)], asked, STAMP)["output"]
    assert rows[-1]["response"]["output"] == [whole]
    Response.model_validate(rows[-1]["response"], strict=True)
    assert {name: whole.get(name) for name in (*fields, "type", "call_id", "status")} == {
        **fields, "type": item, "call_id": "c1", "status": "completed",
    }  # fmt: skip
    answer = {"type": f"{item}_output", "call_id": "c1", "output": output, "status": "failed"}
    messages = read_request(body(input=[{"role": "user", "content": "Go"}, whole, answer])).request.messages
    assert json.loads(messages[1]["tool_calls"][0]["function"]["arguments"]) == arguments
    assert messages[1]["tool_calls"][0]["function"]["name"] == offered.name
    assert messages[2]["content"] == said


def test_what_a_client_ran_is_found_by_the_id_of_its_item_too() -> None:
    ran = {"type": "local_shell_call", "id": "lsh_1", "call_id": "c1", "action": {"type": "exec", "command": ["ls"]}}
    answers = [
        {"type": "local_shell_call_output", "id": "lsh_1", "output": "x"},
        {"type": "function_call_output", "call_id": "c1", "output": "y"},
    ]
    rows = read_request(body(input=[ran, *answers])).request.messages
    assert [(row["tool_call_id"], row["content"]) for row in rows[1:]] == [("c1", "x"), ("c1", "y")]


def test_what_a_provider_ran_is_left_out_and_named() -> None:
    tools = [{"type": "web_search"}, {"type": "shell", "environment": {"type": "container_auto"}}]
    items = [{"role": "user", "content": "Hi"}, {"type": "web_search_call", "id": "ws_1", "status": "completed"}]
    asked = read_request(body(tools=tools, input=items))
    assert (len(asked.request.messages), asked.request.tools) == (1, ())
    assert asked.ignored == ("input.1.web_search_call", "tools.0.web_search", "tools.1.shell")


def test_a_reply_cut_by_its_length_is_incomplete() -> None:
    rows = told(stream([TextDelta("Hel"), Finished("length", Usage(3, 2, 1, 1))]))
    response = rows[-1]["response"]
    assert (rows[-1]["type"], response["status"]) == ("response.incomplete", "incomplete")
    assert response["incomplete_details"] == {"reason": "max_output_tokens"}
    assert response["output"][0]["status"] == "incomplete"
    assert response["usage"] == {
        "input_tokens": 3, "input_tokens_details": {"cached_tokens": 1, "cache_write_tokens": 0},
        "output_tokens": 2, "output_tokens_details": {"reasoning_tokens": 1}, "total_tokens": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("status", "code"), [(502, "server_error"), (429, "rate_limit_exceeded"), (400, "invalid_prompt")]
)
def test_a_reply_that_breaks_off_has_failed(status: int, code: str) -> None:
    writer = ReplyWriter(read_request(body()), STAMP)
    data = writer.begin() + writer.feed(TextDelta("Hel")) + writer.error(Refused("it broke off", status=status))
    rows = told(data)
    assert [row["type"] for row in rows[-2:]] == ["error", "response.failed"]
    failed = rows[-1]["response"]
    assert (failed["id"], failed["status"], failed["error"]["code"]) == ("resp_0123", "failed", code)
    assert failed["output"][0]["status"] == "incomplete"
    assert b"response.completed" not in data
    assert b"[DONE]" not in data
    assert rows[-2]["error"] == write_error(Refused("it broke off", status=status))["error"]
    with pytest.raises(ModelError, match="it broke off"):
        read(data)


def test_likelihoods_are_told_with_the_text() -> None:
    token = {"token": "Hi", "logprob": -0.5, "bytes": None, "top_logprobs": [{"token": "Ho", "logprob": -1.0}]}
    events = [Logprobs([token]), TextDelta("Hi"), Finished()]
    rows = told(stream(events, include=["message.output_text.logprobs"], top_logprobs=1))
    [delta] = [row for row in rows if row["type"] == "response.output_text.delta"]
    assert (delta["logprobs"][0]["logprob"], delta["logprobs"][0]["bytes"]) == (-0.5, [72, 105])
    assert rows[-1]["response"]["output"][0]["content"][0]["logprobs"] == delta["logprobs"]
    assert isinstance(read(stream(events))[0], Logprobs)


def test_a_body_holds_what_the_request_said_and_what_was_repaired() -> None:
    asked = read_request(body(instructions="Be brief.", metadata={"a": "b"}, tools=[WEATHER], max_output_tokens=9))
    reply = collect([Noted(Note("re-asked", "x")), TextDelta("Hi"), Finished("stop", Usage(1, 1))])
    written = write_reply([reply], asked, STAMP)
    Response.model_validate(written, strict=True)
    assert (written["instructions"], written["metadata"], written["max_output_tokens"]) == ("Be brief.", {"a": "b"}, 9)
    assert written["toolspeak"]["notes"] == [{"rule": "re-asked", "detail": "x"}]
    assert written["store"] is False


# ------------------------------------------------------------------ what servers really send


def sse(*payloads: dict[str, Any]) -> bytes:
    return "".join(f"event: {p['type']}\ndata: {json.dumps(p)}\n\n" for p in payloads).encode()


MESSAGE = {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Hi"}]}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "a", "name": "weather", "arguments": "{}"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}]}
END = {"type": "response.completed", "response": {"status": "completed", "output": []}}


def end(*output: dict[str, Any]) -> dict[str, Any]:
    return {"type": "response.completed", "response": {"status": "completed", "output": list(output)}}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(sse(end(THOUGHT, MESSAGE, CALL)),
                     [ThoughtDelta("hm"), TextDelta("Hi"), *call("weather", "a", "{}"), Finished("tool_calls")],
                     id="only the end"),
        pytest.param(sse({"type": "response.output_item.done", "output_index": 0, "item": CALL}, end(CALL)),
                     [*call("weather", "a", "{}"), Finished("tool_calls")], id="items without deltas"),
        pytest.param(sse({"type": "response.output_text.delta", "item_id": "msg_1", "delta": "Hi"}, end(MESSAGE)),
                     [TextDelta("Hi"), Finished("stop")], id="no output_index, no item"),
        pytest.param(
            sse({"type": "response.output_item.added", "output_index": 1, "item": CALL | {"arguments": ""}},
                {"type": "response.function_call_arguments.delta", "output_index": 1, "item_id": "fc_1", "delta": "{}"},
                {"type": "response.output_item.done", "output_index": 1, "item": CALL}, end(MESSAGE, CALL)),
            [TextDelta("Hi"), *call("weather", "a", "{}"), Finished("tool_calls")], id="a gap is filled by the end"),
        pytest.param(
            sse({"type": "response.refusal.delta", "output_index": 0, "delta": "No."}, END),
            [TextDelta("No."), Finished("stop")], id="a refusal is a text"),
        pytest.param(
            sse({"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 0, "delta": "a"},
                {"type": "response.reasoning_summary_part.added", "output_index": 0, "summary_index": 1},
                {"type": "response.reasoning_summary_text.delta", "output_index": 0, "summary_index": 1, "delta": "b"},
                {"type": "response.reasoning_text.delta", "output_index": 0, "delta": "ab"}, END),
            [ThoughtDelta("a\n\nb"), Finished("stop")], id="a summary in parts, the thought beside it told once"),
        pytest.param(
            sse({"type": "response.output_item.done", "output_index": 0,
                 "item": {"type": "custom_tool_call", "call_id": "c", "name": "patch", "input": "x"}}, END),
            [*call("patch", "c", '{"input": "x"}'), Finished("tool_calls")], id="a custom call"),
    ],
)  # fmt: skip
def test_events_from_what_servers_send(data: bytes, expected: list[Event]) -> None:
    for size in (None, 1, 5):
        events = merged(read(data, size))
        assert sorted(map(repr, events)) == sorted(map(repr, expected))


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (sse({"type": "response.output_text.delta", "output_index": 0, "delta": "Hi"}), StreamCut, "no response.comp"),
        (b"", StreamCut, "in the middle"),
        (
            sse(
                {
                    "type": "response.failed",
                    "response": {"status": "failed", "error": {"code": "rate_limit_exceeded", "message": "slow down"}},
                }
            ),
            RateLimited,
            "slow down",
        ),
        (sse({"type": "response.cancelled", "response": {"status": "cancelled"}}), ServerFailed, "was cancelled"),
        (sse({"type": "error", "code": "server_error", "message": "oh no", "param": None}), ServerFailed, "oh no"),
        (b'{"hello": 1}', ServerFailed, "expected a response"),
        (b"<html><title>Bad gateway</title>", ServerFailed, "Bad gateway"),
    ],
)
def test_what_is_no_reply_is_an_error(data: bytes, kind: type[ModelError], words: str) -> None:
    with pytest.raises(kind, match=words):
        read(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=5,
)
rows = st.fixed_dictionaries(
    {"type": st.sampled_from([*EVENTS, "response.done", "x"])},
    optional={
        "output_index": json_values | st.integers(0, 2),
        "item_id": json_values,
        "delta": json_values,
        "item": st.sampled_from([MESSAGE, CALL, THOUGHT]) | json_values,
        "response": st.fixed_dictionaries({}, optional={"output": json_values, "status": words, "usage": json_values}),
        "logprobs": json_values,
    },
)


@property_test(100, st.lists(rows, max_size=6), st.integers(1, 9))
def test_whatever_comes_is_read_or_refused(payloads: list[dict[str, Any]], size: int) -> None:
    data = sse(*payloads)

    def outcome(step: int | None) -> Any:
        try:
            return read(data, step)
        except ModelError as error:
            return repr(error)

    assert outcome(size) == outcome(None)


items = st.fixed_dictionaries(
    {"type": st.sampled_from(["message", "reasoning", "function_call", "function_call_output", "custom_tool_call"])},
    optional={
        "role": st.sampled_from(["user", "assistant"]) | json_values,
        "content": words | json_values | st.lists(st.fixed_dictionaries({"type": st.just("input_image")})),
        **dict.fromkeys(["call_id", "name", "arguments", "input", "output"], words | json_values),
    },
)
fields = st.dictionaries(st.sampled_from([*BODY["properties"], "x"]), json_values, max_size=3)


@property_test(100, fields, words | st.lists(items, min_size=1, max_size=4))
def test_whatever_is_asked_is_read_or_refused(fields: dict[str, Any], given: Any) -> None:
    with suppress(Refused, UsageError):
        asked = read_request(body(**{"input": given, **fields, "model": "m"}))
        told(ReplyWriter(asked, STAMP).begin())


@pytest.mark.parametrize(
    "sealed", ["toolspeak:", "toolspeak:!!", "toolspeak:bnVsbA==", "toolspeak:eyJpdGVtIjogMX0=", "toolspeak:W1s="]
)
def test_what_was_sealed_elsewhere_says_nothing(sealed: str) -> None:
    item = {"type": "reasoning", "summary": [], "encrypted_content": sealed}
    asked = read_request(body(input=[{"role": "user", "content": "x"}, item]))
    assert asked.ignored == ("input.encrypted_content",)
    assert len(asked.request.messages) == 1


def test_the_phase_of_what_the_assistant_said_goes_on_to_an_api_that_has_one() -> None:
    """Agents send it with each of their turns; an API without phases is not sent any."""
    said = {
        "type": "message",
        "role": "assistant",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "I look."}],
    }
    call = {"type": "function_call", "call_id": "a", "name": "weather", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "a", "output": "rain"}
    asked = read_request(body(input=[{"role": "user", "content": "x"}, said, call, output], tools=[WEATHER]))
    assert asked.ignored == ()
    sent = write_request(asked.request, "m")["input"]
    assert [(item.get("type"), item.get("phase")) for item in sent] == [
        ("message", None), ("message", "commentary"), ("function_call", None), ("function_call_output", None),
    ]  # fmt: skip
    chat = openai_chat.write_request(asked.request, "m")["messages"]
    assert [sorted(row) for row in chat if row["role"] == "assistant"] == [["content", "role", "tool_calls"]]


def test_what_newer_clients_and_servers_have_left_in_a_conversation_is_left_out_and_named() -> None:
    """The last item is what the reply is asked for, and must be known; see the refusals."""
    items: list[Any] = [
        {"role": "user", "content": "Go."},
        {"type": "teleport_call", "id": "t", "call_id": "c", "name": "beam", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "there"},
        {"type": "mood", "value": 3, "call_id": None},
        {"type": "agent_message", "author": "/lead/scout", "recipient": "/lead", "content": [
            {"type": "input_text", "text": "I found it."}, {"type": "encrypted_content", "encrypted_content": "x"}]},
    ]  # fmt: skip
    asked = read_request(body(input=items, tools=[WEATHER, {"type": "oracle", "vendor": 1}], soon=True))
    assert [message["content"] for message in asked.request.messages] == [
        "Go.", "Message from /lead/scout to /lead:\nI found it.",
    ]  # fmt: skip
    assert asked.ignored == (
        "input.1.teleport_call", "input.2.function_call_output", "input.3.mood", "input.4.content.encrypted_content", "soon",
        "tools.1.oracle",
    )  # fmt: skip
    assert asked.hosted == (("oracle", "tools.1.oracle"),)
    chosen = read_request(body(tools=[WEATHER, {"type": "oracle"}], tool_choice={"type": "oracle"}))
    assert chosen.demanded == "oracle"


@pytest.mark.parametrize("kind", ["configuration_update", "context_compaction", "compaction", "mcp_approval_request"])
def test_an_item_for_its_provider_alone_is_left_out_and_named(kind: str) -> None:
    asked = read_request(
        body(input=[{"role": "user", "content": "x"}, {"type": kind, "id": "i", "reasoning": {"effort": "low"}}])
    )
    assert asked.ignored == (f"input.1.{kind}",)


def test_an_item_that_a_thread_ends_during_a_failure_is_listed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    writer = ReplyWriter(read_request({"model": "m", "input": "Hi"}), STAMP)
    writer.begin()
    writer.feed(TextDelta("a"))
    begun, goes_on = threading.Event(), threading.Event()
    done, failure = response_events.message_done, response_events.write_error
    thread = threading.Thread(target=writer.close)

    def waiting(*args: Any) -> Any:
        begun.set()
        assert goes_on.wait(20)
        return done(*args)

    def meanwhile(error: Refused) -> Any:
        goes_on.set()
        thread.join(20)
        return failure(error)

    monkeypatch.setattr(response_events, "message_done", waiting)
    monkeypatch.setattr(response_events, "write_error", meanwhile)
    thread.start()
    assert begun.wait(20)
    last = json.loads(writer.error(Refused("too late", status=504)).decode().rpartition("data: ")[2])
    assert [item["type"] for item in last["response"]["output"]] == ["message"]
