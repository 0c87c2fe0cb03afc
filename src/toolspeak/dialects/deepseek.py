"""DeepSeek: V3 and R1 with the arguments in a fence, V3.1 without."""

from dataclasses import replace

from ..wire.syntax import NAME, Dialect, Thinking
from ._json import JSON

CONTROL = (
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁outputs▁end｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
)
FENCED = ("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", NAME, "\n```json\n", JSON, "\n```<｜tool▁call▁end｜>")
PLAIN = ("<｜tool▁call▁begin｜>", NAME, "<｜tool▁sep｜>", JSON, "<｜tool▁call▁end｜>")

DEEPSEEK_V3 = Dialect(
    "deepseek-v3",
    FENCED,
    open="<｜tool▁calls▁begin｜>",
    between="\n",
    close="<｜tool▁calls▁end｜>",
    also=(
        ("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>"),
        ("<｜tool calls begin｜>", "<｜tool calls end｜>"),
        ("<｜tool▁calls｜>", "<｜tool▁calls▁end｜>"),
    ),
    forms=(PLAIN,),
    frame=("<｜end▁of▁sentence｜>",),
    stop=("<｜end▁of▁sentence｜>",),
    control=CONTROL,
    models=("deepseek-v3", "deepseek-r1", "deepseek-chat-v3"),
)

DEEPSEEK_V31 = replace(
    DEEPSEEK_V3,
    name="deepseek-v31",
    call=PLAIN,
    between="",
    also=(),
    forms=(FENCED,),
    thinking=Thinking("<think>", "</think>"),
    models=("deepseek-v3.1", "deepseek-chat-v3.1"),
)
