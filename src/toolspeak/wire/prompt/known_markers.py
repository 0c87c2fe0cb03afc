"""The control markers of all known families, of a dialect, and of a chat template.

A shape is a pattern of a marker, written with characters, classes, counts and groups of words only, so that `beginning`
can derive what a text may end with if the next text completes the marker.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import lru_cache
from typing import Any, cast

from ..dialect import Dialect
from ..marker_forms import BREAKABLE, LABEL, SYMBOL

SHAPES = (r"<\|[^\s<>|]{1,60}\|>", r"<｜[^\s<>]{1,60}｜>", r"\[unused\d{1,3}\]")
"""How most families write control tokens: these are markers in any dialect."""
WELL_KNOWN = (
    *("[INST]", "[/INST]", "<<SYS>>", "<</SYS>>", "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[SYSTEM_PROMPT]"),
    *("[/SYSTEM_PROMPT]", "[TOOL_CALLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]"),
    *("<start_of_turn>", "<end_of_turn>", "<tool_call>", "</tool_call>", "<tool_response>"),
    *("</tool_response>", "<function_calls>", "</function_calls>", "<think>", "</think>"),
)
"""Other markers that no text has by chance, and that a server's template may know."""
ALSO_SHAPES = (
    *(r"<\|[^\s<>]{1,60}\|>", r"<\|[A-Za-z_:]{1,60}>", r"<[A-Za-z_:]{1,60}\|>", r"\[\|[a-z_]{2,30}\|\]"),
    *(r"</?[a-z]{2,12}:(?:tool_call|think|bos|eos|pad)>", r"<(?:start|end|begin|beginning)_of_[a-z_]{2,30}>"),
    *(r"<(?:SPECIAL_|extra_id_|reserved|reserved_|unused|dummy|custom_token_)\d{1,5}>", r"<[BCH]_[A-Z]{1,4}>"),
    *(r"<(?:image|audio|video)_soft_token>", r"<fim[-_][a-z]{3,8}>", r"<(?:BOS|EOS|PAD|UNK|EOP|MASK)_TOKEN>"),
    *(r"<[bes]o[a-z]>", r"<role>[A-Z]{2,12}</role>", r"<\[[^\s<>\[\]]{2,60}\]>", r"\[(?:UNUSED_TOKEN_|PAD)\d{1,6}\]"),
    *(r"\]<\][a-z]{2,12}\[>\[", r"｜[A-Z]{4,4}｜", r"</?｜{1,2}[A-Z]{4,4}｜{1,2}[a-z_]{1,30}>?"),
)
ALSO_KNOWN = (
    *("<s>", "</s>", "<pad>", "<unk>", "<mask>", "<sep>", "<cls>", "<eosys>", "<BOS>", "<EOS>", "<PAD>", "<UNK>"),
    *("<CLS>", "<SEP>", "<MASK>", "<EOT>", "<PRE>", "<SUF>", "<MID>", "<longcat_s>", "</longcat_s>", "<escape>"),
    *("<tool_sep>", "<_start>", "<_end>", "<_system>", "<_user>", "<_bot>", "<_observation>", "<用户>", "<AI>"),
    *(
        "<im_start>",
        "<im_end>",
        "<im_patch>",
        "<im_col>",
        "<IMG_CONTEXT>",
        "<image_placeholder>",
        "<audio_placeholder>",
    ),
    *("<fake_token_around_image>", "<global-img>", "<file_sep>", "<repo_name>", "<reponame>", "<gh_stars>"),
    *("<issue_start>", "<issue_comment>", "<issue_closed>", "<jupyter_start>", "<jupyter_text>", "<jupyter_code>"),
    *("<jupyter_output>", "<jupyter_script>", "<empty_output>", "<commit_before>", "<commit_msg>", "<commit_after>"),
    *("<turn|>", "<channel|>", "<tool|>", "<tool_call|>", "<tool_response|>", "<image|>", "<audio|>"),
    *("<seed:tool_call>", "</seed:tool_call>", "<seed:think>", "</seed:think>", "<seed:bos>", "<seed:eos>"),
    *("<mm:think>", "</mm:think>"),
    *("<tool_calls>", "</tool_calls>", "<tool_responses>", "</tool_responses>", "<tool_result>", "</tool_result>"),
    *("<start_function_call>", "<end_function_call>", "<start_function_response>", "<end_function_response>"),
    *("<start_function_declaration>", "<end_function_declaration>"),
    *("[BOS]", "[EOS]", "[gMASK]", "[sMASK]", "[MASK]", "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[EOT]"),
    *("[start_header_id]", "[end_header_id]", "[@BOS@]", "[multimodal]", "[AUDIO]", "[BEGIN_AUDIO]", "[TRANSCRIBE]"),
    *("[THINK]", "[/THINK]", "[ARGS]", "[CALL_ID]", "[TOOL_CONTENT]"),
    *("[IMG]", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]", "[MODEL_SETTINGS]", "[/MODEL_SETTINGS]"),
    *("[BEGIN FINAL RESPONSE]", "[END FINAL RESPONSE]"),
    *("]~b]", "]~!b[", "[e~[", "｜DSML｜"),
)
"""Tokens of some families that a text may have by chance, as HTML or as a placeholder. They are defused, since the
tokenizer of the prompt is unknown, but they are no reason to reject a definition."""
TAG = re.compile(
    r"<[^\s<>\[\]]*[^\W\d_][^\s<>\[\]]*>?|<\][^\s<>]+\[>|<\|[^\s<>]*>|\[/?[A-Z][A-Z_]+\]|\[/?[A-Z][A-Z ]+ [A-Z]+\]"
)
"""A marker inside a literal of a dialect: a tag or its beginning, or capital letters in brackets."""
IN_TEMPLATE = re.compile(
    r"</?[A-Za-z]{0,30}(?:think|[_:])[A-Za-z_:]{0,60}>|\[/?[A-Z][A-Z_]{2,60}\]|<\|[a-z_]{1,60}>|<[a-z_]{1,60}\|>"
)
"""A marker in the source of a chat template, besides the shapes."""
OPENER = re.compile(rf"{SYMBOL}{{2,}}")
"""The first word of a call, or of its section, that is a marker without letters."""
WORD = re.compile(rf"(?<!\S)(?!<|\]|\[/?[A-Z]){SYMBOL}+/?\w\S*")
"""A marker inside a literal that is a word with a symbol before it; `TAG` has those with `<`."""
HEAD = re.compile(r"\\?.(?:/\?|\[[^\]]+\](?:\{\d+,\d+\})?)*\\?.(?:\{\d+,\d+\})?")
"""The bracket of a shape, any classes, and the first character that is no class."""
ATOM = re.compile(r"(\\.|\[(?:\\.|[^\]\\])+\]|.)(\{\d+,\d+\}|\?)?")
"""A character or class of a shape, and how many of it."""
GROUP = re.compile(r"\(\?:([^)]*)\)")
MINIMUM = re.compile(r"\{\d+")


