"""Calls that a server left in the text of its model's reply, read through every verb."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web

import toolspeak as ts
from toolspeak.evals.trace import recorded
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Finished, Noted, TextDelta
from toolspeak.gateway.config.settings import ModelSettings
from toolspeak.gateway.registry import build
from toolspeak.models.calls_in_text import Listener, like_a_call
from toolspeak.models.strategy import by_its_name
from toolspeak.search.router import ToolRouter
from toolspeak.wire.decode import Decoder
from toolspeak.wire.prompt.calls import write_calls

Serve = Callable[..., Any]

OBJECT = '{"name": "weather", "arguments": {"city": "Xiamen"}}'
HERMES = f"<tool_call>\n{OBJECT}\n</tool_call>"
LEFT = {
    "hermes": ("Qwen2.5-7B-Instruct", HERMES),
    "Qwen XML": (
        "Qwen3-Coder-30B",
        "<tool_call>\n<function=weather>\n<parameter=city>\nXiamen\n</parameter>\n</function>\n</tool_call>",
    ),
    "Llama JSON": ("Llama-3.1-8B-Instruct", '{"name": "weather", "parameters": {"city": "Xiamen"}}'),
    "Mistral JSON": ("Mistral-7B-Instruct-v0.3", f"[TOOL_CALLS][{OBJECT}]"),
    "LFM2": ("LFM2-1.2B", '<|tool_call_start|>[weather(city="Xiamen")]<|tool_call_end|>'),
    "functools": ("firefunction-v2", f"functools[{OBJECT}]"),
    "ReAct": ("", 'Thought: I should look it up.\nAction: weather\nAction Input: {"city": "Xiamen"}'),
    "tool_code fence": ("gemma-3-4b-it", '```tool_code\nweather(city="Xiamen")\n```'),
    "tool_code that prints": ("gemma-3-12b-it", '```tool_code\nprint(default_api.weather(city="Xiamen"))\n```'),
    "JSON fence": ("", f"```json\n{OBJECT}\n```"),
    "Python list": ("ToolACE-8B", '[weather(city="Xiamen")]'),
    "OpenAI's tool_calls": (
        "",
        '{"tool_calls": [{"type": "function", "function": {"name": "weather", "arguments": "{\\"city\\": \\"Xiamen\\"}"}}]}',
    ),
    "OpenAI's function_call in a fence": (
        "",
        '```json\n{"function_call": {"name": "weather", "arguments": "{\\"city\\": \\"Xiamen\\"}"}}\n```',
    ),
    "LangChain's action": ("", '{"action": "weather", "action_input": {"city": "Xiamen"}}'),
}
"""What a model writes, and the name of a model that is known to write so."""
CASES = [(known, text) for known, text in LEFT.values() if known] + [("mine", text) for _, text in LEFT.values()]
NAMES = [f"{kind}, known" for kind, (known, _) in LEFT.items() if known] + [f"{kind}, unknown" for kind in LEFT]
QUESTION = "What is the weather in Xiamen?"


def weather(city: str) -> str:
    """The weather in a city, now."""
    return f"rain in {city}"


WEATHER = ts.tool(weather)


def chunked(text: str, size: int = 3) -> bytes:
    """A streamed reply of a server that speaks OpenAI's API."""
    deltas = [{"content": text[i : i + size]} for i in range(0, len(text), size)]
    rows = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    rows.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    return b"".join(b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows) + b"data: [DONE]\n\n"


class Ignores:
    """A server that takes `tools` and ignores them: its model writes `text`, and after a result `It rains.`"""

    def __init__(self, text: str, size: int = 3, *, streams: bool = True) -> None:
        self.text = text
        self.size = size
        self.streams = streams
        self.asked: list[dict[str, Any]] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/chat/completions"):
            return web.json_response({"error": "no such page"}, status=404)
        body = await request.json()
        self.asked.append(body)
        text = "It rains." if body["messages"][-1]["role"] == "tool" else self.text
        if body.get("stream") and self.streams:
            return web.Response(body=chunked(text, self.size), content_type="text/event-stream")
        message = {"role": "assistant", "content": text}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})


class Always(Ignores):
    """A server whose model writes `text` after results too."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/chat/completions"):
            body = await request.json()
            if body.get("stream") and self.streams:
                return web.Response(body=chunked(self.text, self.size), content_type="text/event-stream")
            message = {"role": "assistant", "content": self.text}
            return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        return await super().__call__(request)


class Refuses(Ignores):
    """A server that refuses tools."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/chat/completions") and (await request.json()).get("tools"):
            return web.json_response({"error": {"message": "this model does not support tools"}}, status=400)
        return await super().__call__(request)


