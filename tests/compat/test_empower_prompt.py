"""`prompt_messages`: the package's bytes over generated conversations, and every case where it does better."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import strategies as st

from peers import peer
from properties import property_test
from toolspeak.compat.empower import prompt_messages
from toolspeak.errors import InvalidTool, UsageError

WEATHER = {
    "name": "get_current_weather",
    "description": "Wetter für “alle”",
    "parameters": {"type": "object", "properties": {"location": {"type": "string"}}, "required": ["location"]},
}
INSTRUCTION = (
    "In this environment you have access to a set of functions defined in the JSON format you can use to address "
    "user's requests, use them if needed."
)
THINKING = "\nMake sure to include your thinking inside < thinking > </thinking > before response."
LISTED = """
Functions:
[
  {
    "name": "get_current_weather",
    "description": "Wetter für “alle”",
    "parameters": {
      "type": "object",
      "properties": {
        "location": {
          "type": "string"
        }
      },
      "required": [
        "location"
      ]
    }
  }
]

User Message:
"""


def user(text: Any) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text}


def called(*functions: Any, content: Any = None) -> dict[str, Any]:
    calls = [{"id": f"c{i}", "type": "function", "function": f} for i, f in enumerate(functions)]
    return {"role": "assistant", "content": content, "tool_calls": calls}


def returned(content: Any, call: str = "c0") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call, "content": content}


CALL = {"name": "get_current_weather", "arguments": '{"location": "Köln"}'}


def test_a_conversation_to_the_byte() -> None:
    conversation = [
        user("Wetter?"),
        called(CALL, {"name": "f", "arguments": {"ü": 1}}),
        returned('{"ü": 75}'),
        returned("cloudy", "c1"),
        said("Cloudy."),
        user("Thanks"),
        user("bye"),
    ]
    told = prompt_messages(conversation, [WEATHER])
    assert [message["role"] for message in told] == ["user", "assistant", "user", "assistant", "user"]
    assert [message["content"] for message in told] == [
        INSTRUCTION + LISTED + "Wetter?",
        '<f>[\n  {\n    "name": "get_current_weather",\n    "arguments": "{\\"location\\": \\"Köln\\"}"\n  },\n'
        '  {\n    "name": "f",\n    "arguments": {\n      "ü": 1\n    }\n  }\n]',
        '<r>[\n  {\n    "value": {\n      "\\u00fc": 75\n    },\n    "tool_call_id": "c0"\n  },\n'
        '  {\n    "value": {\n      "result": "cloudy"\n    },\n    "tool_call_id": "c1"\n  }\n]',
        "<c>Cloudy.",
        "<u>Thanks\n\nbye",
    ]


def test_the_opening() -> None:
    assert prompt_messages([user("x")], [WEATHER], True)[0]["content"] == INSTRUCTION + THINKING + LISTED + "x"
    own = [{"role": "system", "content": "Be short."}, user("x")]
    assert prompt_messages(own, [WEATHER])[0]["content"] == "Be short." + LISTED + "x"


def test_without_functions() -> None:
    first = {**user("x"), "name": "ann"}
    for functions in (None, []):
        assert prompt_messages([first, said("y"), user("z")], functions) == [first, said("<c>y"), user("<u>z")]
    with pytest.raises(UsageError, match=r"^Currently thinking mode is only supported with tools\. Please provide"):
        prompt_messages([first], None, include_thinking=True)


@pytest.mark.parametrize(
    ("content", "value"),
    [
        ("75", "75"),
        (None, '{\n      "result": null\n    }'),
        ([1], '{\n      "result": [\n        1\n      ]\n    }'),
        ("", '{\n      "result": ""\n    }'),
    ],
)
def test_what_tools_returned(content: Any, value: str) -> None:
    told = prompt_messages([user("x"), called(CALL), returned(content)], None)
    assert told[-1]["content"] == f'<r>[\n  {{\n    "value": {value},\n    "tool_call_id": "c0"\n  }}\n]'


def test_a_user_between_tools_starts_a_new_group() -> None:
    told = prompt_messages([user("x"), called(CALL), returned("1"), user("y"), returned("2")], None)
    assert [message["content"][:3] for message in told] == ["x", "<f>", "<r>", "<u>", "<r>"]


SAME_ERRORS: list[tuple[list[Any], str]] = [
    ([user("x"), said("a"), said("b")], "Consecutive assistant messages are not allowed"),
    ([user("x"), {"role": "system", "content": "s"}], "Invalid role"),
    ([user("x"), {"role": "function", "content": "s"}], "Invalid role"),
    ([user("x"), {"content": "s"}], "Invalid role"),
    ([user("x"), {"role": "tool", "tool_call_id": "c"}], '"content" must be provided for message with role "tool"'),
    ([user("x"), {"role": "tool", "content": "1"}], '"tool_call_id" must be provided for message with role "tool"'),
    ([user("x"), returned("1", "")], '"tool_call_id" must be provided for message with role "tool"'),
    ([{"role": "user"}], '"content" must be provided for message with role "user"'),
    (
        [user("x"), {"role": "assistant"}],
        'Either "content" or "tool_calls" must be provided message with role "assistant"',
    ),
    ([user("x"), {"role": "assistant", "tool_calls": {}}], "Tool calls must be an array"),
    ([user("x"), {"role": "assistant", "tool_calls": [1]}], "Tool call must be an object"),
    ([user("x"), {"role": "assistant", "tool_calls": [{}]}], '"id" must be provided for tool call'),
    ([user("x"), {"role": "assistant", "tool_calls": [{"id": 1}]}], '"function" must be provided for tool call'),
    ([user("x"), called(1)], "Tool call function must be an object"),
    ([user("x"), called({})], '"name" must be provided for the function in tool call'),
    ([user("x"), called({"name": "f"})], '"arguments" must be provided for the function in tool call'),
]


@pytest.mark.parametrize(("messages", "says"), SAME_ERRORS)
def test_errors_say_what_the_package_says(messages: list[Any], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        prompt_messages(messages, None)
    assert str(caught.value) == says
    assert caught.value.__notes__[0].startswith(f"messages[{len(messages) - 1}]: ")
    if "role" in messages[-1]:  # without one the package stops at a KeyError or says the same
        with pytest.raises(Exception, match=r".") as theirs:
            peer("empower_functions", "prompt").prompt_messages(copy.deepcopy(messages), None)
        assert str(theirs.value) == says


# ------------------------------------------------------------------ the package's bytes, generated

TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), min_size=1, max_size=12)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
FUNCTIONS = st.fixed_dictionaries({"name": TEXTS, "arguments": JSON | TEXTS}, optional={"extra": JSON})
CALLS = st.lists(
    st.fixed_dictionaries({"id": TEXTS, "function": FUNCTIONS}, optional={"type": st.just("function")}), max_size=3
)
USER = st.builds(user, TEXTS)
TOOL = st.builds(returned, JSON | TEXTS | st.just('{"a": [1, "ü"]}') | st.just("75"), TEXTS)
ASSISTANT = (
    st.builds(said, TEXTS)
    | st.fixed_dictionaries(
        {"role": st.just("assistant"), "tool_calls": CALLS}, optional={"content": st.sampled_from([None, ""])}
    )
    | st.fixed_dictionaries({"role": st.just("assistant"), "content": TEXTS, "tool_calls": st.just([])})
)
PARAMETERS = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.dictionaries(TEXTS, JSON, max_size=2)},
    optional={"required": st.lists(TEXTS, max_size=2), "strict": st.booleans()},
)
DEFINITIONS = st.lists(
    st.fixed_dictionaries(
        {"name": TEXTS, "description": TEXTS, "parameters": PARAMETERS}, optional={"strict": st.booleans()}
    ),
    max_size=2,
)


@st.composite
def conversations(draw: st.DrawFn) -> list[dict[str, Any]]:
    messages = [draw(USER)]
    for message in draw(st.lists(USER | TOOL | ASSISTANT, max_size=6)):
        if message["role"] != "assistant" or messages[-1]["role"] != "assistant":
            messages.append(message)
    return messages


@property_test(100, conversations(), DEFINITIONS, st.booleans(), st.none() | TEXTS)
def test_the_bytes_are_the_packages(
    messages: list[dict[str, Any]], functions: list[dict[str, Any]], thinking: bool, system: str | None
) -> None:
    thinking = thinking and bool(functions)
    if system is not None and functions and not thinking:  # the rest is done better: see below
        messages = [{"role": "system", "content": system}, *messages]
    theirs = peer("empower_functions", "prompt").prompt_messages(copy.deepcopy(messages), functions, thinking)
    assert prompt_messages(messages, functions, thinking) == theirs


@property_test(100, conversations(), DEFINITIONS)
def test_nothing_that_was_given_is_changed(messages: list[dict[str, Any]], functions: list[dict[str, Any]]) -> None:
    before = copy.deepcopy((messages, functions))
    for message in prompt_messages(messages, functions):
        message["content"] = "changed"
    assert (messages, functions) == before


# ------------------------------------------------------------------ better than the package


def test_two_users_in_a_row_leave_the_callers_messages_alone() -> None:
    messages = [user("a"), user("b")]
    assert prompt_messages(messages, None) == [user("a\n\nb")]
    assert messages == [user("a"), user("b")]
    peer("empower_functions", "prompt").prompt_messages(messages, None)
    assert messages[0] == user("a\n\nb")


def test_a_system_message_is_kept_without_functions() -> None:
    messages = [{"role": "system", "content": "Be short."}, user("x"), said("y")]
    assert prompt_messages(messages, None) == [user("Be short.\n\nx"), said("<c>y")]
    assert peer("empower_functions", "prompt").prompt_messages(messages, None) == [user("x"), said("<c>y")]


def test_a_system_message_does_not_swallow_the_wish_for_thinking() -> None:
    messages = [{"role": "system", "content": "Be short."}, user("x")]
    assert prompt_messages(messages, [WEATHER], True)[0]["content"] == "Be short." + THINKING + LISTED + "x"
    theirs = peer("empower_functions", "prompt").prompt_messages(messages, [WEATHER], True)
    assert theirs[0]["content"] == "Be short." + LISTED + "x"


def test_a_text_beside_calls_does_not_swallow_them() -> None:
    thought = "<thinking>Look it up.</thinking>"
    told = prompt_messages([user("x"), called(CALL, content=thought), returned("1")], None)
    assert told[1]["content"].startswith(thought + '<f>[\n  {\n    "name": "get_current_weather"')
    theirs = peer("empower_functions", "prompt").prompt_messages([user("x"), called(CALL, content=thought)], None)
    assert theirs[1]["content"] == "<c>" + thought


def test_messages_as_client_libraries_dump_them() -> None:
    dumped = {"role": "assistant", "content": "y", "tool_calls": None, "refusal": None}
    assert prompt_messages([user("x"), dumped], None)[1] == said("<c>y")
    with pytest.raises(Exception, match=r"^Tool calls must be an array$"):
        peer("empower_functions", "prompt").prompt_messages([user("x"), dumped], None)
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert prompt_messages([user(parts), said(parts)], None) == [user("ab"), said("<c>ab")]
    with pytest.raises(UsageError, match="a list of text parts") as caught:
        prompt_messages([user([{"type": "image_url"}])], None)
    assert caught.value.__notes__[0].startswith("messages[0]")


def test_an_empty_reply_is_a_reply() -> None:
    assert prompt_messages([user("x"), said("")], None)[1] == said("<c>")
    with pytest.raises(KeyError, match="tool_calls"):
        peer("empower_functions", "prompt").prompt_messages([user("x"), said("")], None)
    with pytest.raises(UsageError, match=r'^Either "content" or "tool_calls"'):
        prompt_messages([user("x"), said(None)], None)


def test_functions_in_openais_wrapper() -> None:
    wrapped = [{"type": "function", "function": WEATHER}]
    assert prompt_messages([user("x")], wrapped) == prompt_messages([user("x")], [WEATHER])


def without(key: str) -> dict[str, Any]:
    return {k: v for k, v in WEATHER.items() if k != key}


def having(**parameters: Any) -> dict[str, Any]:
    return {**WEATHER, "parameters": parameters}


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (without("name"), "Function name must be provided"),
        (without("description"), "Function description must be provided"),
        (without("parameters"), "Function parameters must be provided"),
        (having(), "Function parameters type must be provided"),
        (having(type="array"), "Function parameters type must be object"),
        (having(type="object"), "Function parameters properties must be provided"),
        (having(type="object", properties=[]), "Function parameters properties must be an object"),
        (having(type="object", properties={}, required="a"), "Function parameters required must be an array"),
    ],
)
def test_what_is_wrong_with_a_function_is_said(function: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidTool) as caught:
        prompt_messages([user("x")], [WEATHER, function])
    assert str(caught.value) == says
    assert caught.value.path == "functions_def[1]"
    with pytest.raises(TypeError, match="exceptions must derive from BaseException"):
        peer("empower_functions", "prompt").prompt_messages([user("x")], [function])


def test_no_user_message_at_all() -> None:
    with pytest.raises(UsageError, match=r"^Messages cannot be empty$"):
        prompt_messages([], None)
    with pytest.raises(UsageError, match=r"^At least user message must be provided$"):
        prompt_messages([{"role": "system", "content": "s"}], None)


def test_an_assistant_that_begins_is_not_taken_for_the_user() -> None:
    told = prompt_messages([said("Hello!"), user("x")], [WEATHER])
    assert told == [user(INSTRUCTION + LISTED), said("<c>Hello!"), user("<u>x")]
    assert prompt_messages([said("Hello!"), user("x")], None) == [said("<c>Hello!"), user("<u>x")]
    theirs = peer("empower_functions", "prompt").prompt_messages([said("Hello!"), user("x")], [WEATHER])
    assert theirs[0]["content"] == INSTRUCTION + LISTED + "Hello!"
    with pytest.raises(UsageError, match="cannot begin with what a tool returned"):
        prompt_messages([returned("1")], None)