def beginning(shape: str) -> str:
    """A pattern for the incomplete beginnings of a shape's markers: a bracket, and at least the first character of the
    shape that is no class. So what every tag begins with, such as `<div`, is none."""
    if group := GROUP.search(shape):
        words = group[1].split("|")
        return "|".join(beginning(shape[: group.start()] + word + shape[group.end() :]) for word in words)
    at = next(HEAD.finditer(shape)).end()
    rest = ""
    for atom, times in reversed(ATOM.findall(shape[at:])):
        rest = f"(?:{atom}{MINIMUM.sub('{1', times)}{rest})?"
    return shape[:at] + rest


def control_markers(
    d: Dialect | None, template: str | None = None, variables: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """The strings that must never reach a model intact in text from outside: those of the dialect, of the template, of
    any known family, and the values of variables such as bos_token."""
    special = tuple(v for k, v in (variables or {}).items() if k.endswith("_token") and isinstance(v, str))
    return _markers(d, template or "", special)


@lru_cache(256)
def _markers(d: Dialect | None, template: str, special: tuple[str, ...]) -> tuple[str, ...]:
    own = (*(_of_dialect(d) if d else ()), *_of_template(template), *filter(BREAKABLE.fullmatch, special))
    return tuple(dict.fromkeys((*WELL_KNOWN, *ALSO_KNOWN, *own)))


@lru_cache(256)
def _of_dialect(d: Dialect) -> tuple[str, ...]:
    shortened = replace(d, fences=(), models=(), speech=replace(d.speech, opening=(), system=""))
    whole = [unemphasized(word.strip()) for word in (*d.control, *d.frame, *d.stop)]
    literals = list(_literals(shortened))
    labels = [*filter(LABEL.fullmatch, whole)]
    if labels:  # also those of a call
        labels += filter(LABEL.fullmatch, map(str.strip, literals))
    tags = (m for word in literals for m in TAG.findall(word) if len(m) > 2)
    return tuple(dict.fromkeys((*filter(BREAKABLE.fullmatch, whole), *labels, *_words(d), *tags)))


def _words(d: Dialect) -> Iterator[str]:
    """The markers of calls, thoughts and turns that are no tags: their first words, and words with a symbol."""
    header = replace(d.header, routes=()) if d.header else None
    for text in (d.open, d.call[0], header.start if header else ""):
        yield from filter(OPENER.fullmatch, text.split()[:1] if isinstance(text, str) else ())
    for text in _literals((d.open, d.close, d.call, d.forms, d.also, d.items, header, d.thinking, d.layout)):
        yield from WORD.findall(text)


@lru_cache(64)
def _of_template(template: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(IN_TEMPLATE.findall(template)))


def unemphasized(word: str) -> str:
    """The label in a word like `**Action:**`: labels are recognized whatever Markdown's marks are around them."""
    label = word.replace("**", "")
    return label if LABEL.fullmatch(label.strip()) else word


def _literals(value: object) -> Iterator[str]:
    """Every text in a dialect's value, except its name and its defaults for reading."""
    if isinstance(value, str):
        yield unemphasized(value)
    elif isinstance(value, tuple):
        for item in cast("tuple[object, ...]", value):
            yield from _literals(item)
    elif is_dataclass(value) and not isinstance(value, type):
        for f in fields(value):
            if f.name not in ("name", "origin"):
                yield from _literals(getattr(value, f.name))
