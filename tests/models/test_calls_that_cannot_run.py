"""Calls in the text of a model of unknown dialect that cannot run: the model is asked again, as one of a known dialect."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from itertools import product
from typing import Any

import pytest
from aiohttp import web

import toolspeak as ts
from replies import delta, frames
from toolspeak.drive import Done
from toolspeak.events import Finished, TextDelta
from toolspeak.gateway.generation import answer
from toolspeak.models.calls_in_text import Listener
from toolspeak.models.speaker import Speaker
from toolspeak.models.strategy import PLAIN, Strategy
from toolspeak.wire.prompt.calls import write_calls

Serve = Callable[..., Any]
QUESTION = "What is the weather in Xiamen?"
UNMARKED = {
    *("command-r-plus", "function-name", "functionary-v3", "functools", "gemma3", "generic-json", "llama3-json"),
    *("phi-4-mini", "pythonic", "react", "response-template", "tool-call", "tool-json", "xlam"),
}
"""Dialects whose calls begin with a word, a fence or a bracket: what is no right call may be an answer."""
IN_LINE = {"minimax-m3", "mistral-nemo", "mistral-v11", "mistral-v13", "mistral-v3", "openpangu"}
"""Those whose calls begin with a bracket: behind words these are not looked for."""
REFUSED = {
    "unknown tool": '<tool_call>{"name": "nosuch", "arguments": {"city": "Xiamen"}}</tool_call>',
    "half a call": '<tool_call>{"name": "weather", "arguments": {"city": "Xia',
    "the beginning of a call": '<tool_call>\n{"name": "wea',
    "a doubled key": '<tool_call>{"name": "weather", "arguments": {"city": "Xiamen", "city": "Rome"}}</tool_call>',
    "broken JSON": '<tool_call>{"name": "weather", "arguments": {"city": Xiamen Rome,,}}</tool_call>',
    "wrong arguments": '<tool_call>{"name": "weather", "arguments": {"town": "Xiamen"}}</tool_call>',
    "in a fence": '```xml\n<tool_call>\n{"name": "weather", "arguments": {"town": "Xiamen"}}\n</tool_call>\n```',
    "words before it": 'I look.\n<tool_call>{"name": "weather", "arguments": {"town": "Xiamen"}}</tool_call>',
    "words behind it": '<tool_call>{"name": "weather", "arguments": {"town": "Xiamen"}}</tool_call>\nOne moment.',
}
SHOWN = {
    "an example of another tool": 'So:\n<tool_call>{"name": "nosuch", "arguments": {"city": "Rome"}}</tool_call>',
    "a sentence about it": '<tool_call>{"name": "weather", "arguments": {"town": "Rome"}}</tool_call> is how I call.',
    "a sentence about its markers": "<function=weather> opens a call of that model, and </function> closes it.",
    "words between the markers": "<function=weather> opens it,\nand\n</function> closes it.",
    "words on both sides": 'So:\n<tool_call>{"name": "weather", "arguments": {"town": 1}}</tool_call>\nSee?',
    "plain JSON": '{"name": "weather", "arguments": {"town": "Rome"}}',
    "half an object": '{"name": "nosuch", "arguments": {"ci',
    "a fence": '```json\n{"name": "nosuch", "arguments": {"city": "Rome"}}\n```',
    "another element": "<answer>Rome</answer>",
}


def weather(city: str) -> str:
    """The weather in a city, now."""
    return f"rain in {city}"


REQUEST = ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),))


def heard(text: str, size: int, finish: Any = "stop") -> ts.Reply:
    listener = Listener(REQUEST, None)
    pieces = [TextDelta(text[at : at + size]) for at in range(0, len(text), size)]
    return ts.collect([event for one in (*pieces, Finished(finish)) for event in listener.hear(one)])


Case = tuple[str, str, str, bool]


def cases(name: str) -> tuple[Case, ...]:
    """Calls of a dialect that cannot run: how each is written, how the reply ends, what is before it, and whether it is whole."""

    def written(tool: str, **arguments: str) -> str:
        return write_calls([ts.ToolCall("c1", tool, arguments)], ts.dialect(name)).strip()

    right = written("weather", city="Xiamen")
    half = right[: right.index("Xiam") + 4]
    wrong = written("weather", town="Xiamen")
    found = [(wrong, "stop", "", True), (half, "stop", "", False), (half, "length", "", False)]
    if name != "llama4-pythonic":  # a list of Python calls: one of an unknown tool may be any list
        found.append((written("nosuch", city="Xiamen"), "stop", "", True))
    if name not in IN_LINE:
        found += [(wrong, "stop", "I look.\n", True), (half, "stop", "I look.\n", False)]
    return tuple(found)


FORMS = {cases(name): name for name in sorted({*ts.dialects()} - UNMARKED, reverse=True)}
"""The cases, each once, with one of the dialects that write them so: which one it is, the reader does not know."""


@pytest.mark.parametrize("form", FORMS, ids=FORMS.values())
def test_a_marked_call_that_cannot_run_is_a_call_in_every_dialect(form: tuple[Case, ...]) -> None:
    for text, finish, before, whole in form:
        for size in (1, 9, 10_000):
            reply = heard(before + text, size, finish)
            assert [call.name for call in reply.calls] in (["weather"], ["nosuch"]), (text, size)
            assert [call.whole for call in reply.calls] == [whole], (text, size)
            assert (reply.text.strip(), reply.finish) == (
                before.strip(),
                "length" if finish == "length" else "tool_calls",
            )


@pytest.mark.parametrize("text", SHOWN.values(), ids=SHOWN)
def test_what_may_be_an_example_or_an_answer_stays_text(text: str) -> None:
    for size in (1, 7, len(text)):
        reply = heard(text, size)
        assert (reply.text, reply.calls) == (text, ())
        assert not [note for note in reply.notes if note.rule in ("unread-call", "cut-opener")]


@pytest.mark.parametrize("text", [text for text in REFUSED.values() if text.startswith("<tool_call>{")])
def test_behind_a_call_that_the_server_read_it_stays_text(text: str) -> None:
    listener = Listener(ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),)), None)
    own = [ts.CallStart("weather", "c1"), ts.ArgumentsDelta('{"city": "Rome"}'), ts.CallEnd()]
    reply = ts.collect([out for one in (*own, TextDelta(text), Finished("stop")) for out in listener.hear(one)])
    assert (reply.text, len(reply.calls)) == (text, 1)


class Improves:
    """A server that ignores `tools`: its model writes `text` first, and then that it rains."""

    def __init__(self, text: str, finish: str) -> None:
        self.replies = [(text, finish)]
        self.asked = 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        if not request.path.endswith("/chat/completions"):
            return web.json_response({"error": "no such page"}, status=404)
        self.asked += 1
        text, finish = self.replies.pop() if self.replies else ("It rains.", "stop")
        if (await request.json()).get("stream"):
            return web.Response(
                body=frames(delta(content=text), delta(finish), "[DONE]"), content_type="text/event-stream"
            )
        message = {"role": "assistant", "content": text}
        return web.json_response({"choices": [{"index": 0, "message": message, "finish_reason": finish}]})


async def through(door: str, model: ts.Model) -> ts.Reply:
    """The reply of the library's verbs, or as the gateway passes it on."""
    if door == "run":
        return await ts.arun(QUESTION, tools=[weather], model=model)
    if door == "decide":
        return await ts.adecide(QUESTION, tools=[weather], model=model)
    request = ts.Request([{"role": "user", "content": QUESTION}], (ts.tool(weather),))
    events = [event async for event in answer(request, model)]
    return next(event.value for event in events if isinstance(event, Done))


