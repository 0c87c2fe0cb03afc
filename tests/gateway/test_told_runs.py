"""Calls that the gateway ran are told in the forms of the APIs, and read where a client sends them back: by real MCP servers
and both SDKs, whose types read every item and block."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, get_args

import anthropic
import openai
import pytest
from openai.types.responses import ResponseOutputItem, ResponseStreamEvent
from pydantic import TypeAdapter

from preloaded import mcp_server
from toolspeak.gateway.config.settings import McpServer
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker

Serve = Callable[..., Any]
TOOLS = '''
def look(query: str) -> str:
    """Looks into the archive."""
    if query == "nothing":
        raise ValueError("the archive is closed")
    return f"found {query}"


def forget(query: str) -> str:
    """Removes from the archive."""
    return f"removed {query}"
'''
FAILS = '{"error":'


def wants(tool: str, query: str) -> str:
    return f"<tool_call>\n{json.dumps({'name': tool, 'arguments': {'query': query}})}\n</tool_call>"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    tools = tmp_path_factory.mktemp("told") / "tools.py"
    tools.write_text(TOOLS, "utf-8")
    with mcp_server(tools) as started:
        yield started


Say = Callable[[openai.AsyncOpenAI, anthropic.AsyncAnthropic], Awaitable[Any]]


def talk(serve_models: Serve, address: str, say: Say, *replies: str, **settings: Any) -> tuple[Any, list[list[Any]]]:
    """What was said, and the messages that the model was sent with each request."""
    script = Scripted(replies)
    types = ("web_search", "web_fetch", "code_execution", "file_search", "code_interpreter", "image_generation")
    hosted = dict.fromkeys(types, f"mcp:{address}#look")
    given: dict[str, Any] = {"hosted": hosted, "mcp": {"archive": McpServer(address, prefix="archive_")}, **settings}

    async def go() -> Any:
        async with (
            serve_models(m=Speaker(script, "hermes"), settings=given) as running,
            openai.AsyncOpenAI(base_url=running.url + "/v1", api_key="x", max_retries=0) as one,
            anthropic.AsyncAnthropic(base_url=running.url, api_key="x", max_retries=0) as other,
        ):
            return await say(one, other)

    said = asyncio.run(go())
    return said, [[*request.messages] for request in script.requests]


CASES = [(stream, query) for stream in (False, True) for query in ("rain", "nothing")]
STEPS = {
    "web_search": ["in_progress", "searching"], "file_search": ["in_progress", "searching"],
    "code_interpreter": ["in_progress", "interpreting"], "image_generation": ["in_progress"],
    "archive_look": ["in_progress"],
}  # fmt: skip
LAST = {("mcp_call", "nothing"): ["failed"]}


def in_threes(requests: list[list[Any]]) -> list[list[list[Any]]]:
    """The requests of each conversation: two for its first turn and one for the next."""
    return [requests[at : at + 3] for at in range(0, len(requests), 3)]


def reads_on(requests: list[list[Any]], query: str) -> None:
    """What the model has read in a turn stands in the next one as it was: its beginning is the same."""
    _, before, after = requests
    assert after[: len(before)] == before
    assert len(after) > len(before)
    assert ("found rain" if query == "rain" else "the archive is closed") in json.dumps(after)


@pytest.mark.parametrize(
    ("tool", "kind"),
    [
        ("web_search", "web_search_call"), ("file_search", "file_search_call"),
        ("code_interpreter", "code_interpreter_call"), ("image_generation", "mcp_call"), ("archive_look", "mcp_call"),
    ],
)  # fmt: skip
def test_responses_have_an_item_for_each_run(serve_models: Serve, address: str, tool: str, kind: str) -> None:
    """Of the type of the provider's own tool where there is one, else of an MCP server's; the SDK's types hold for each item
    and event, and the next turn reads it."""
    offered: list[Any] = [] if tool == "archive_look" else [{"type": tool, "vector_store_ids": ["v"], "container": "c"}]
    asked: dict[str, Any] = {
        "model": "m",
        "input": [{"role": "user", "content": "Rain?"}],
        "tools": offered,
        "store": False,
    }

    async def say(one: openai.AsyncOpenAI, _: Any) -> list[tuple[Any, list[Any]]]:
        seen: list[tuple[Any, list[Any]]] = []
        for stream, _ in CASES:
            events: list[Any] = []
            if stream:
                events = [event async for event in await one.responses.create(**asked, stream=True)]
            reply: Any = events[-1].response if stream else await one.responses.create(**asked)
            items = [item.to_dict() for item in reply.output]
            again: Any = [*asked["input"], *items, {"role": "user", "content": "Sure?"}]
            last = await one.responses.with_raw_response.create(**{**asked, "input": again})
            assert "x-toolspeak-ignored" not in last.headers
            seen.append((reply, events))
        return seen

    replies = [text for _, query in CASES for text in ("Let me look. " + wants(tool, query), "It may.", "Sure.")]
    seen, requests = talk(serve_models, address, say, *replies, offered=("archive",))
    for (stream, query), (reply, events), asked_with in zip(CASES, seen, in_threes(requests), strict=True):
        assert [item.type for item in reply.output] == ["message", kind, "message"]
        item = reply.output[1]
        TypeAdapter(ResponseOutputItem).validate_python(item.to_dict(), strict=True)
        assert item.status == ("completed" if query == "rain" else "failed")
        if kind == "mcp_call":
            server = "archive" if tool == "archive_look" else tool
            assert (item.name, item.server_label, json.loads(item.arguments)) == (tool, server, {"query": query})
            assert (item.output, item.error is None) == (("found rain", True) if query == "rain" else (None, False))
        reads_on(asked_with, query)
        if stream:
            are_in_order(events, reply, kind, STEPS[tool] + LAST.get((kind, query), ["completed"] * (query == "rain")))


def are_in_order(events: list[Any], reply: Any, kind: str, words: list[str]) -> None:
    """The events of a stream are of the SDK's types, those of a call say these words, and its items are the reply's."""
    for event in events:
        TypeAdapter(ResponseStreamEvent).validate_python(event.to_dict())
    assert [event.type.split(".")[-1] for event in events if f".{kind}." in event.type] == words
    assert [event.sequence_number for event in events] == list(range(len(events)))
    ends = [event.item.to_dict() for event in events if event.type == "response.output_item.done"]
    assert ends == [one.to_dict() for one in reply.output]


@pytest.mark.parametrize(
    ("dated", "tool", "kinds"),
    [
        ("web_fetch_20250910", "web_fetch", ("server_tool_use", "web_fetch_tool_result")),
        ("code_execution_20250825", "code_execution", ("server_tool_use", "code_execution_tool_result")),
        ("", "archive_look", ("mcp_tool_use", "mcp_tool_result")),
    ],
)
def test_messages_have_blocks_for_each_run(
    serve_models: Serve, address: str, dated: str, tool: str, kinds: Any
) -> None:
    """In blocks of the tool's own, else of an MCP server's where the client names one; the next turn reads them."""
    servers: Any = [{"type": "url", "url": "https://elsewhere.example/mcp", "name": "archive"}]
    offered: Any = [{"type": dated, "name": tool}] if dated else [{"type": "mcp_toolset", "mcp_server_name": "archive"}]
    asked: dict[str, Any] = {
        "model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Rain?"}], "tools": offered,
        **({} if dated else {"mcp_servers": servers}),
    }  # fmt: skip

    async def say(_: Any, other: anthropic.AsyncAnthropic) -> list[Any]:
        replies: list[Any] = []
        for stream, _ in CASES:
            if stream:
                async with other.beta.messages.stream(**asked) as events:
                    replies.append(await events.get_final_message())
            else:
                replies.append(await other.beta.messages.create(**asked))
            said = {"role": "assistant", "content": [block.to_dict() for block in replies[-1].content]}
            again = {**asked, "messages": [*asked["messages"], said, {"role": "user", "content": "Sure?"}]}
            last = await other.beta.messages.with_raw_response.create(**again)
            assert "x-toolspeak-ignored" not in last.headers
        return replies

    texts = [text for _, query in CASES for text in ("Let me look. " + wants(tool, query), "It may.", "Sure.")]
    replies, requests = talk(serve_models, address, say, *texts, offered=("archive",))
    for (_, query), reply, asked_with in zip(CASES, replies, in_threes(requests), strict=True):
        assert [block.type for block in reply.content] == ["text", *kinds, "text"]
        _, call, result, _ = reply.content
        assert (call.name, call.input, result.tool_use_id) == (tool, {"query": query}, call.id)
        for block in (
            call,
            result,
        ):  # the SDK makes values without a look at them: its own types are held against these
            TypeAdapter(block.__class__).validate_python(block.to_dict())
            assert block.type in get_args(block.__class__.model_fields["type"].annotation)
        if not dated:
            assert (call.server_name, result.is_error) == ("archive", query == "nothing")
        reads_on(asked_with, query)


def test_a_client_of_messages_that_names_no_server_gets_text_alone(serve_models: Serve, address: str) -> None:
    """Until a turn that it sends back has a call of such a server."""
    rows: list[Any] = [{"role": "user", "content": "Rain?"}]

    async def say(_: Any, other: anthropic.AsyncAnthropic) -> list[list[str]]:
        plain = await other.messages.create(model="m", max_tokens=99, messages=rows)
        blocks: list[Any] = [
            {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "archive_look", "server_name": "archive", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": True, "content": "no query"},
        ]
        known: list[Any] = [*rows, {"role": "assistant", "content": blocks}, {"role": "user", "content": "Again."}]
        again = await other.beta.messages.create(model="m", max_tokens=99, messages=known)
        return [[block.type for block in reply.content] for reply in (plain, again)]

    script = [wants("archive_look", "rain"), "It may."] * 2
    kinds, requests = talk(serve_models, address, say, *script, offered=("archive",))
    assert kinds == [["text"], ["mcp_tool_use", "mcp_tool_result", "text"]]
    assert "no query" in next(str(row["content"]) for row in requests[-1] if FAILS in str(row["content"]))


SERVER: dict[str, Any] = {"type": "mcp", "server_label": "archive", "server_url": "https://elsewhere.example"}


@pytest.mark.parametrize(
    ("fields", "offered"),
    [
        ({"require_approval": "never"}, ["archive_look", "archive_forget"]),
        ({"require_approval": "never", "allowed_tools": ["look"]}, ["archive_look"]),
        ({"require_approval": "never", "allowed_tools": {"tool_names": ["archive_forget"]}}, ["archive_forget"]),
        ({"require_approval": {"never": {"tool_names": ["look"]}}}, ["archive_look"]),
        ({"require_approval": "always"}, []), ({}, []), ({"require_approval": "never", "server_label": "other"}, None),
    ],
)  # fmt: skip
def test_a_server_that_a_client_names_is_the_operators(
    serve_models: Serve, address: str, fields: dict[str, Any], offered: list[str] | None
) -> None:
    """Its tools are listed once, as far as the client wants them; those whose calls it wants to approve of are left out. One
    that nobody has here is named in a header."""

    async def say(one: openai.AsyncOpenAI, _: Any) -> tuple[Any, Any]:
        asked: dict[str, Any] = {"model": "m", "store": False, "tools": [SERVER | fields]}
        rows: list[Any] = [{"role": "user", "content": "Rain?"}]
        first = await one.responses.with_raw_response.create(**asked, input=rows)
        items: list[Any] = [item.to_dict() for item in first.parse().output]
        async with one.responses.stream(**asked, input=[*rows, *items, *rows]) as stream:
            return first, await stream.get_final_response()

    (first, last), requests = talk(serve_models, address, say, "No.", "No.", offered=("archive",))
    output = first.parse().output
    listed = [[tool.name for tool in item.tools] for item in output if item.type == "mcp_list_tools"]
    assert listed == ([offered] if offered else [])
    assert [item.type for item in last.output] == ["message"]
    assert first.headers.get("x-toolspeak-ignored", "") == ("" if offered else "tools.0.mcp")
    shown = [
        name for name in ("archive_look", "archive_forget") if f'"{name}' in json.dumps(requests[0]).replace("\\", "")
    ]
    assert shown == (["archive_look", "archive_forget"] if offered is None else offered)
    for item in output:
        TypeAdapter(ResponseOutputItem).validate_python(item.to_dict(), strict=True)


def test_a_server_is_known_by_its_address(serve_models: Serve, address: str) -> None:
    """By whatever name the client gives it: its listing and its calls have that. The stream tells the listing first."""
    tool = SERVER | {"server_label": "mine", "server_url": f"{address}/", "require_approval": "never"}

    async def say(one: openai.AsyncOpenAI, _: Any) -> list[Any]:
        asked: Any = {"model": "m", "store": False, "tools": [tool], "input": "Rain?"}
        return [event async for event in await one.responses.create(**asked, stream=True)]

    events, _ = talk(serve_models, address, say, wants("archive_look", "rain"), "It may.", offered=("archive",))
    output = events[-1].response.output
    assert [item.type for item in output] == ["mcp_list_tools", "mcp_call", "message"]
    assert [item.server_label for item in output[:2]] == ["mine", "mine"]
    listing = ["output_item.added", "mcp_list_tools.in_progress", "mcp_list_tools.completed", "output_item.done"]
    assert [event.type.removeprefix("response.") for event in events[2:6]] == listing
    indexes = [event.output_index for event in events if hasattr(event, "output_index")]
    assert indexes == sorted(indexes)


def test_toolsets_say_which_tools_of_a_server_are_wanted(serve_models: Serve, address: str) -> None:
    """In both forms that the API has had for that; a listing that another server made is no error."""
    server = {"type": "url", "url": address, "name": "archive"}
    toolset: dict[str, Any] = {"type": "mcp_toolset", "mcp_server_name": "archive"}
    off: dict[str, Any] = {"enabled": False}
    cases: list[tuple[Any, list[Any], list[str]]] = [
        (server, [toolset | {"configs": {"forget": off}}], ["archive_look"]),
        (server, [toolset | {"default_config": off, "configs": {"forget": {"enabled": True}}}], ["archive_forget"]),
        (server | {"tool_configuration": {"allowed_tools": ["look"]}}, [], ["archive_look"]),
        (server | {"tool_configuration": off}, [], []),
    ]
    listing: Any = {"type": "mcp_tool_listing", "mcp_server_name": "x", "tools": []}
    rows: list[Any] = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [listing]}]

    async def say(_: Any, other: anthropic.AsyncAnthropic) -> None:
        for one, tools, _ in cases:
            asked: Any = {"messages": [*rows, rows[0]], "mcp_servers": [one], "tools": tools}
            await other.beta.messages.create(model="m", max_tokens=9, **asked)

    _, requests = talk(serve_models, address, say, *["No."] * len(cases), offered=("archive",))
    for (_, _, wanted), messages in zip(cases, requests, strict=True):
        told = json.dumps(messages).replace("\\", "")
        assert [name for name in ("archive_look", "archive_forget") if f'"{name}"' in told] == wanted


def as_an_agent_keeps_it(item: Any) -> list[dict[str, Any]]:
    """An item as a coding agent sends it back that knows its own fields alone, and no MCP servers of its provider's."""
    fields = {
        "message": ("id", "type", "role", "content", "status"), "web_search_call": ("id", "type", "status", "action"),
        "reasoning": ("id", "type", "summary", "content", "encrypted_content"),
    }  # fmt: skip
    row = item.to_dict()
    return [{name: row.get(name) for name in fields[row["type"]]}] if row["type"] in fields else []


