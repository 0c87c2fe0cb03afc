"""Generates questions from the schemas of tools: most need one known call, every fourth needs none.

No model and no randomness is involved: the sentences use the tools' own words and values from `argument_values`. They
state every value and often its parameter, which people rarely do. So they are easier than real questions: they compare
strategies, and do not measure how well a model will do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import UsageError
from ..schema.check import check
from ..stems import stems
from ..types import Tool
from .argument_values import NoValue, Schema, Value, joined, plain, spoken, value

NO_CALL = "no call"
SHARE = 4
"""One question in so many needs no call."""
LONGEST = 160
"""Characters of a tool's description that are copied into a question."""

TALK = (
    "Good morning!", "How are you doing?", "Thanks, that was a great help.", "Nice to meet you.", "Who are you?",
    "I feel a bit tired.", "Goodbye and good luck!", "Can you cheer me up?", "What a lovely evening!", "Hello there.",
    "I am so happy!", "Sorry, I was away for a moment.",
)  # fmt: skip
FACTS = (
    "Why is the sky blue?", "Who painted the Mona Lisa?", "Which planet has the biggest rings?", "Do fish ever sleep?",
    "What is the plural of mouse?", "Explain photosynthesis in one sentence.", "Write a haiku about autumn.",
    "What does a beaver eat?", "How do bees make honey?", "Who was Napoleon?", "Why do cats purr?", "What rhymes with moon?",
)  # fmt: skip
"""Questions that need no call, used unless one of the tools looks things up."""
LOOKS_UP = re.compile(
    r"\b(?:search|look\w* up|wiki\w*|web|internet|encyclopedia|answers?|questions?|knowledge|ask)", re.IGNORECASE
)
VERBS = frozenset((
    "get", "find", "send", "create", "make", "set", "add", "calculate", "compute", "convert", "search", "book",
    "order", "play", "show", "list", "delete", "remove", "update", "check", "fetch", "return", "look", "tell",
    "give", "start", "stop", "turn", "open", "close", "read", "write", "translate", "generate", "schedule", "plan",
    "buy", "pay", "move", "copy", "rename", "count", "compare", "analyze", "determine", "solve", "provide",
    "retrieve", "estimate", "identify", "predict", "draw", "run", "use",
))  # fmt: skip
"""Verbs with which a description may begin to be used as a request."""