@pytest.mark.parametrize(("name", "text"), CASES, ids=NAMES)
def test_a_call_in_the_text_is_a_call(serve: Serve, name: str, text: str) -> None:
    async def main() -> None:
        ignores = Ignores(text)
        async with serve(ignores) as server:
            model = f"{server.url}/v1#{name}"
            reply = await ts.arun(QUESTION, tools=[weather], model=model)
            assert reply.text == "It rains."
            results = [message["content"] for message in reply.messages if message["role"] == "tool"]
            assert results == ["rain in Xiamen"]
            assert "call-in-text" in {note.rule for step in reply.steps for note in step.reply.notes}
            assert ignores.asked[0]["tools"]
            assert (await ts.acall(QUESTION, tools=[weather], model=model)).arguments == {"city": "Xiamen"}
            decided = await ts.adecide(QUESTION, tools=[weather], model=model)
            assert (decided.text, len(decided.calls)) == ("", 1)

    asyncio.run(main())


def test_the_dialect_whose_own_tags_these_are_reads_them_best(serve: Serve) -> None:
    """The line breaks around the value are part of Qwen3-Coder's form; other dialects that know the tags keep them."""

    async def main() -> None:
        text = "<function=weather>\n<parameter=city>\nXiamen\n</parameter>\n</function>"
        async with serve(Ignores(text)) as server:
            call = await ts.acall(QUESTION, tools=[weather], model=f"{server.url}/v1#mine")
            assert call.arguments == {"city": "Xiamen"}

    asyncio.run(main())


@pytest.mark.parametrize(("name", "text"), CASES, ids=NAMES)
def test_a_stream_shows_the_call_and_none_of_its_text(serve: Serve, name: str, text: str) -> None:
    async def main() -> None:
        async with serve(Ignores(text, size=1)) as server:
            events = [e async for e in ts.astream(QUESTION, tools=[weather], model=f"{server.url}/v1#{name}")]
            assert [event.name for event in events if isinstance(event, CallStart)] == ["weather"]
            assert json.loads("".join(e.json for e in events if isinstance(e, ArgumentsDelta))) == {"city": "Xiamen"}
            assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "It rains."

    asyncio.run(main())


@pytest.mark.parametrize("server", [Ignores, Refuses])
@pytest.mark.parametrize("name", ["Qwen2.5-7B-Instruct", "mine"])
def test_a_server_that_streams_nothing(serve: Serve, name: str, server: type[Ignores]) -> None:
    """It answers in one piece, whatever is asked."""
    refuses = server is Refuses and name == "mine"
    text = '{"tool": "weather", "tool_input": {"city": "Xiamen"}}' if refuses else HERMES

    async def main() -> None:
        async with serve(server(text, streams=False)) as running:
            model = f"{running.url}/v1#{name}"
            events = [e async for e in ts.astream(QUESTION, tools=[weather], model=model)]
            assert [event.name for event in events if isinstance(event, CallStart)][:1] == ["weather"]
            assert (await ts.acall(QUESTION, tools=[weather], model=model)).arguments == {"city": "Xiamen"}

    asyncio.run(main())


def test_the_note_names_the_dialect_and_what_to_do(serve: Serve) -> None:
    async def main() -> None:
        async with serve(Ignores(HERMES)) as server:
            reply = await ts.adecide(QUESTION, tools=[weather], model=f"{server.url}/v1#mine")
            (note,) = [note for note in reply.notes if note.rule == "call-in-text"]
            assert "read as hermes" in note.detail
            assert "dialect='hermes'" in note.detail

    asyncio.run(main())


DOORS: dict[str, Callable[[str], Any]] = {
    "a URL": lambda url: f"{url}#mine",
    "ts.model(URL)": lambda url: ts.model(f"{url}#mine"),
    "Http": lambda url: ts.Http(url, "mine"),
    "ts.model(Http)": lambda url: ts.model(ts.Http(url, "mine")),
    "a recorded Http": lambda url: recorded(ts.Http(url, "mine")),
    "an Http that is shown many tools": lambda url: ToolRouter(ts.Http(url, "mine"), strict=False),
}
"""The ways of handing a server over."""


@pytest.mark.parametrize("door", DOORS)
def test_a_server_is_asked_alike_however_it_is_handed_over(serve: Serve, door: str) -> None:
    async def main() -> None:
        ignores = Ignores(HERMES)
        async with serve(ignores) as server:
            model = DOORS[door](f"{server.url}/v1")
            reply = await ts.arun(QUESTION, tools=[weather], model=model)
            assert (reply.text, len(reply.steps)) == ("It rains.", 2)
            (note,) = [note for note in reply.steps[0].reply.notes if note.rule == "call-in-text"]
            assert "read as hermes" in note.detail
            told = ts.explain(QUESTION, tools=[weather], model=DOORS[door](f"{server.url}/v1"))
            assert told.strategy.startswith("native: its API has tools")

    asyncio.run(main())


@pytest.mark.parametrize("door", [door for door in DOORS if "URL" not in door])
def test_a_server_that_refuses_tools_is_prompted_however_it_is_handed_over(serve: Serve, door: str) -> None:
    async def main() -> None:
        async with serve(Refuses('{"tool": "weather", "tool_input": {"city": "Xiamen"}}')) as server:
            model = DOORS[door](f"{server.url}/v1")
            assert (await ts.acall(QUESTION, tools=[weather], model=model)).arguments == {"city": "Xiamen"}

    asyncio.run(main())