@pytest.mark.parametrize("tool", ["web_search", "archive_look"])
@pytest.mark.parametrize("keeps", [lambda item: [item.to_dict()], as_an_agent_keeps_it])
def test_what_ran_is_sealed_for_clients_that_keep_sealed_reasoning(
    serve_models: Serve, address: str, tool: str, keeps: Callable[[Any], list[dict[str, Any]]]
) -> None:
    """The next turn reads it once, whether the client has kept the call's item or not; streamed and whole."""
    asked: dict[str, Any] = {
        "model": "m", "store": False, "include": ["reasoning.encrypted_content"], "tools": [{"type": "web_search"}],
        "input": [{"role": "user", "content": "Rain?"}],
    }  # fmt: skip

    async def say(one: openai.AsyncOpenAI, _: Any) -> list[Any]:
        events = [event async for event in await one.responses.create(**asked, stream=True)]
        for event in events:
            TypeAdapter(ResponseStreamEvent).validate_python(event.to_dict())
        replies: list[Any] = [events[-1].response, await one.responses.create(**asked)]
        for reply in replies:
            items = [row for item in reply.output for row in keeps(item)]
            again: Any = [*asked["input"], *items, {"role": "user", "content": "Sure?"}]
            last = await one.responses.with_raw_response.create(**{**asked, "input": again})
            assert "x-toolspeak-ignored" not in last.headers
        return replies

    first = ["Let me look. " + wants(tool, "rain"), "It may."]
    replies, requests = talk(serve_models, address, say, *first, *first, "Sure.", "Sure.", offered=("archive",))
    for reply in replies:
        assert [item.type for item in reply.output][2:] == ["reasoning", "message"]
    for before, after in ((requests[1], requests[4]), (requests[3], requests[5])):
        reads_on([[], before, after], "rain")
        assert json.dumps(after).count("found rain") == 1
