"""What of many tools a model is shown, and that it may search for others."""

import asyncio
import itertools
import json
import threading
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import pytest

import toolspeak as ts
from many import NAMES, THINGS, definition
from toolspeak.errors import MissingExtra, ModelUnreachable
from toolspeak.events import ArgumentsDelta, CallEnd, CallStart, Event, Finished, Noted, TextDelta
from toolspeak.models.base import Model
from toolspeak.models.pool import Pool
from toolspeak.models.scripted import Scripted
from toolspeak.models.speaker import Speaker
from toolspeak.plan.token_estimate import about_tool
from toolspeak.search import index_memory_cache as kept, router as shown
from toolspeak.search.conversation_queries import AnsweredCalls, AnsweredRound
from toolspeak.search.index_memory_cache import Indexes
from toolspeak.search.router import ToolRouter
from toolspeak.types import Message, Request, Tool, Usage


def made(name: str, said: str) -> Tool[..., Any]:
    schema = {"type": "object", "properties": {"which": {"type": "string"}}, "required": ["which"]}
    return Tool(name, said, schema, lambda which: f"{name} {which}")


TOOLS = tuple(made(name, definition(name)["description"]) for name in NAMES)


def called(name: str, call: str = "", **arguments: Any) -> list[Event]:
    json_text = json.dumps(arguments or {"which": "7"})
    return [
        CallStart(name, call or f"c_{name}"),
        ArgumentsDelta(json_text),
        CallEnd(),
        Finished("tool_calls", Usage(10, 1)),
    ]


def searched(query: str) -> list[Event]:
    return called("search_tools", query=query)


def said(text: str) -> list[Event]:
    return [TextDelta(text), Finished("stop", Usage(10, 1))]


def native(*replies: Any, **options: Any) -> Scripted:
    return Scripted(list(replies), capabilities=["tools", "required"], **options)


def routed(model: Model, **options: Any) -> ToolRouter:
    return ToolRouter(model, **{"finds": AnsweredCalls(), "indexes": Indexes(), **options})


def names(request: Request) -> list[str]:
    return [tool.name for tool in request.tools or ()]


def asking(*said: str, **more: Any) -> Request:
    return Request([{"role": "user", "content": text} for text in said], **{"tools": TOOLS, **more})


def heard(model: Model, request: Request) -> list[Event]:
    async def main() -> list[Event]:
        return [event async for event in model.stream(request)]

    return asyncio.run(main())


def notes(events: list[Event]) -> list[tuple[str, str]]:
    return [(event.note.rule, event.note.detail) for event in events if isinstance(event, Noted)]


def shown_for(request: Request, **options: Any) -> list[str]:
    model = native(said("Hello"))
    heard(routed(model, **options), request)
    return names(model.requests[0])


# ------------------------------------------------------------------ what is shown


def test_what_fits_the_question_is_shown_in_the_order_of_all() -> None:
    found = shown_for(asking("Cancel my hotel"))
    assert {"cancel_hotel", "book_hotel", "cancel_flight"} < set(found)
    assert len(found) == 21
    assert found[-1] == "search_tools"
    assert found[:-1] == [tool.name for tool in TOOLS if tool.name in found]
    assert "get_loan" not in found


def test_what_fits_best_is_told_beside() -> None:
    model = native(said("Hello"))
    heard(routed(model, pinned=["set_tax"]), asking("Cancel my hotel"))
    ranked = model.requests[0].ranked
    assert next(iter(ranked)) == "cancel_hotel"
    assert list(ranked.values()) == sorted(ranked.values(), reverse=True)
    assert all(0 < score <= 1 for score in ranked.values())
    assert {*ranked, "set_tax", "search_tools"} == set(names(model.requests[0]))
    assert "set_tax" not in ranked


def test_a_weaker_model_is_shown_fewer() -> None:
    model = Scripted([said("Hello")], capabilities=["tools", "score"])
    heard(routed(model), asking("Cancel my hotel"))
    assert len(names(model.requests[0])) == 11


@pytest.mark.parametrize("count", [20, 64])
def test_few_tools_are_shown_as_they_came(count: int) -> None:
    model = native(said("Hello"))
    request = asking("Cancel my hotel", tools=TOOLS[:count])
    assert notes(heard(routed(model), request)) == []
    assert model.requests == [request]
    assert model.requests[0] is request


