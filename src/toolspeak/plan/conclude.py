"""Turns a question and a tool's result into a sentence (`conclude`), and checks the sentence against the result.

If a model's sentences fail the check of `plan.faithful`, the result is stated plainly instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ..schema.nonblocking_json import loads_or
from ..types import Note, Reply, Request, Usage
from ..wire.prompt.control_markers import cleaner, restore
from ..wire.prompt.known_markers import control_markers
from ..wire.reading.collect import add_usage
from .effects import Plan, ask
from .faithful import faults

CONFORMITY = """
Please generate a natural language description based on the following question and answer.
Question: [Content of the question]
Answer: [Content of the answer]
Generated Description: The result of [key phrase from the question] is [answer].
If necessary, you can polish the description.
Only output the Description, with {language} language.
"""
"""The prompt of the source document, to the byte for `language="Chinese"`."""

LONGEST = 2000
"""A result with more characters is stated plainly; no model is asked to repeat all of it."""


def conclude(question: str, result: Any, language: str = "English", *, tries: int = 2) -> Plan[Reply]:
    """The result in sentences, with every number and string of the result and no other number.

    A note `stated-plainly` says that the model could not write them.
    """
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    value = read(result)
    prompt = f"{CONFORMITY.format(language=language)}\n\nThe question:{question}\nThe answer:{text}"
    clean = cleaner(control_markers(None), [])  # the prompt has no markers of its own, so any in the texts are defused
    messages: list[Any] = [{"role": "user", "content": clean(prompt)}]
    wrong = ["there is nothing to say"] if value in (None, "", [], {}) else []
    wrong = ["the result is too long to say again"] if len(text) > LONGEST else wrong
    usage = Usage()
    for _ in range(0 if wrong else tries):
        reply = yield from ask(Request(messages=messages, temperature=0, max_tokens=len(text) + 200))
        usage = add_usage(usage, reply.usage)
        summary = restore(reply.text).strip()
        # A weak model answers and then rambles on: only the first paragraph counts.
        first = summary.partition("\n\n")[0]
        summary = summary if faults(question, value, first, language) else first
        problems = faults(question, value, summary, language)
        if summary and not problems:
            return Reply(text=summary, notes=reply.notes, usage=usage)
        wrong = problems or ["it was empty"]
        mend = f"That was not right: {'; '.join(wrong)}. Write the description again."
        messages = [
            *messages,
            {"role": "assistant", "content": clean(summary)},
            {"role": "user", "content": clean(mend)},
        ]
    return Reply(text=plainly(result, language), notes=(Note("stated-plainly", "; ".join(wrong)),), usage=usage)


def read(result: Any) -> Any:
    """The value of a result: a text that is JSON is parsed."""
    if not isinstance(result, str):
        return result
    value = loads_or(result, result)
    return result if isinstance(value, str) else value


def plainly(result: Any, language: str = "English") -> str:
    """The result stated plainly, for people."""
    value = read(result)
    english = language == "English"
    if value is None:
        return "Done: there is no result." if english else "null"
    if isinstance(value, bool | int | float):
        text = str(result) if isinstance(result, str) else json.dumps(value)
        answer = {True: "yes", False: "no"}[value] if isinstance(value, bool) else text
        return f"The answer is {answer}." if english else text
    if isinstance(value, str):
        return _sentence(value, english)
    if value in ([], {}):
        return "The result is empty." if english else json.dumps(value)
    if (message := _error_in(value)) is not None:
        return f"That did not work: {message}" if english else message
    return "\n".join(_lines(value)) if not _flat(value) else ", ".join(_lines(value))


def _error_in(value: Any) -> str | None:
    """The message of a result that is only an error."""
    if not isinstance(value, Mapping) or list(cast("Mapping[str, Any]", value)) != ["error"]:
        return None
    error = cast("Mapping[str, Any]", value)["error"]
    return str(cast("Mapping[str, Any]", error).get("message", error) if isinstance(error, Mapping) else error)


def _sentence(text: str, english: bool) -> str:
    if not text.strip():
        return "The result is empty." if english else '""'
    # A longer text needs no sentence around it; a word or two does.
    return f"The answer is {text}." if english and len(text.split()) <= 3 and text[-1].isalnum() else text


def _flat(value: Any) -> bool:
    parts: Any = value.values() if isinstance(value, Mapping) else value  # pyright: ignore[reportUnknownVariableType,reportUnknownMemberType]
    return not any(isinstance(part, Mapping | list | tuple | set) for part in parts)


def _lines(value: Any, path: str = "") -> Iterator[str]:
    """A mapping or list as lines `path: value`, one for each leaf."""
    if isinstance(value, Mapping):
        for key, part in cast("Mapping[Any, Any]", value).items():
            yield from _lines(part, f"{path} {key}".strip())
    elif isinstance(value, list | tuple | set | frozenset):
        rows = list(cast("list[Any]", value))
        flat = _flat(rows)
        for i, part in enumerate(rows, 1):
            yield from _lines(part, path if flat else f"{path} {i}".strip())
    else:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        yield f"{path}: {text}" if path else text