def questions(tools: Sequence[Tool[..., Any]], count: int = 48) -> tuple[list[dict[str, Any]], list[str]]:
    """About `count` cases in the form that `toolspeak eval` reads, and for each tool without cases the reason.

    Raises UsageError if no tool has any.
    """
    if not tools:
        raise UsageError("no tools: expected at least one function, to ask the model for")
    calling = count - count // SHARE
    chosen = tools if len(tools) <= calling else [tools[i * len(tools) // calling] for i in range(calling)]
    cases: list[dict[str, Any]] = []
    without: list[str] = []
    for tool in chosen:
        try:
            cases += _cases_for(tool, max(1, calling // len(chosen)))
        except NoValue as why:
            without.append(f"{tool.name}: {why}")
    if not cases:
        raise UsageError(
            f"no question can be made for these tools: {'; '.join(without)}. Give your own with `cases=` (--cases)"
        )
    words = [*filter(lambda text: _unrelated(text, tools), _texts_without_call(tools))][: count // SHARE]
    return [
        *cases,
        *({"id": f"none-{i}", "group": NO_CALL, "question": text, "calls": []} for i, text in enumerate(words, 1)),
    ], without


def as_lines(cases: Sequence[Mapping[str, Any]]) -> str:
    """Cases as JSON Lines text."""
    return "".join(json.dumps(case, ensure_ascii=False) + "\n" for case in cases)


def _texts_without_call(tools: Sequence[Tool[..., Any]]) -> list[str]:
    """Texts that need no call: small talk and questions about facts, alternating."""
    if any(LOOKS_UP.search(f"{spoken(tool.name)} {tool.description}") for tool in tools):
        return list(TALK)
    return [text for pair in zip(TALK, FACTS, strict=True) for text in pair]


def _unrelated(text: str, tools: Sequence[Tool[..., Any]]) -> bool:
    """Whether the text shares no word with any of the tools."""
    return not any(stems(text) & stems(f"{spoken(tool.name)} {tool.description}") for tool in tools)


# ------------------------------------------------------------------ of one tool


def _cases_for(tool: Tool[..., Any], count: int) -> list[dict[str, Any]]:
    """Up to `count` questions that need a call of the tool. Raises NoValue."""
    cases: dict[str, dict[str, Any]] = {}
    for i in range(count):
        values = _arguments(tool, i)
        text = _sentence(tool, values, i)
        arguments = {name: one.json for name, one in values.items()}
        if problems := check(tool, arguments):
            raise NoValue(f"{problems[0].message}. Give its parameters examples")
        if text not in cases:
            calls = [{"name": tool.name, "arguments": arguments}]
            cases[text] = {"id": f"{tool.name}-{len(cases) + 1}", "group": tool.name, "question": text, "calls": calls}
    return list(cases.values())


def _arguments(tool: Tool[..., Any], i: int) -> dict[str, Value]:
    """The arguments of the `i`-th question: all required ones, and none, one or two of the optional ones in turn."""
    root = tool.parameters
    properties: Mapping[str, Schema] = root.get("properties") or {}
    required = [name for name in properties if name in root.get("required", ())]
    others = [name for name in properties if name not in required]
    start = i // 3
    extra = {others[(start + k) % len(others)] for k in range(i % 3)} if others else set[str]()
    arguments: dict[str, Value] = {}
    for at, name in enumerate(properties):
        if name in required:
            arguments[name] = value(name, properties[name], i + at, root)
        elif name in extra:
            try:
                arguments[name] = _non_default(name, properties[name], i + at, root)
            except NoValue:
                continue  # optional, so the question can do without it
    return arguments


def _non_default(name: str, schema: Schema, i: int, root: Schema) -> Value:
    """A value other than the default, if the schema allows one."""
    default = plain(schema, root).get("default")
    first = value(name, schema, i, root)
    return first if first.json != default else value(name, schema, i + 1, root)


def _sentence(tool: Tool[..., Any], arguments: Mapping[str, Value], i: int) -> str:
    """The request for a call with these arguments, in the `i`-th wording."""
    if i % 4 == 2:
        details = joined([f"{spoken(name)} {one.text}" for name, one in arguments.items()])
        return f"{spoken(tool.name).capitalize()}, please" + (f": {details}." if details else ".")
    wish, left = _fill_in(_request_text(tool), arguments)
    rest = joined([f"{spoken(name)} {arguments[name].text}" for name in left])
    wish += f", with {rest}" if rest else ""
    first, _, more = wish.partition(" ")
    if first.casefold() not in VERBS:
        return (f"I need this: {wish}.", f"Can you help me with this? {wish}.", "", f"Please: {wish}.")[i % 4]
    wish = f"{first.lower()} {more}".strip()
    return (f"{wish[:1].upper()}{wish[1:]}.", f"Could you {wish}?", "", f"I want you to {wish}.")[i % 4]


def _request_text(tool: Tool[..., Any]) -> str:
    """The first sentence of the tool's description, as a request if it begins with a known verb."""
    first = re.split(r"(?<=[^.\s]{2})\.(?:\s|$)|\n", tool.description.strip(), maxsplit=1)[0].strip(" .")
    if not first or len(first) > LONGEST:
        return f"use {spoken(tool.name)}" if not first else first[:LONGEST].rpartition(" ")[0]
    verb, _, rest = first.partition(" ")
    for end in ("s", "es"):
        if verb.casefold().endswith(end) and verb.casefold().removesuffix(end) in VERBS:
            return f"{verb[: -len(end)]} {rest}".strip()
    return first


def _fill_in(wish: str, arguments: Mapping[str, Value]) -> tuple[str, list[str]]:
    """The request with values in place of the phrases that mention them (`in a city` becomes `in Oslo`), and the names
    of the arguments that it does not mention."""
    left: list[str] = []
    for name, one in arguments.items():
        phrase = re.compile(
            rf"\b(?:an?|the|this|your|some)\s+(?:(?:given|specific|certain)\s+)?{re.escape(spoken(name))}\b",
            re.IGNORECASE,
        )
        put = phrase.sub(lambda _, text=one.text: text, wish, count=1)
        if put == wish:
            left.append(name)
        wish = put
    return wish, left