@pytest.mark.parametrize("door", ["run", "decide", "gateway"])
@pytest.mark.parametrize("name", ["mine", "Qwen2.5-7B-Instruct"])
@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_the_model_is_asked_again_whatever_its_name(serve: Serve, text: str, name: str, door: str) -> None:
    async def main() -> None:
        async with serve(server := Improves(text, "stop")) as running:
            reply = await through(door, ts.model(f"{running.url}/v1#{name}"))
            assert (reply.text.removeprefix(text.partition("<")[0]), server.asked) == ("It rains.", 2)
            assert not reply.calls

    asyncio.run(main())


@pytest.mark.parametrize("name", ["mine", "Qwen2.5-7B-Instruct"])
def test_a_run_asks_again_for_a_call_that_the_limit_of_tokens_cut(serve: Serve, name: str) -> None:
    async def main() -> None:
        async with serve(server := Improves(REFUSED["half a call"], "length")) as running:
            reply = await through("run", ts.model(f"{running.url}/v1#{name}"))
            assert (reply.text, server.asked) == ("It rains.", 2)
            assert "at its limit of tokens" in str(reply.steps[0].results[0].error)
        async with serve(server := Improves(REFUSED["half a call"], "length")) as running:
            reply = await through("gateway", ts.model(f"{running.url}/v1#{name}"))
            assert (reply.text, reply.finish, server.asked) == ("", "length", 1)

    asyncio.run(main())