@pytest.mark.parametrize("max_tools", [100, 200])
def test_no_more_are_shown_than_providers_take(max_tools: int) -> None:
    found = shown_for(asking("Cancel my hotel"), max_tools=max_tools, tokens=1_000_000)
    assert "cancel_hotel" in found
    assert len(found) <= 128


def test_definitions_take_half_of_a_known_context() -> None:
    long = tuple(made(f"t{i}", "word " * 2_000) for i in range(25))
    assert len(shown_for(asking("word", tools=long))) == 25  # nobody knows how much there is room for
    assert len(shown_for(asking("word", tools=long), context=16_000)) == 4  # 8,000 tokens hold three, and search_tools
    assert len(shown_for(asking("word", tools=long), context=150_000)) == 25
    assert len(shown_for(asking("Cancel my hotel"), context=150_000)) == 160
    assert len(shown_for(asking("word", tools=long), tokens=8_000)) == 4
    assert len(shown_for(asking("word", tools=long), tokens=100_000)) == 25


def test_the_context_is_what_a_model_or_the_least_of_several_tells() -> None:
    class Known(Scripted):
        def __init__(self, context: int) -> None:
            super().__init__([said("Hello")], capabilities=["tools"])
            self.context = context

    long = tuple(made(f"t{i}", "word " * 2_000) for i in range(25))
    for contexts, count in (((16_000,), 4), ((150_000, 16_000), 4), ((150_000, 150_000), 25)):
        models = [Known(context) for context in contexts]
        one = models[0] if len(models) == 1 else Pool(models, name="m")
        heard(routed(one), asking("word", tools=long))
        assert {len(names(request)) for model in models for request in model.requests} == {count}


def test_what_is_pinned_demanded_or_used_is_shown_whatever_is_asked() -> None:
    request = asking("Cancel my hotel")
    assert "get_loan" in shown_for(request, pinned=["get_loan"])
    found = shown_for(request, pinned=["*_loan", "no_such_*"], max_tools=3)
    assert {"get_loan", "cancel_loan", "cancel_hotel"} < set(found)
    assert len(found) == 10 + 3 + 1
    demanded = shown_for(asking("Cancel my hotel", choice="get_loan"))
    assert "get_loan" in demanded
    assert "search_tools" not in demanded
    call = {"id": "1", "type": "function", "function": {"name": "send_tax", "arguments": "{}"}}
    before: list[Message] = [
        {"role": "user", "content": "My taxes"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "sent"},
        {"role": "user", "content": "Cancel my hotel please, I stay here"},
    ]
    found = shown_for(Request(before, TOOLS))
    assert {"send_tax", "cancel_hotel"} < set(found)
    assert found[:21] == shown_for(Request(before[:1], TOOLS))  # what was shown stays, where it was
    assert "cancel_hotel" in found[21:]


def test_no_more_is_shown_than_any_provider_takes() -> None:
    found = shown_for(asking("Cancel my hotel"), pinned=["*"])
    assert len(found) == 128
    assert "cancel_tax" not in found
    demanded = shown_for(asking("Cancel my hotel", choice="cancel_tax"), pinned=["*"])
    assert len(demanded) == 127
    assert "cancel_tax" in demanded


@pytest.mark.parametrize("pinned", [[], ["send_*"]])
def test_what_is_demanded_is_shown_for_that_request_alone(pinned: list[str]) -> None:
    model = native(*[said("Hello")] * 3)
    one = routed(model, pinned=pinned)
    for choice in ("auto", "get_loan", "auto"):
        heard(one, asking("Cancel my hotel", choice=choice))
    before, demanded, after = map(names, model.requests)
    assert "get_loan" in demanded
    assert "get_loan" not in before
    assert after == before


