"""Question and result into words: the second step of the source document, checked.

The words must carry every number and every string of the result, and no number that neither the result
nor the question holds. A model that cannot manage that does not get to say something wrong: the result
is stated plainly instead.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from ..types import Note, Reply, Request
from .effects import Plan, ask

CONFORMITY = """
Please generate a natural language description based on the following question and answer.
Question: [Content of the question]
Answer: [Content of the answer]
Generated Description: The result of [key phrase from the question] is [answer].
If necessary, you can polish the description.
Only output the Description, with {language} language.
"""
"""The prompt of the source document, to the byte for `language="Chinese"`."""

NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
WORD = re.compile(r"[^\W\d_]{4,}")
LONG = 3
"""A string of more words than this may be said in another order: its words must be there, not its bytes."""


def conclude(question: str, result: Any, language: str = "English", *, tries: int = 2) -> Plan[Reply]:
    """The result in words. `finish` is always stop; a note says `stated-plainly` where the model could not."""
    text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False, default=str)
    asked = f"{CONFORMITY.format(language=language)}\n\nThe question:{question}\nThe answer:{text}"
    messages: list[Any] = [{"role": "user", "content": asked}]
    wrong: list[str] = []
    for _ in range(tries):
        reply = yield from ask(Request(messages=messages, temperature=0, max_tokens=len(text) + 200))
        said = reply.text.strip()
        wrong = faults(question, result, said)
        if said and not wrong:
            return Reply(text=said, notes=reply.notes, usage=reply.usage)
        mend = f"That was not right: {'; '.join(wrong) or 'it was empty'}. Write the description again."
        messages = [*messages, {"role": "assistant", "content": said}, {"role": "user", "content": mend}]
    return Reply(text=plainly(result, language), notes=(Note("stated-plainly", "; ".join(wrong)),))


def faults(question: str, result: Any, said: str) -> list[str]:
    """What is wrong with the words: what of the result is left out, which numbers are made up."""
    heard = said.casefold()
    out: list[str] = []
    known: set[str] = set(_numbers(question))
    for leaf in leaves(result):
        known.update(_numbers(leaf))
        out += [f"{number} is left out" for number in _numbers(leaf) if number not in _numbers(said)]
        if not NUMBER.fullmatch(leaf) and not _carried(leaf, heard):
            out.append(f"{leaf!r} is left out")
    out += [f"{number} is in neither question nor answer" for number in _numbers(said) if number not in known]
    return list(dict.fromkeys(out))


def leaves(value: Any) -> Iterator[str]:
    """Every number and string in a result, as text. A text that is JSON counts as what it holds."""
    if isinstance(value, str):
        try:
            inner = json.loads(value) if value[:1] in "[{" else value
        except ValueError:
            inner = value
        if inner is value:
            yield value
        else:
            yield from leaves(inner)
    elif isinstance(value, Mapping):
        for part in cast("Mapping[Any, Any]", value).values():
            yield from leaves(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in cast("list[Any]", value):
            yield from leaves(part)
    elif (isinstance(value, int | float) and not isinstance(value, bool)) or (
        value is not None and not isinstance(value, bool)
    ):
        yield str(value)


def plainly(result: Any, language: str = "English") -> str:
    """The result stated as it is."""
    found = list(leaves(result))
    if isinstance(result, str) and len(result.split()) > LONG:
        return result
    if isinstance(result, str | int | float) and not isinstance(result, bool):
        return f"The answer is {result}." if language == "English" else str(result)
    if isinstance(result, Mapping) and len(found) == len(cast("Mapping[Any, Any]", result)):
        return ", ".join(f"{key}: {value}" for key, value in cast("Mapping[Any, Any]", result).items())
    return json.dumps(result, ensure_ascii=False, default=str)


def _numbers(text: str) -> list[str]:
    return [number.replace(",", "").removesuffix(".0") for number in NUMBER.findall(text)]


def _carried(leaf: str, heard: str) -> bool:
    wanted = " ".join(leaf.casefold().split()).strip(" .!?,;:")
    if wanted in " ".join(heard.split()):
        return True
    if _latin(leaf) and not _latin(heard):  # said in another script: its words cannot be compared
        return True
    words = WORD.findall(wanted)
    return len(wanted.split()) > LONG and bool(words) and all(word in heard for word in words)


def _latin(text: str) -> bool:
    letters = [c for c in text if c.isalpha()]
    return sum(c < "\u0250" for c in letters) * 2 >= len(letters)