OTHERS = {
    "a JSON fence of gemma": ("gemma-3-4b-it", LEFT["JSON fence"][1], "llama3-json"),
    "hermes of gemma": ("gemma-3-4b-it", HERMES, "hermes"),
    "an object of Qwen": (
        "Qwen2.5-7B-Instruct",
        '{"tool": "weather", "tool_input": {"city": "Xiamen"}}',
        "generic-json",
    ),
    "after a thought": ("Qwen3-8B", f"<think>I look.</think>\n{LEFT['Python list'][1]}", "lfm2"),
}
"""A model whose name tells a dialect, and a reply that is a call in another one."""


@pytest.mark.parametrize(("name", "text", "dialect"), OTHERS.values(), ids=OTHERS)
def test_a_whole_reply_in_another_dialect_than_the_name_tells(serve: Serve, name: str, text: str, dialect: str) -> None:
    async def main() -> None:
        async with serve(Ignores(text, size=1)) as server:
            reply = await ts.adecide(QUESTION, tools=[weather], model=f"{server.url}/v1#{name}")
            assert (reply.text, [call.arguments for call in reply.calls]) == ("", [{"city": "Xiamen"}])
            assert reply.thought == ("I look." if "think" in text else "")
            (note,) = [note for note in reply.notes if note.rule == "call-in-text"]
            assert f"read as {dialect}, for it was the whole reply. Give dialect={dialect!r}" in note.detail

    asyncio.run(main())


def heard(pieces: list[str], name: str = "", finish: Any = "stop", **more: Any) -> list[list[ts.Event]]:
    """What comes of each piece of a text, and of the end."""
    request = ts.Request([{"role": "user", "content": QUESTION}], (WEATHER,), **more)
    listener = Listener(request, by_its_name(name))
    return [listener.hear(one) for one in (*map(TextDelta, pieces), Finished(finish))]


def test_a_thought_and_words_of_a_known_model_are_not_held_back() -> None:
    thought, words, last = heard(["<think>I am", " thinking</think>Rain", " it is."], "Qwen3-8B")[:3]
    assert [type(event).__name__ for event in thought] == ["ThoughtDelta"]
    assert "Rain" in "".join(event.text for event in words if isinstance(event, TextDelta))
    assert last == [TextDelta(" it is.")]


@pytest.mark.parametrize("size", [1, 5, 200])
def test_a_thought_before_a_call_in_another_dialect_is_told_once(size: int) -> None:
    _, text, _ = OTHERS["after a thought"]
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    reply = ts.collect([event for came in heard(pieces, "Qwen3-8B") for event in came])
    assert (reply.thought, len(reply.calls), reply.text) == ("I look.", 1, "")


def test_a_cut_reply_and_one_that_may_not_call_are_not_read_in_other_dialects() -> None:
    text = LEFT["JSON fence"][1]
    for more in ({"finish": "length"}, {"choice": "none"}):
        events = [event for came in heard([text], "gemma-3-4b-it", **more) for event in came]
        assert ts.collect(events).text == text
        assert not ts.collect(events).calls


@pytest.mark.parametrize("dialect", ts.dialects())
def test_the_hint_names_a_dialect_that_reads_the_call(dialect: str) -> None:
    call = ts.ToolCall("call_1", "weather", {"city": "Xiamen"})
    text = f"I look it up: {write_calls([call], ts.dialect(dialect))} I did."
    note = like_a_call(text, [ts.tool(weather)])
    assert note is not None
    named = note.detail.rpartition("dialect='")[2].partition("'")[0]
    assert f"--dialect {named}" in note.detail
    mine, its = (ts.parse(text, one, tools=[weather]) for one in (dialect, named))
    assert [one.arguments for one in its.calls] == [one.arguments for one in mine.calls]
    assert len(its.text) <= len(mine.text)


@pytest.mark.parametrize("space", ["", " "])
@pytest.mark.parametrize("end", ["", "</s>"])
def test_the_marker_that_opens_a_call_decides_about_the_dialect(space: str, end: str) -> None:
    reply = ts.collect([event for came in heard([f"[TOOL_CALLS]{space}[{OBJECT}]{end}"]) for event in came])
    (note,) = [note for note in reply.notes if note.rule == "call-in-text"]
    assert "read as mistral" in note.detail


@pytest.mark.parametrize("text", [LEFT["JSON fence"][1], f"I look.\n{HERMES}"])
def test_a_misspelled_name_in_a_text_leaves_a_note(text: str) -> None:
    reply = ts.collect([event for came in heard([text.replace("weather", "wether")]) for event in came])
    assert not reply.calls
    (note,) = [note for note in reply.notes if note.rule == "like-a-call"]
    assert "looks like a call of wether" in note.detail
    assert "No tool has that name. Did you mean 'weather'?" in note.detail


def test_what_is_no_call_leaves_no_note() -> None:
    for text in ('{"name": "Ada", "age": 36}', "It rains in Xiamen.", "weather", '[1, {"a": "weather"}]', ""):
        assert not [event for came in heard([text]) for event in came if isinstance(event, Noted)]