def test_a_short_question_points_back_and_an_error_asks_too() -> None:
    assert "book_train" not in shown_for(asking("Cancel my hotel please, and tell the user"), max_tools=5)
    assert "book_train" in shown_for(asking("Please book me a train", "and in Paris?"), max_tools=5)
    failed: list[Message] = [
        {"role": "user", "content": "Cancel my hotel please, and tell the user"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "1", "type": "function", "function": {"name": "cancel_hotel", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": '{"error": "find the invoice first"}'},
    ]  # fmt: skip
    assert "find_invoice" in shown_for(Request(failed, TOOLS), max_tools=5)
    failed[-1]["content"] = "find the invoice first"
    assert "find_invoice" not in shown_for(Request(failed, TOOLS), max_tools=5)


def test_a_question_in_a_script_without_spaces_points_back_only_if_it_is_short() -> None:
    tools = (*TOOLS, Tool("get_tq", "查询城市的天气预报"), Tool("get_yj", "发送电子邮件给联系人"))
    before = "北京明天天气预报怎么样"
    assert "get_tq" in shown_for(asking(before, "那上海呢？", tools=tools), max_tools=1)
    found = shown_for(asking(before, "给张三发一封电子邮件，说我不能去参加会议了", tools=tools), max_tools=1)
    assert "get_yj" in found
    assert "get_tq" not in found


@pytest.mark.parametrize("choice", ["auto", "required"])
def test_what_fits_nothing_fills_the_slots(choice: str) -> None:
    assert len(shown_for(asking("Zzyzx", choice=choice))) == 21


def test_one_who_decides_by_likelihood_does_not_search() -> None:
    model = Scripted([said("Hello")], capabilities=["tools", "score", "scored"])
    heard(routed(model), asking("Cancel my hotel"))
    assert len(names(model.requests[0])) == 10


@pytest.mark.parametrize(("count", "given"), [(40, 40), (41, 10)])
def test_one_who_decides_by_likelihood_is_given_more_at_once(count: int, given: int) -> None:
    model = Scripted([said("Hello")], capabilities=["tools", "score", "scored"])
    heard(routed(model), asking("Set the weather of the user", tools=TOOLS[:count]))
    assert len(names(model.requests[0])) == given


def test_a_name_that_is_taken_is_not_taken_again() -> None:
    tools = (*TOOLS, made("search_tools", "Searches the user's own tools."))
    model = native(called("search_tools_2", query="loan"), said("Hello"))
    heard(routed(model), asking("Cancel my hotel", tools=tools))
    first, second = map(names, model.requests)
    assert first[-1] == "search_tools_2"
    assert second[: len(first)] == first
    assert "get_loan" in second[len(first) :]


def test_wrong_settings_are_told() -> None:
    for options in ({"max_tools": 0}, {"tokens": "many"}, {"pinned": "get_loan"}, {"pinned": [5]}, {"index": [TOOLS]}):
        with pytest.raises(ts.UsageError, match=next(iter(options))):
            ToolRouter(native(), **options)  # type: ignore[arg-type]
    with pytest.raises(ts.UsageError, match=r"ts\.model\('local'\), received 'local'"):
        ToolRouter("local")  # type: ignore[arg-type]


# ------------------------------------------------------------------ a client's own tools


def agent(own: list[str], server: str, separator: str, count: int, instructions: str = "") -> Request:
    """What a coding agent sends: its own tools, and between them those of its servers."""
    servers = [
        made(f"{server}{at // 20}{separator}{NAMES[at]}", definition(NAMES[at])["description"]) for at in range(count)
    ]
    tools = sorted([*(made(name, "Works on files.") for name in own), *servers], key=lambda tool: tool.name)
    messages: list[Message] = [
        *([{"role": "system", "content": instructions}] if instructions else []),
        {"role": "user", "content": [
            {"type": "text", "text": "<reminder>Today is Monday, cancel the hotel.</reminder>"},
            {"type": "text", "text": "hi"},
        ]},
    ]  # fmt: skip
    return Request(messages, tuple(tools))


OWN = ["Look", "Change", "Shell", "Find", "Ask"]


@pytest.mark.parametrize(
    ("own", "server", "separator"),
    [(OWN, "mcp__house", "__"), (OWN, "house", "."), (["look", "change_text", "run"], "house", "_"), (OWN, "z", "/")],
)
@pytest.mark.parametrize("count", [100, 150])
def test_a_clients_own_tools_go_before_those_of_its_servers(
    own: list[str], server: str, separator: str, count: int
) -> None:
    found = shown_for(agent(own, server, separator, count))
    assert set(own) < set(found)
    assert len(found) == len(own) + 20 + 1


def test_own_tools_and_those_that_the_instructions_name_come_first_where_room_is_short() -> None:
    request = agent(OWN, "mcp__house", "__", 100, "Use `Shell` to run things, and mcp__house0__get_flight for flights.")
    found = shown_for(request, context=300)
    assert {"Shell", "mcp__house0__get_flight"} < set(found)
    assert len(found) < 10
    found = shown_for(request, context=700)
    assert {"mcp__house0__get_flight", *OWN} < set(found)


def test_where_all_tools_are_alike_none_is_the_clients_own() -> None:
    assert shown_for(asking("Cancel my hotel"))[:20] != [tool.name for tool in TOOLS[:20]]


def test_the_search_tells_of_what_is_not_shown() -> None:
    model = native(said("Hello"))
    heard(routed(model), agent(OWN, "mcp__house", "__", 100))
    (search,) = [tool for tool in model.requests[0].tools or () if tool.name == "search_tools"]
    assert "there are 80 more" in search.description
    assert "mcp__house4 (20)" in search.description


def test_what_a_program_says_beside_the_user_is_no_question() -> None:
    parts = [
        {"type": "text", "text": "<env note='x'>cancel the hotel</env>"},
        {"type": "text", "text": "send an invoice to the user please"},
    ]
    found = shown_for(Request([{"role": "user", "content": parts}], TOOLS), max_tools=1)
    assert found[0] == "send_invoice"
    found = shown_for(asking("<b>cancel the hotel</b>"), max_tools=1)  # nothing else was said
    assert found[0] == "cancel_hotel"


# ------------------------------------------------------------------ searching


def test_a_search_is_answered_here_and_what_it_found_is_called() -> None:
    model = native([TextDelta("Let me look."), *searched("get a loan")], called("get_loan"))
    events = heard(routed(model), asking("Cancel my hotel"))
    assert notes(events)[0] == ("tools-shown", "20 of 160")
    assert notes(events)[1][1].startswith("get a loan: get_loan, ")
    assert [event for event in events if not isinstance(event, Noted)] == [
        TextDelta("Let me look."),
        *called("get_loan")[:-1],
        Finished("tool_calls", Usage(20, 2)),
    ]
    first, second = model.requests
    assert "get_loan" not in names(first)
    assert set(names(first)) < set(names(second))
    *before, call, result = second.messages
    assert before == list(first.messages)
    assert call["content"] == "Let me look."
    assert result["tool_call_id"] == "c_search_tools"
    assert "get_loan" in str(result["content"])


def test_a_search_is_bounded_and_nothing_of_it_leaves() -> None:
    model = native(*[searched(thing) for thing in THINGS])
    events = heard(routed(model), asking("Cancel my hotel"))
    assert len(model.requests) == 5
    assert ["search_tools" in names(request) for request in model.requests] == [True, True, True, False, False]
    assert not any(isinstance(event, CallStart) for event in events)
    assert events[-1] == Finished("limit", Usage(50, 5))
    assert ("limit-searches", "3 in this reply, and search_tools was called again") in notes(events)


def test_a_model_that_does_not_stop_searching_is_asked_once_more_for_words() -> None:
    model = native(*[searched(f"zzz {i}") for i in range(4)], said("There is none."), said("No."))
    asked = routed(model)
    question = asking("Cancel my hotel")
    events = heard(asked, question)
    assert [request.choice for request in model.requests] == ["auto"] * 4 + ["none"]
    assert ts.collect(events).text == "There is none."
    assert events[-1] == Finished("stop", Usage(50, 5))
    assert ("limit-searches", "3 in this reply, and search_tools was called again") in notes(events)
    told = [message["content"] for message in model.requests[-1].messages if message["role"] == "tool"]
    assert [("Search in other words" in str(text), "No more" in str(text)) for text in told] == [
        (True, False), (True, False), (False, True), (False, True)
    ]  # fmt: skip
    # The next turn shows the model the same searches, so that the beginning of its prompt stays as it is.
    after: list[Message] = [
        *question.messages, {"role": "assistant", "content": "There is none."}, {"role": "user", "content": "And now?"}
    ]  # fmt: skip
    heard(asked, Request(after, TOOLS))
    assert model.requests[-1].messages[: len(model.requests[4].messages)] == model.requests[4].messages


def test_a_demanded_call_that_is_only_searched_for_ends_at_the_limit() -> None:
    model = native(*[searched(f"zzz {i}") for i in range(5)])
    events = heard(routed(model), asking("Cancel my hotel", choice="required"))
    assert len(model.requests) == 4
    assert events[-1] == Finished("limit", Usage(40, 4))


def test_an_endless_search_ends_a_run_in_words_and_says_why() -> None:
    search = '{"tool": "search_tools", "tool_input": {"query": "zzz"}}'
    reply = ts.run("Cancel my hotel", tools=TOOLS, model=Scripted([search], repeat=True))
    assert (reply.text, reply.finish) == ("", "limit")
    assert "limit-searches" in [note.rule for note in reply.notes]
    reply = ts.run("Cancel my hotel", tools=TOOLS, model=Scripted([search] * 4 + ["There is none."]))
    assert (reply.text, reply.finish) == ("There is none.", "stop")
    assert "limit-searches" in [note.rule for note in reply.notes]


def test_a_search_beside_a_call_serves_the_next_turn() -> None:
    both = [*called("cancel_hotel")[:-1], *searched("loan")]
    model = native(both, said("Done"))
    asked = routed(model)
    question = asking("Cancel my hotel")
    events = heard(asked, question)
    assert [event.name for event in events if isinstance(event, CallStart)] == ["cancel_hotel"]
    assert events[-1] == Finished("tool_calls", Usage(10, 1))
    assert len(model.requests) == 1
    answered: list[Message] = [
        *question.messages,
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "another", "type": "function", "function": {"name": "cancel_hotel", "arguments": '{"which":"7"}'}}]},
        {"role": "tool", "tool_call_id": "another", "content": "cancelled"},
    ]  # fmt: skip
    heard(asked, Request(answered, TOOLS))
    assert "get_loan" in names(model.requests[1])


