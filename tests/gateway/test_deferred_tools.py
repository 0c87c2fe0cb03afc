"""Tools that a client defers: not shown before something refers to them, found by its own search or by ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import anthropic
import openai

from replies import hermes_call
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, TextDelta
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker

Serve = Callable[..., Any]
SCHEMA = {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]}
LATE = {"read_mail": "Reads the mail of a folder.", "send_fax": "Sends a fax.", "book_room": "Books a meeting room."}
MESSAGES = [{"name": name, "description": said, "input_schema": SCHEMA, "defer_loading": True} for name, said in LATE.items()]  # fmt: skip
LOOK = {"name": "look_for", "description": "Finds tools.", "input_schema": SCHEMA}
FUNCTIONS = [
    {"type": "function", "name": name, "description": said, "parameters": SCHEMA, "defer_loading": True}
    for name, said in LATE.items()
]
QUESTION: Any = [{"role": "user", "content": "Read my mail"}]


def called(name: str, **arguments: Any) -> list[Event]:
    return [CallStart(name, f"c_{name}"), ArgumentsDelta(json.dumps(arguments)), CallEnd(), Finished("tool_calls")]


def native(*replies: Any) -> Scripted:
    return Scripted(replies, capabilities=["tools", "required"])


def names(model: Scripted) -> list[list[str]]:
    return [[tool.name for tool in request.tools or ()] for request in model.requests]


def talk(serve_models: Serve, model: Any, say: Callable[[str], Awaitable[Any]]) -> Any:
    async def go() -> Any:
        async with serve_models(m=model) as running:
            return await say(running.url)

    return asyncio.run(go())


def messages(tools: list[Any], turns: list[Any]) -> Callable[[str], Awaitable[list[Any]]]:
    """Asks by the Messages API, and gives the blocks of the reply."""

    async def say(url: str) -> list[Any]:
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
            reply = await client.messages.create(model="m", max_tokens=200, messages=turns, tools=tools)
            return [block.model_dump(exclude_none=True) for block in reply.content]

    return say


def referred(name: str) -> list[Any]:
    """A conversation in which the client's search has found a tool."""
    use = {"type": "tool_use", "id": "t1", "name": "look_for", "input": {"where": "mail"}}
    found = {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "tool_reference", "tool_name": name}]}
    return [*QUESTION, {"role": "assistant", "content": [use]}, {"role": "user", "content": [found]}]


def test_the_clients_own_search_brings_a_tool_into_view(serve_models: Serve) -> None:
    model = native([TextDelta("Let me look."), Finished()], called("read_mail", where="in"))
    assert talk(serve_models, model, messages([LOOK, *MESSAGES], QUESTION))[0]["text"] == "Let me look."
    [block] = talk(serve_models, model, messages([LOOK, *MESSAGES], referred("read_mail")))
    assert (block["type"], block["name"]) == ("tool_use", "read_mail")
    assert names(model) == [["look_for"], ["look_for", "read_mail"]]


def test_what_was_referred_to_stands_where_it_came_up(serve_models: Serve) -> None:
    """The beginning of a prompt stays as it is, and a tool that nobody referred to can be called all the same."""
    model = Speaker(Scripted([hermes_call("read_mail", where="in"), hermes_call("send_fax", where="out")]), "hermes")
    talk(serve_models, model, messages([LOOK, *MESSAGES], QUESTION))
    [block] = talk(serve_models, model, messages([LOOK, *MESSAGES], referred("read_mail")))
    assert block["name"] == "send_fax"
    first, second = (request.messages for request in model.model.requests)
    assert second[: len(first)] == first
    assert "read_mail" not in str(first)
    assert "Reads the mail of a folder." in str(second[len(first) :])


def test_the_search_of_the_api_is_ours(serve_models: Serve) -> None:
    model = native(called("search_tools", query="read the mail"), called("read_mail", where="in"))
    search = {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    [block] = talk(serve_models, model, messages([search, *MESSAGES, LOOK], QUESTION))
    assert block["name"] == "read_mail"
    assert names(model)[0] == ["look_for", "search_tools"]
    assert "read_mail" in names(model)[1]


def responses(*tools: Any, turns: Any) -> Callable[[str], Awaitable[list[Any]]]:
    async def say(url: str) -> list[Any]:
        async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x", max_retries=0) as client:
            reply = await client.responses.create(model="m", input=turns, tools=list(tools))
            return [item.model_dump(exclude_none=True) for item in reply.output]

    return say


def test_a_search_that_the_client_runs_in_responses(serve_models: Serve) -> None:
    """What it finds stands in the conversation alone, in a namespace of its own, and can be called from there on."""
    search = {"type": "tool_search", "execution": "client", "parameters": SCHEMA, "description": "Finds tools."}
    model = native(called("tool_search", where="mail"), called("mcp__post__read_mail", where="in"))
    [item] = talk(serve_models, model, responses(search, turns=QUESTION))
    assert (item["type"], item["execution"], item["arguments"]) == ("tool_search_call", "client", {"where": "mail"})
    space = {"type": "namespace", "name": "mcp__post", "description": "Post.", "tools": FUNCTIONS[:1]}
    found = {"type": "tool_search_output", "call_id": item["call_id"], "execution": "client", "tools": [space]}
    [made] = talk(serve_models, model, responses(search, turns=[*QUESTION, item, found]))
    assert (made["type"], made["namespace"], made["name"]) == ("function_call", "mcp__post", "read_mail")
    assert names(model) == [["tool_search"], ["tool_search", "mcp__post__read_mail"]]
    assert "mcp__post__read_mail" in str(model.requests[1].messages)


def test_tools_that_the_client_defers_do_not_count_as_left_out(serve_models: Serve) -> None:
    """The model sees all that the client wants to show, so neither a note nor a header says otherwise."""
    model = native([TextDelta("ok"), Finished()])

    async def say(url: str) -> Any:
        tools: Any = [LOOK, *MESSAGES]
        async with anthropic.AsyncAnthropic(base_url=url, api_key="x", max_retries=0) as client:
            raw = client.messages.with_raw_response
            return (await raw.create(model="m", max_tokens=200, messages=QUESTION, tools=tools)).headers

    headers = talk(serve_models, model, say)
    assert names(model) == [["look_for"]]
    assert (headers.get("x-toolspeak-tools"), headers.get("x-toolspeak-notes")) == (None, None)


def test_deferred_functions_in_responses_are_searched_for_here(serve_models: Serve) -> None:
    model = native(called("search_tools", query="fax"), called("send_fax", where="in"), [TextDelta("ok"), Finished()])
    [item] = talk(serve_models, model, responses({"type": "tool_search"}, *FUNCTIONS, turns=QUESTION))
    assert (item["type"], item["name"]) == ("function_call", "send_fax")
    assert names(model)[0] == ["search_tools"]
    loaded = {"type": "tool_search_output", "execution": "server", "tools": FUNCTIONS[:1]}
    added = {"type": "additional_tools", "role": "developer", "tools": [{**FUNCTIONS[1], "name": "more"}]}
    talk(serve_models, model, responses({"type": "tool_search"}, *FUNCTIONS, turns=[loaded, added, *QUESTION]))
    assert names(model)[-1] == ["read_mail", "more", "search_tools"]
