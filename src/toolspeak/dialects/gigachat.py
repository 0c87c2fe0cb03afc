"""GigaChat 3: a turn of its own for the call, or (3.1) a mark."""

from dataclasses import replace

from ..wire.syntax import Dialect
from ._json import BARE, JSON_CALL

GIGACHAT3 = Dialect(
    "gigachat3",
    ("<|message_sep|>\n\nfunction call<|role_sep|>\n", JSON_CALL),
    forms=BARE,
    thinking=None,
    frame=("</s>",),
    stop=("</s>",),
    control=("<|message_sep|>", "<|role_sep|>", "<s>", "</s>"),
    models=("gigachat3", "gigachat-3", "gigachat-20b"),
)

GIGACHAT31 = replace(
    GIGACHAT3,
    name="gigachat3.1",
    call=("<|function_call|>", JSON_CALL),
    frame=("<|message_sep|>", "</s>"),
    stop=("<|message_sep|>", "</s>"),
    models=("gigachat3.1", "gigachat-3.1"),
)