def test_what_is_searched_without_a_query_or_broken_is_answered() -> None:
    nothing = [CallStart("search_tools", "1"), ArgumentsDelta('"loan'), CallEnd(), Finished("tool_calls")]
    model = native(nothing, called("search_tools", query=""), said("Hello"))
    events = heard(routed(model), asking("Cancel my hotel", tools=(*TOOLS, made("list_query", "Run a query."))))
    assert "get_loan" in names(model.requests[1])
    assert "list_query" not in names(model.requests[2])
    assert "No further tool" in str(model.requests[2].messages[-1]["content"])
    assert TextDelta("Hello") in events


def test_text_after_a_search_stands_apart() -> None:
    model = native([TextDelta("One moment."), *searched("loan")], said("Done."))
    events = heard(routed(model), asking("Cancel my hotel"))
    assert ts.collect(events).text == "One moment.\n\nDone."


def test_text_that_must_fit_a_schema_is_only_the_last() -> None:
    model = native([TextDelta("One moment."), *searched("loan")], said('{"a": 1}'))
    events = heard(routed(model), asking("Cancel my hotel", schema={"type": "object"}))
    assert ts.collect(events).text == '{"a": 1}'


def test_a_tool_that_is_not_shown_can_be_called_all_the_same() -> None:
    for model in (native(called("get_loan")), Scripted(['{"tool": "get_loan", "tool_input": {"which": "7"}}'])):
        reply = ts.decide("Cancel my hotel", tools=TOOLS, model=model)
        assert [(call.name, call.arguments) for call in reply.calls] == [("get_loan", {"which": "7"})]
        assert [note.rule for note in reply.notes] == ["tools-shown"]