MIXED = {
    "an unknown tool": ("nosuch", '{"city": "Oslo"}'),
    "wrong arguments": ("weather", '{"town": "Oslo"}'),
    "a doubled key": ("weather", '{"city": "Oslo", "city": "Bonn"}'),
}
RIGHT = '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>'
FORMS = ["deepseek-v31", "functionary-v31", "kimi-k2", "longcat-pairs", "minicpm5", "mistral-v13", "qwen3-coder"]
LISTS = ["llama3-json", "pythonic", "tool-json", "xlam"]
"""Dialects without markers in brackets, whose calls count if they are the whole reply."""


def names(reply: ts.Reply) -> list[tuple[str, str]]:
    return sorted((call.name, str(call.arguments.get("city") if call.whole else None)) for call in reply.calls)


def test_beside_a_right_call_a_wrong_one_is_a_call_too() -> None:
    for what, (name, arguments) in MIXED.items():
        wrong = f'<tool_call>\n{{"name": "{name}", "arguments": {arguments}}}\n</tool_call>'
        for text in (f"{RIGHT}\n{wrong}", f"{wrong}\n{RIGHT}"):
            for before, behind in (("", ""), ("I look.\n", ""), ("", "\nOne moment.")):
                whole = f"{before}{text}{behind}"
                known = ts.collect(ts_events(whole, "hermes"))
                for size in (len(whole), 1):
                    reply = heard(whole, size)
                    assert (names(reply), len(reply.calls)) == (names(known), 2), (what, whole, size)
                    assert reply.text.strip() == f"{before}{behind}".strip(), (what, whole, size)


def ts_events(text: str, dialect: str) -> list[Any]:
    """The events of a text, read in a known dialect."""
    decoder = ts.Decoder(ts.dialect(dialect), (ts.tool(weather),))
    return [*decoder.feed(text), *decoder.close()]


@pytest.mark.parametrize("name", FORMS + LISTS)
def test_so_it_is_in_other_dialects(name: str) -> None:
    calls = [ts.ToolCall("c1", "weather", {"city": "Rome"}), ts.ToolCall("c2", "nosuch", {"city": "Oslo"})]
    for order in (calls, calls[::-1]):
        text = write_calls(order, ts.dialect(name)).strip()
        texts = [text, f"{text}\nOne moment."] if name in FORMS and name not in IN_LINE else [text]
        for one in texts:
            known = names(
                ts.collect(ts_events(one, name))
            )  # a list that begins with an unknown name is none in pythonic
            assert name == "pythonic" or known == [("nosuch", "Oslo"), ("weather", "Rome")]
            for size in (len(one), 7):
                assert names(heard(one, size)) == known, (one, size)