UNREAD = {
    "Python between tags of JSON": ("Qwen2.5-7B-Instruct", "<tool_call>\nweather(city='Rome')\n</tool_call>"),
    "Python alone": ("mine", 'weather(city="Rome")'),
    "Python of a known model": ("Qwen2.5-7B-Instruct", 'weather(city="Rome")'),
    "an API's own JSON": ("mine", json.dumps({"functionCall": {"name": "weather", "args": {"city": "Rome"}}})),
    "a list of another API": (
        "mine", json.dumps({"tool_uses": [{"recipient_name": "weather", "parameters": {"city": "Rome"}}]})
    ),
    "the name as the key": ("mine", '{"weather": {"city": "Rome"}}'),
    "ReAct with brackets": ("mine", "Action: weather[Rome]"),
    "a variable in tool_code": (
        "gemma-3-4b-it", '```tool_code\nresult = weather(city="Rome")\nprint(result)\n```'
    ),
}  # fmt: skip
"""What looks like a call, and is none in any dialect."""


@pytest.mark.parametrize("days", ["2", '"2"'])
@pytest.mark.parametrize("name", ["default", "gemma-3-4b-it"])
def test_a_number_in_quotes_is_a_call_as_it_is_everywhere(serve: Serve, name: str, days: str) -> None:
    def forecast(city: str, days: int) -> str:
        """The weather in a city, for some days."""
        return f"{city}: {days * 'rain '}"

    async def main() -> None:
        text = HERMES.replace("weather", "forecast").replace('"Xiamen"', f'"Rome", "days": {days}')
        async with serve(Ignores(text)) as server:
            called = await ts.acall(QUESTION, tools=[forecast], model=f"{server.url}/v1#{name}")
            assert called.arguments == {"city": "Rome", "days": 2}

    asyncio.run(main())


@pytest.mark.parametrize(("name", "text"), UNREAD.values(), ids=UNREAD)
def test_what_looks_like_a_call_in_no_dialect_stays_text_with_a_note(name: str, text: str) -> None:
    reply = ts.collect([event for came in heard([text], name) for event in came])
    assert (reply.text, reply.calls) == (text, ())
    (note,) = [note for note in reply.notes if note.rule == "like-a-call"]
    assert "weather" in note.detail


@pytest.mark.parametrize(
    "text",
    [
        "Call weather() with a city.",
        "The weather (city: Rome) is fine.",
        '{"weather": {"temperature": 21}}',
        '{"name": "weather", "since": 1999}',
        "Action: weather the storm.",
        "<b>weather</b> <div class='weather'>Rome</div>",
        "weather(cities=3)",
    ],
)
def test_words_about_a_tool_leave_no_note(text: str) -> None:
    assert not [event for came in heard([text]) for event in came if isinstance(event, Noted)]


NO_CALL = {
    "discussed": f"You write `{OBJECT}` to call it.",
    "quoted": f"A call looks like this:\n\n```json\n{OBJECT}\n```\n\nThat is all.",
    "with words before": f"Sure, I look it up.\n{OBJECT}",
    "another tool": '{"name": "delete_all", "arguments": {}}',
    "arguments that do not fit": '{"name": "weather", "arguments": {"town": 3}}',
    "data": '{"city": "Xiamen", "temperature": 21}',
    "a cut call": '{"name": "weather", "arguments": {"city": "Xia',
    "code": "```python\nprint(weather('Xiamen'))\n```",
}


@pytest.mark.parametrize("name", ["mine", "gemma-3-4b-it"])
@pytest.mark.parametrize("text", NO_CALL.values(), ids=NO_CALL)
def test_what_only_looks_like_a_call_stays_text(serve: Serve, name: str, text: str) -> None:
    async def main() -> None:
        async with serve(Ignores(text)) as server:
            reply = await ts.arun(QUESTION, tools=[weather], model=f"{server.url}/v1#{name}")
            assert reply.text == text
            assert not reply.calls

    asyncio.run(main())


FENCE = LEFT["JSON fence"][1]
BESIDE_WORDS = {
    "a fence, then words": (f"{FENCE}\n\nI will tell you as soon as I have the forecast.", "llama3-json", "began"),
    "a fence, then words in its line": (f"{FENCE} That should be it.", "llama3-json", "began"),
    "words, then a fence": (f"To answer that I use the weather function:\n\n{FENCE}\n", "llama3-json", "ended"),
    "words, then tags": (f"Let me look.\n{HERMES}", "hermes", "ended"),
    "tags, then words": (f"{HERMES}\n\nOne moment.", "hermes", "began"),
    "two calls, then words": (f"{HERMES}\n{HERMES}\nOne moment.", "hermes", "began"),
    "code, then a fence": (f"I would do this:\n```python\nprint('<b>')\n```\nInstead I call it.\n{FENCE}", "llama3-json", "ended"),
    "words, then a fence of Python": ("I look.\n```tool_code\nweather(city='Xiamen')\n```", "gemma3", "ended"),
}  # fmt: skip
"""A reply of a model that nobody knows: a call with words on one side; the dialect that it is read in."""