@pytest.mark.parametrize("dialect", ts.dialects())
def test_a_call_beside_another_to_a_tool_that_is_not_shown_does_not_vanish(dialect: str) -> None:
    calls = [{"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": '{"which":"7"}'}}
             for i, name in enumerate(("cancel_hotel", "get_loan"))]  # fmt: skip
    said: list[Message] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": calls},
    ]
    text = str(ts.render(said, TOOLS, dialect).messages[-1]["content"])
    model = Speaker(Scripted([text]), dialect)
    reply = ts.decide("Cancel my hotel", tools=TOOLS, model=ToolRouter(model, max_tools=3))
    assert [call.name for call in reply.calls] == ["cancel_hotel", "get_loan"]
    assert reply.text == ""


def test_what_leaves_early_closes_the_model() -> None:
    closed: list[str] = []

    class Endless:
        name = "endless"
        capabilities: frozenset[Any] = frozenset({"tools"})

        async def stream(self, request: Request) -> AsyncIterator[Event]:
            try:
                while True:
                    yield TextDelta("a")
            finally:
                closed.append("yes")

    async def main() -> None:
        async with aclosing(routed(Endless()).stream(asking("Cancel my hotel"))) as events:  # type: ignore[type-var]
            async for event in events:
                if event == TextDelta("a"):
                    break

    asyncio.run(main())
    assert closed == ["yes"]