def test_a_call_of_another_tool_that_stays_text_is_named() -> None:
    """Words follow it, so it may be an example, and it was passed on when the right call came."""
    wrong = '<tool_call>\n{"name": "weathr", "arguments": {"city": "Oslo"}}\n</tool_call>'
    text = f"{wrong}\nNow in earnest:\n{RIGHT}"
    for size in (len(text), 5):
        reply = heard(text, size)
        assert (names(reply), wrong in reply.text) == ([("weather", "Rome")], True)
        assert [note.rule for note in reply.notes if note.rule != "call-in-text"] == ["like-a-call"]


def test_a_placeholder_in_prose_loses_no_word() -> None:
    for text in (
        "<function=weather>{name} is a template of calls.",
        "<function=weather>{city} and so on, with {more}.",
        "<function=weather>{name}\nThat opens a call.",
        "<function=weather>{name}</function> is it.",
        "<function=weather> {name}",
    ):
        for size in (len(text), 6, 1):
            reply = heard(text, size)
            assert (reply.text, reply.calls) == (text, ()), (text, size)


class Writes:
    """A text model that writes this text in pieces."""

    name, capabilities = "writes", frozenset[Any]()

    def __init__(self, text: str, size: int) -> None:
        self.pieces = [text[at : at + size] for at in range(0, len(text), size)]

    async def stream(self, request: ts.Request) -> AsyncGenerator[Any]:
        for piece in self.pieces:
            yield TextDelta(piece)
        yield Finished()


def asked_in(dialect: str, text: str, size: int) -> ts.Reply:
    """What comes of a text whose model was asked in a dialect that its user did not name."""
    speaker = Speaker(Writes(text, size), strategy=Strategy("prompted", "", ts.dialect(dialect)))

    async def main() -> ts.Reply:
        return ts.collect([event async for event in speaker.stream(REQUEST)])

    return asyncio.run(main())


def test_so_it_is_beside_a_call_in_the_dialect_of_the_prompt() -> None:
    """The decoder of that dialect reads the right one of two foreign calls, for that names an offered tool."""
    calls = [ts.ToolCall("c1", "weather", {"city": "Rome"}), ts.ToolCall("c2", "nosuch", {"city": "Oslo"})]
    both = [("nosuch", "Oslo"), ("weather", "Rome")]
    for dialect, name, order in product(PLAIN[:3], ("hermes", "kimi-k2", "qwen3-coder", "xlam"), (calls, calls[::-1])):
        written = write_calls(order, ts.dialect(name)).strip()
        for before in ("", "I look.\n") if name in ("hermes", "qwen3-coder") else ("",):
            for size in (len(written), 1):
                reply = asked_in(dialect, before + written, size)
                assert names(reply) == both, (dialect, name, size)
                assert not before or reply.text.strip() == before.strip(), (dialect, name, size)


def test_an_example_beside_a_call_in_the_dialect_of_the_prompt_stays_text() -> None:
    right = '{"name": "weather", "arguments": {"city": "Rome"}}'
    quoted = 'The form is `<tool_call>{"name": "nosuch", "arguments": {}}</tool_call>`, so:'
    sides = 'So:\n<tool_call>{"name": "nosuch", "arguments": {}}</tool_call>\nSee?'
    shown = [what for what in SHOWN.values() if '"weather"' not in what and what != SHOWN["half an object"]]
    for what in (*shown, quoted, sides):
        for text in (f"{what}\n\nNow:\n{right}", f"{right}\n\nSo:\n{what}\nThat is all."):
            for size in (len(text), 1):
                reply = asked_in("tool-json", text, size)
                assert (names(reply), what in reply.text) == ([("weather", "Rome")], True), (text, size)


def test_the_head_of_a_call_in_another_dialect_is_no_half_call() -> None:
    """The dialect of the prompt reads the object of the call, and the head before it is text."""
    for calls in (1, 2):
        one = ts.ToolCall("c1", "weather", {"city": "Rome"})
        text = write_calls([one] * calls, ts.dialect("inkling"))
        for size in (len(text), 7):
            reply = asked_in("tool-json", text, size)
            assert [call.arguments for call in reply.calls] == [{"city": "Rome"}] * calls
            assert not {"two-readings", "superseded-call"} & {note.rule for note in reply.notes}
