"""GigaChat 3: the call is a turn of its own, or (3.1) follows a marker."""

from dataclasses import replace

from ..wire.dialect import RESULT, Dialect, Layout, Results, Speech
from ._json import BARE, JSON_CALL

CONTROL = ("<|message_sep|>", "<|role_sep|>", "<|function_call|>", "<s>", "</s>")

GIGACHAT3 = Dialect(
    "gigachat3",
    ("<|message_sep|>\n\nfunction call<|role_sep|>\n", JSON_CALL),
    forms=BARE,
    thinking=None,
    frame=("<|message_sep|>", "</s>"),
    stop=("</s>",),
    control=CONTROL,
    models=("gigachat-3", "gigachat-20b"),
    speech=Speech(native_results=Results("function result", (RESULT,), grouped=False)),
    layout=Layout(("", "<|role_sep|>\n"), "<|message_sep|>\n\n", bos="<s>", strip=False),
)

GIGACHAT31 = replace(
    GIGACHAT3,
    name="gigachat3.1",
    call=("<|function_call|>", JSON_CALL),
    stop=("<|message_sep|>", "</s>"),
    models=("gigachat-3.1",),
)