def test_an_error_comes_before_anything_is_told() -> None:
    with pytest.raises(ModelUnreachable):
        heard(routed(native(ModelUnreachable("down"))), asking("Cancel my hotel"))


# ------------------------------------------------------------------ conversations


def test_the_same_tools_are_told_from_turn_to_turn() -> None:
    model = native(searched("get a loan"), called("get_loan"), called("cancel_hotel"), said("Done"), said("Hi"))
    asked = routed(model)
    reply = ts.run("Cancel my hotel", tools=TOOLS, model=asked)
    assert reply.text == "Done"
    first, *later = [request.tools for request in model.requests]
    assert first != later[0]
    assert later == [later[0]] * 3
    assert not any("search_tools" in json.dumps(message) for message in reply.messages)
    ts.run([*reply.messages, {"role": "user", "content": "thanks"}], tools=TOOLS, model=asked)
    assert {"get_loan", "cancel_hotel", "book_hotel"} < set(names(model.requests[-1]))


def turns(model: Model, asked: ToolRouter, *questions: str) -> None:
    """A conversation as a client holds it, who knows of no search."""
    messages: list[Message] = [{"role": "system", "content": "You help."}]
    for question in questions:
        messages.append({"role": "user", "content": question})
        reply = ts.decide(messages, tools=TOOLS, model=asked)
        messages = list(reply.messages)
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "done"} for call in reply.calls]


def beginning(longer: list[Any], shorter: list[Any]) -> bool:
    return longer[: len(shorter)] == shorter


def test_the_beginning_of_what_is_sent_never_changes() -> None:
    model = native(
        said("Hi"),
        [TextDelta("Let me look."), *searched("get a loan")],
        [TextDelta("Here."), *called("get_loan")],
        called("set_tax"),
        searched("recipe"),
        said("Sent"),
        said("Bye"),
        said("Bye"),
    )
    turns(model, routed(model), "hi", "Cancel my hotel", "and now?", "Send an email to the user", "thanks", "bye")
    requests = model.requests
    assert "get_loan" in names(requests[2])
    assert "send_email" in names(requests[4])
    assert "set_tax" in names(requests[-1])
    for before, after in itertools.pairwise(requests):
        assert beginning(names(after), names(before))
        assert beginning(list(after.messages), list(before.messages))
        assert before.late.items() <= after.late.items()


def test_a_prompt_tells_what_was_found_where_it_was_found() -> None:
    texts = [
        '{"tool": "search_tools", "tool_input": {"query": "get a loan"}}',
        '{"tool": "get_loan", "tool_input": {"which": "7"}}',
        "You have it.",
        '{"tool": "cancel_tax", "tool_input": {"which": "7"}}',
        "Done.",
    ]
    model = Scripted(texts)
    turns(model, routed(model), "Cancel my hotel", "So?", "Cancel my taxes", "Well?")
    sent = [[str(message["content"]) for message in request.messages] for request in model.requests]
    assert len(sent) == 5
    for before, after in itertools.pairwise(sent):
        assert beginning(after, before)
    assert '"name": "get_loan"' not in sent[0][0]
    assert any("get_loan" in text and '"which"' in text for text in sent[1][1:])


def test_another_process_shows_what_was_called() -> None:
    model = native(searched("get a loan"), called("get_loan"), said("Bye"))
    first = routed(model)
    reply = ts.decide("Cancel my hotel", tools=TOOLS, model=first)
    messages = [*reply.messages, {"role": "tool", "tool_call_id": reply.calls[0].id, "content": "done"}]
    heard(routed(model), Request(messages, TOOLS))
    assert "get_loan" in names(model.requests[2])
    assert beginning(names(model.requests[2]), names(model.requests[0]))


def test_a_long_conversation_stays_within_bounds() -> None:
    model = native(said("Yes"), repeat=True)
    asked = routed(model)
    turns(model, asked, *(f"{thing} {deed}" for thing in THINGS for deed in ("cancel", "send", "get")))
    counts = [len(names(request)) for request in model.requests]
    assert max(counts) <= 128
    heads = [names(request)[:20] for request in model.requests]
    breaks = sum(before != after for before, after in itertools.pairwise(heads))
    assert breaks < len(heads) / 5


def test_another_conversation_knows_nothing_of_it() -> None:
    model = native(searched("get a loan"), said("Done"), said("Hi"))
    asked = routed(model)
    heard(asked, asking("Cancel my hotel"))
    heard(asked, asking("Cancel my hotel"))
    assert names(model.requests[2]) == names(model.requests[0])