@pytest.mark.parametrize("name", ["", "phi-4", "gemma-3-4b-it"])
@pytest.mark.parametrize(("text", "dialect", "where"), BESIDE_WORDS.values(), ids=BESIDE_WORDS)
def test_a_marked_call_with_words_on_one_side_is_a_call(name: str, text: str, dialect: str, where: str) -> None:
    calls = 2 if text.count(HERMES) == 2 else 1
    told: set[tuple[str, str]] = set()
    for size in (1, 2, 3, 7, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        reply = ts.collect([event for came in heard(pieces, name) for event in came])
        assert [(call.name, call.arguments) for call in reply.calls] == [("weather", {"city": "Xiamen"})] * calls
        assert reply.finish == "tool_calls"
        (note,) = [note.detail for note in reply.notes if note.rule == "call-in-text"]
        known = by_its_name(name)
        if not known or (known.name != dialect and name != "phi-4"):
            assert f"read as {dialect}, for the reply {where} with it. Give dialect={dialect!r}" in note
        told.add((reply.text, note))
    ((words, _),) = told
    assert words.strip()
    assert words.strip() in text


@pytest.mark.parametrize("name", ["", "gemma-3-4b-it"])
@pytest.mark.parametrize(
    "text",
    [
        f"A call looks like this:\n\n{FENCE}\n\nThe tool then answers.",
        f"Call it like this:\n{HERMES}\nDone.",
        f"{OBJECT}\n\nI will tell you.",
        f"The format is `{OBJECT}`",
        "Here it is:\n```json\n" + OBJECT.replace("city", "town") + "\n```",
        "Here it is:\n```json\n" + OBJECT.replace("weather", "delete_all") + "\n```",
        f"> {HERMES}\n\nis what you quoted.",
        f"Quoted:\n> ```json\n> {OBJECT}\n> ```",
    ],
)
def test_a_call_with_words_on_both_sides_or_without_marks_is_text(text: str, name: str) -> None:
    for size in (1, 5, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        reply = ts.collect([event for came in heard(pieces, name) for event in came])
        assert (reply.text, reply.calls) == (text, ())


@pytest.mark.parametrize("kind", ["hermes", "Qwen XML"])
@pytest.mark.parametrize("between", ["\nThen the other.\n", "\n\n## Step 2\n\n", "\n- I look again:\n"])
def test_calls_with_words_between_them_are_calls_however_they_come(kind: str, between: str) -> None:
    """Whether the first call counts does not depend on how much of the second one has come."""
    text = LEFT[kind][1] + between + LEFT[kind][1]
    for size in (1, 5, 20, 50, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        reply = ts.collect([event for came in heard(pieces) for event in came])
        assert [(call.name, call.whole) for call in reply.calls] == [("weather", True)] * 2
        assert reply.text.strip() == between.strip()


FORMS = {
    write_calls([ts.ToolCall("call_1", "weather", {"city": "Xiamen"})], ts.dialect(name)).strip(): name
    for name in reversed(ts.dialects())
}
"""The calls, each once, with one of the dialects that write it so: which one it is, the reader does not know."""


@pytest.mark.parametrize("call", FORMS, ids=FORMS.values())
@pytest.mark.parametrize("behind", [" Done.", "\nI wait.\n\nThen I go on."])
def test_what_is_behind_a_call_comes_once(call: str, behind: str) -> None:
    """The rest of the reply is read in the dialect of the call, which is known only by then."""
    text = call + behind
    for size in (1, 9, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        events = [event for came in heard(pieces) for event in came]
        reply = ts.collect(events)
        assert sum(isinstance(event, CallEnd) for event in events) == len(reply.calls)
        if FORMS[call] == "llama3-builtin":  # its argument ends at a quotation mark that ends the reply's last line
            assert [call.whole for call in reply.calls] == [False]
        else:
            assert reply.text.count(behind.strip()) == 1


@pytest.mark.parametrize("call", FORMS, ids=FORMS.values())
def test_a_call_in_a_sentence_that_goes_on_is_text(call: str) -> None:
    """The dialect of the model is unknown, and others read the call as well, without the words behind it."""
    wrong: list[tuple[str, int]] = []
    for behind in (" is how I would do it.", "?", ", then I stop.", " // dry run only", " or {0}?"):
        text = call + behind.format(call)
        for size in (5, len(text)):
            pieces = [text[at : at + size] for at in range(0, len(text), size)]
            reply = ts.collect([event for came in heard(pieces) for event in came])
            told = reply.text == text or "call-in-text" in {note.rule for note in reply.notes}
            if not told or any(one.whole for one in reply.calls):
                wrong.append((text, size))
    assert not wrong


@pytest.mark.parametrize("size", [4, 200_000])
def test_a_long_answer_with_fences_is_read_in_all_dialects_where_a_passage_begins(
    size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long the answer is, and in one piece as well."""
    fed = 0
    feed = Decoder.feed

    def counted(self: Decoder, chunk: str) -> list[ts.Event]:
        nonlocal fed
        fed += len(chunk)
        return feed(self, chunk)

    by_its_name("mine")
    heard(["```", "<", "["])
    monkeypatch.setattr(Decoder, "feed", counted)
    for steps in (20, 2000):
        fed = 0
        text = "".join(f"Step {i}:\n\n```python\nprint({i})\n```\n<b>It</b> is done.\n" for i in range(steps))
        request = ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),))
        listener = Listener(request, None)
        for at in range(0, len(text), size):
            listener.hear(TextDelta(text[at : at + size]))
        assert fed < 400_000


def test_what_looks_like_a_call_leaves_a_note(serve: Serve) -> None:
    async def main() -> None:
        async with serve(Ignores(f"I look.\n{HERMES}\nDone.")) as server:
            reply = await ts.arun(QUESTION, tools=[weather], model=f"{server.url}/v1#mine")
            assert HERMES in reply.text
            (note,) = [note for note in reply.notes if note.rule == "like-a-call"]
            assert "weather" in note.detail
            assert "dialect=" in note.detail

    asyncio.run(main())


@pytest.mark.parametrize(("choice", "notes"), [("auto", 1), ("none", 0)])
def test_a_prompted_models_call_in_another_dialect_leaves_a_note_too(choice: str, notes: int) -> None:
    text = 'I look: Action: weather\nAction Input: {"city": "Xiamen"}'
    model = ts.model(ts.Scripted([text]), dialect="hermes")
    reply = ts.decide(QUESTION, tools=[weather], model=model, choice=choice, tries=1)
    assert (reply.text, reply.calls) == (text, ())
    found = [note.detail for note in reply.notes if note.rule == "like-a-call"]
    assert len(found) == notes
    assert all("dialect='react'" in one for one in found)


PROMPTED: dict[str, tuple[Callable[[ts.Scripted], ts.Speaker], bool]] = {
    "in the dialect for any model": (ts.Speaker, True),
    "by its template": (
        lambda model: ts.Speaker(model, template="{% if tools %}<tool_call>{{ tools }}{% endif %}"),
        True,
    ),
    "in a dialect that was given": (lambda model: ts.Speaker(model, "minimax-m3"), False),
}


@pytest.mark.parametrize("asked", PROMPTED)
@pytest.mark.parametrize("text", [text for _, text in LEFT.values()], ids=LEFT)
def test_a_prompted_models_call_in_another_dialect_is_a_call_unless_its_dialect_was_given(
    asked: str, text: str
) -> None:
    """A model that was asked in a dialect writes its calls in the one that it was trained on."""
    speaker, others = PROMPTED[asked]
    for size in (1, 7, 1_000):
        model = speaker(ts.Scripted([[TextDelta(text[i : i + size]) for i in range(0, len(text), size)]]))
        reply = ts.decide(QUESTION, tools=[weather], model=model, tries=1)
        assert [(call.name, call.arguments) for call in reply.calls] == [("weather", {"city": "Xiamen"})] * others
        left = "functools" if text.startswith("functools") else ""  # the object in it is read in any dialect
        assert (reply.text, reply.finish) == ((left, "tool_calls") if others else (text, "stop"))
    marked = text.startswith("<") and "{" not in text
    for words in (f"One writes {text} for that.", f"I write:\n{text}\nand so on.") if marked else ():
        reply = ts.decide(QUESTION, tools=[weather], model=speaker(ts.Scripted([words])), tries=1)
        assert (reply.text, reply.calls) == (words, ())
        assert "like-a-call" in [note.rule for note in reply.notes]


@pytest.mark.parametrize("name", ["Qwen2.5-7B-Instruct", "mine"])
def test_nothing_is_read_where_no_call_may_come(serve: Serve, name: str) -> None:
    async def main() -> None:
        async with serve(Ignores(HERMES)) as server:
            made = ts.model(f"{server.url}/v1#{name}")
            never = [{"schema": {"type": "object"}}, {"tools": ()}]
            # In a dialect that is known the markup of a call that may not come is read, and no verb takes it for an answer.
            for more in [*never, {"choice": "none"}] if name == "mine" else never:
                settings: dict[str, Any] = {"tools": (ts.tool(weather),), **more}
                request = ts.Request([{"role": "user", "content": QUESTION}], **settings)
                events = [event async for event in made.stream(request)]
                assert "".join(e.text for e in events if isinstance(e, TextDelta)) == HERMES
                assert not [e for e in events if isinstance(e, CallStart | Noted)]

    asyncio.run(main())


@pytest.mark.parametrize("name", ["Qwen2.5-7B-Instruct", "mine"])
def test_a_call_after_the_last_turn_of_a_run_is_no_answer(serve: Serve, name: str) -> None:
    async def main() -> None:
        async with serve(Always(HERMES)) as server:
            reply = await ts.arun(QUESTION, tools=[weather], model=f"{server.url}/v1#{name}", limits={"steps": 2})
            assert (reply.text, reply.finish) == ("", "limit")
            assert {"not-run", "limit-steps"} <= {note.rule for note in reply.notes}
            assert HERMES not in str(reply.messages)

    asyncio.run(main())


@pytest.mark.parametrize("mark", ["<|im_end|>", "</s>", "<|eot_id|>"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_mark_that_ends_a_turn_is_no_text(serve: Serve, mark: str, stream: bool) -> None:
    async def main() -> None:
        async with serve(Always(f"Sunny.{mark}", streams=stream)) as server:
            url = f"{server.url}/v1#mine"
            for model in (url, ts.model(url, dialect="glm4"), build(ModelSettings("mine", (url,))).model):
                for tools in ([weather], []):
                    assert (await ts.arun(QUESTION, tools=tools, model=model)).text == "Sunny."
            quoted = await ts.arun(f"What does {mark} mean?", model=f"{server.url}/v1#mine")
            assert quoted.text == f"Sunny.{mark}"

    asyncio.run(main())


@pytest.mark.parametrize("name", ["mine", "gemma-3-4b-it"])
def test_text_is_held_back_only_while_it_may_be_a_call(serve: Serve, name: str) -> None:
    """The first piece of a reply in words comes before the second one is there."""

    async def main() -> None:
        go_on = asyncio.Event()

        async def answer(request: web.Request) -> web.StreamResponse:
            if not request.path.endswith("/chat/completions"):
                return web.json_response({}, status=404)
            await request.read()
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            first, second = chunked("It is {raining} now.", 7).split(b"\n\n", 1)
            await response.write(first + b"\n\n")
            await go_on.wait()
            await response.write(second)
            return response

        async with serve(answer) as server:
            text = ""
            async for event in ts.astream(QUESTION, tools=[weather], model=f"{server.url}/v1#{name}"):
                text += event.text if isinstance(event, TextDelta) else ""
                if text:
                    go_on.set()
            assert text == "It is {raining} now."

    asyncio.run(asyncio.wait_for(main(), 600))


def sse(*deltas: dict[str, Any], finish: str) -> bytes:
    rows = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    rows.append({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    return b"".join(b"data: " + json.dumps(row).encode() + b"\n\n" for row in rows) + b"data: [DONE]\n\n"


@pytest.mark.parametrize("name", ["Qwen2.5-7B-Instruct", "mine"])
def test_a_server_that_reads_a_call_and_leaves_its_markers(serve: Serve, name: str) -> None:
    call = {
        "index": 0,
        "id": "c1",
        "type": "function",
        "function": {"name": "weather", "arguments": '{"city": "Xiamen"}'},
    }
    sent = sse(
        *({"content": piece} for piece in ("I look.\n", "<tool", "_call>\n")), {"tool_calls": [call]},
        {"content": "\n</tool_call>"}, finish="tool_calls",
    )  # fmt: skip

    async def answer(request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/chat/completions"):
            return web.json_response({}, status=404)
        return web.Response(body=sent, content_type="text/event-stream")

    async def main() -> None:
        async with serve(answer) as server:
            reply = await ts.adecide(QUESTION, tools=[weather], model=f"{server.url}/v1#{name}")
            assert (reply.text.strip(), [call.arguments for call in reply.calls]) == ("I look.", [{"city": "Xiamen"}])

    asyncio.run(main())


@pytest.mark.parametrize(
    ("name", "dialect", "text"),
    [
        ("Qwen2.5-7B-Instruct", "hermes", HERMES),
        ("mine", "tool-json", '{"tool": "weather", "tool_input": {"city": "Xiamen"}}'),
    ],
)
def test_a_server_that_refuses_tools_is_prompted_by_library_and_gateway_alike(
    serve: Serve, name: str, dialect: str, text: str
) -> None:
    async def main() -> None:
        refuses = Refuses(text)
        async with serve(refuses) as server:
            url = f"{server.url}/v1#{name}"
            library = ts.model(url)
            upstream = build(ModelSettings(name="m", upstreams=(url,))).model.upstreams[0].model  # type: ignore[attr-defined]
            for model in (library, upstream):
                asked = ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),))
                streamed = [event async for event in model.stream(asked)]
                assert [event.name for event in streamed if isinstance(event, CallStart)] == ["weather"]
                assert model.strategy.line.startswith(f"prompted in {dialect} in messages: ")
                assert "does not support tools" in model.strategy.why
            assert library.strategy == upstream.strategy
            assert (await ts.acall(QUESTION, tools=[weather], model=library)).arguments == {"city": "Xiamen"}

    asyncio.run(main())


WRONG = '<tool_call>{"name": "weather", "arguments": {"town": "Xiamen"}}</tool_call>'


class Corrects(Ignores):
    """Writes a call with wrong arguments until it reads why they are wrong."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/chat/completions"):
            last = (await request.json())["messages"][-1]
            self.text = HERMES if "'city' is missing" in str(last["content"]) else WRONG
            if last["role"] == "tool" and self.text == HERMES:
                return web.Response(body=chunked(HERMES), content_type="text/event-stream")
        return await super().__call__(request)


class Obeys(Ignores):
    """Writes `text` until it reads that this was no call."""

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/chat/completions"):
            asked = str((await request.json())["messages"][-1]["content"])
            self.text = HERMES if "That was no tool call" in asked else self.text
        return await super().__call__(request)


@pytest.mark.parametrize("name", ["mine", "Qwen3-8B"])
def test_markers_of_a_call_around_something_else_are_asked_again(serve: Serve, name: str) -> None:
    """Also if nobody knows the dialect of the model."""

    async def main() -> None:
        async with serve(Obeys("<tool_call>look at the sky</tool_call>")) as server:
            reply = await ts.arun(QUESTION, tools=[weather], model=f"{server.url}/v1#{name}")
            assert (reply.text, [call.name for step in reply.steps for call in step.reply.calls]) == (
                "It rains.",
                ["weather"],
            )

    asyncio.run(main())


@pytest.mark.parametrize(
    "text",
    [
        "A call is written <tool_call>like this</tool_call>, you see.",
        "Models write `<tool_call>`, then JSON.",
        "<answer>Rome</answer>",
        "```\n<tool_call>x</tool_call>\n```",
    ],
)
def test_talk_about_markers_is_not_asked_again(text: str) -> None:
    for size in (1, 7, len(text)):
        pieces = [text[at : at + size] for at in range(0, len(text), size)]
        reply = ts.collect([event for came in heard(pieces) for event in came])
        assert (reply.text, [note.rule for note in reply.notes if note.rule == "unread-call"]) == (text, [])


def test_a_whole_reply_that_is_a_marked_call_with_wrong_arguments_is_asked_again(serve: Serve) -> None:
    async def main() -> None:
        async with serve(Corrects("")) as server:
            model = f"{server.url}/v1#mine"
            reply = await ts.arun(QUESTION, tools=[weather], model=model)
            assert reply.text == "It rains."
            errors = [str(result.error) for step in reply.steps for result in step.results]
            assert "'city' is missing" in errors[0]
            assert errors[1:] == ["None"]
            assert (await ts.acall(QUESTION, tools=[weather], model=model)).arguments == {"city": "Xiamen"}

    asyncio.run(main())


@pytest.mark.parametrize(
    "text",
    [
        f"So: {WRONG}",
        '```json\n{"name": "weather", "arguments": {"town": "Xiamen"}}\n```',
        'Action: weather\nAction Input: {"town": "Xiamen"}',
    ],
)
def test_a_wrong_call_in_any_other_text_stays_text(text: str) -> None:
    reply = ts.collect([event for came in heard([text]) for event in came])
    assert (reply.text, reply.calls) == (text, ())


def test_a_wrong_call_beside_one_that_the_server_read_stays_text() -> None:
    listener = Listener(ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),)), None)
    events = [
        CallStart("call_1", "weather"),
        ArgumentsDelta('{"city": "Rome"}'),
        ts.CallEnd(),
        TextDelta(WRONG),
        Finished("tool_calls"),
    ]
    reply = ts.collect([made for one in events for made in listener.hear(one)])
    assert [call.arguments for call in reply.calls] == [{"city": "Rome"}]
    assert reply.text == WRONG


@pytest.mark.parametrize(
    ("text", "finish", "reason", "dialect"),
    [
        (f"I call it: {WRONG}", "stop", "The required argument 'city' is missing", "hermes"),
        ('{"name": "weather", "arguments": {"town": 3}}', "stop", 'Unknown argument: "town"', "llama3-json"),
        (f"I call it: {HERMES[:-20]}", "length", "Raise max_tokens", "hermes"),
        (f"So: {HERMES[:-20]}", "stop", "the reply ended (finish reason `stop`) before the call did", "hermes"),
        ('I call [TOOL_CALLS][{"name": "weather", "arguments": {"ci', "length", "Raise max_tokens", "mistral-nemo"),
    ],
)
def test_the_note_says_why_the_call_stays_text(text: str, finish: str, reason: str, dialect: str) -> None:
    reply = ts.collect([event for came in heard([text], finish=finish) for event in came])
    (note,) = [note.detail for note in reply.notes if note.rule == "like-a-call"]
    assert reason in note
    assert f"If it is one, put the tools into the prompt with dialect={dialect!r} (--dialect {dialect}, " in note


def test_the_error_about_a_missing_call_has_the_reason(serve: Serve) -> None:
    async def main() -> None:
        async with serve(Ignores(f"I call it: {WRONG}")) as server:
            with pytest.raises(ts.GenerationError, match=r"and a text came\. A part of .*'city' is missing"):
                await ts.adecide(QUESTION, tools=[weather], model=f"{server.url}/v1#mine", choice="required")
            with pytest.raises(
                ts.NoCall, match=r"a text came: 'I call it.*The required argument 'city' is missing.*dialect='hermes'"
            ):
                await ts.acall(QUESTION, tools=[weather], model=f"{server.url}/v1#mine")

    asyncio.run(main())