def test_finds_are_bounded() -> None:
    finds = AnsweredCalls(2)
    one = AnsweredRound({"role": "assistant", "content": "x" * 100_000, "tool_calls": []}, (("a",),))
    for i in range(5):
        finds.remember([{"role": "user", "content": str(i)}], "answer", [], [one])
    for i, found in ((0, []), (3, [(("a",),)]), (4, [(("a",),)])):
        answered: list[Message] = [{"role": "user", "content": str(i)}, {"role": "assistant", "content": " answer"}]
        rounds = [one for rounds in finds.recall(answered).values() for one in rounds]
        assert [one.results for one in rounds] == found
        assert all(len(str(one.message)) < 1_000 for one in rounds)


def test_asked_again_in_the_users_place_shows_the_same() -> None:
    model = native(said("No"), called("cancel_hotel"))
    call = ts.call("Cancel my hotel", tools=TOOLS, model=model)
    assert call.name == "cancel_hotel"
    assert names(model.requests[0]) == names(model.requests[1])
    assert len(str(model.requests[1].messages[-1]["content"])) < 1_000


# ------------------------------------------------------------------ definitions in tokens


class Counting(Scripted):
    """A model whose tokens are `times` as many as are estimated; it counts how often it is asked."""

    def __init__(self, name: str, times: float | None, **options: Any) -> None:
        super().__init__([said("Hello")], repeat=True, capabilities=["tools"], **options)
        self.name = name
        self.times = times
        self.asked = 0

    async def count(self, request: Request) -> int | None:
        self.asked += 1
        return None if self.times is None else round(7 + self.times * sum(map(about_tool, request.tools or ())))


LONG = tuple(made(f"t{i}", "word " * 800) for i in range(100))


@pytest.mark.parametrize(("times", "count"), [(None, 8), (1.0, 8), (2.0, 4), (0.5, 16)])
def test_definitions_near_their_bound_are_counted_by_the_model(times: float | None, count: int) -> None:
    model = Counting(f"counts {times}", times)
    for _ in range(2):
        heard(routed(model), asking("word", tools=LONG))
    assert len(names(model.requests[-1])) == count
    assert names(model.requests[0]) == names(model.requests[1])
    assert model.asked == 2


def test_definitions_far_from_their_bound_are_not_counted() -> None:
    model = Counting("counts nothing", 1.0)
    heard(routed(model), asking("Cancel my hotel"))
    assert model.asked == 0


def test_a_server_that_cannot_count_is_estimated() -> None:
    class Broken(Counting):
        async def count(self, request: Request) -> int | None:
            raise ModelUnreachable("down")

    model = Broken("counts not", None)
    heard(routed(model), asking("word", tools=LONG))
    assert len(names(model.requests[0])) == 8


def test_what_would_be_sent_is_counted() -> None:
    model = Counting("counts what is sent", 1.0)
    few, many = (
        asyncio.run(routed(model).count(asking("Cancel my hotel", tools=tools))) for tools in (TOOLS[:20], TOOLS)
    )
    assert few is not None
    assert many is not None
    assert many < 2 * few


# ------------------------------------------------------------------ the verbs


def test_an_index_is_taken_for_its_tools_and_finds_by_its_examples() -> None:
    index = ts.ToolIndex(TOOLS, examples={"get_loan": ["I am broke, help me"]})
    model = native(called("get_loan"), said("Done"))
    reply = ts.run("I am broke", tools=index, model=model)
    assert reply.steps[0].results[0].value == "get_loan 7"
    assert "get_loan" in names(model.requests[0])
    other = native(said("Done"))
    ts.run("I am broke", tools=index, model=ToolRouter(other, max_tools=1, pinned=["send_tax"]))
    assert names(other.requests[0]) == ["get_loan", "send_tax", "search_tools"]


def test_a_text_model_that_is_wrapped_by_hand_is_spoken_for() -> None:
    text = Scripted(['{"tool": "cancel_hotel", "tool_input": {"which": "7"}}'])
    reply = ts.decide("Cancel my hotel", tools=TOOLS, model=ToolRouter(text, max_tools=3))
    assert [call.name for call in reply.calls] == ["cancel_hotel"]
    assert [note.detail for note in reply.notes] == ["3 of 160"]
    assert str(text.requests[0].messages[0]["content"]).count('"name"') == 4


def test_a_box_is_indexed_once() -> None:
    before = len(shown.INDEXES)
    box = ts.Toolbox(*TOOLS)
    for _ in range(3):
        ts.run("Cancel my hotel", tools=box, model=native(said("Done")))
    assert len(shown.INDEXES) <= before + 1


def test_others_on_the_ladder_are_shown_as_much() -> None:
    wrong, right = called("cancel_hotel", which=1), called("cancel_hotel")
    first, other = native(wrong, wrong), native(right)
    reply = ts.decide("Cancel my hotel", tools=TOOLS, model=ToolRouter(first, max_tools=3), reask=[other])
    assert reply.calls[0].name == "cancel_hotel"
    assert len(names(other.requests[0])) == 4


def test_explain_shows_what_is_shown() -> None:
    told = str(ts.explain("Cancel my hotel", tools=TOOLS, model=Scripted(["Hello"])))
    assert '"cancel_hotel"' in told
    assert "search_tools" in told
    assert "get_loan" not in told


def test_without_the_extra_all_are_shown_and_it_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing(*_: Any) -> Any:
        raise MissingExtra("an index of tools needs it: pip install 'toolspeak[search]'")

    monkeypatch.setattr(kept, "ToolIndex", missing)
    monkeypatch.setattr(shown, "INDEXES", Indexes())
    monkeypatch.setattr(shown, "_warned", False)
    model = native(said("Done"), repeat=True)
    for _ in range(2):
        heard(ToolRouter(model, strict=False, indexes=Indexes()), asking("Cancel my hotel"))
    assert len(names(model.requests[0])) == len(TOOLS)
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "toolspeak[search]" in caplog.text
    with pytest.raises(MissingExtra):
        heard(ToolRouter(model, indexes=Indexes()), asking("Cancel my hotel"))


# ------------------------------------------------------------------ indexes


def test_an_index_that_was_given_is_asked_beside_the_loop() -> None:
    threads: list[bool] = []

    class Asking(ts.ToolIndex):
        def search(self, question: str, k: int = 10) -> Any:
            threads.append(threading.current_thread() is threading.main_thread())
            return super().search(question, k)

    model = native(searched("get a loan"), called("get_loan"))
    heard(routed(model, index=Asking(TOOLS)), asking("Cancel my hotel"))
    assert threads == [False] * 2  # once for the question, once for the model's search
    heard(routed(native(said("Hello")), index=Asking(TOOLS[:50])), asking("Cancel my hotel"))
    assert threads == [False] * 2  # an index that lacks some of the tools is not asked


def test_an_index_that_finds_better_ones_which_are_not_offered_finds_what_is() -> None:
    better = [made(f"cancel_hotel_{number}", "Cancel a hotel. " * 5) for number in range(100)]
    index = ts.ToolIndex([*better, *TOOLS])
    assert "cancel_hotel" in shown_for(asking("Cancel my hotel"), index=index)


def test_sets_are_known_again_within_a_bound() -> None:
    async def main() -> None:
        indexes = Indexes(sets=2, tools=400)
        first, again = await asyncio.gather(indexes.of(TOOLS), indexes.of(TOOLS))
        assert first is again
        assert await indexes.of((*TOOLS,)) is first
        anew = tuple(made(tool.name, tool.description) for tool in TOOLS)
        same = await indexes.of(anew)
        assert same.finder is first.finder
        assert same.tools is anew
        await indexes.of(TOOLS[:100])
        assert len(indexes) == 2
        assert await indexes.of(TOOLS) is not first

    asyncio.run(main())


def test_sets_that_say_much_are_kept_within_a_bound() -> None:
    async def main() -> None:
        indexes = Indexes(size=2_900_000)
        sets = [tuple(made(f"tool{at}_{number}", "much " * 2_000) for number in range(10)) for at in range(4)]
        for one in sets:
            await indexes.of(one)
        assert len(indexes) == 2
        kept = await indexes.of(sets[3])
        assert await indexes.of(sets[3]) is kept

    asyncio.run(main())


def test_one_who_waits_for_an_index_and_leaves_takes_it_from_nobody() -> None:
    async def main() -> None:
        indexes = Indexes()
        left = asyncio.create_task(indexes.of(TOOLS))
        await asyncio.sleep(0)
        left.cancel()
        assert (await indexes.of(TOOLS)).places["get_weather"] == 0

    asyncio.run(main())
