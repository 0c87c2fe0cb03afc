"""DeepSeek 3.2 and 4, GigaChat 3.5: `<｜DSML｜invoke name=".."><｜DSML｜parameter name=".." string="true">`.

Each value says itself whether it is a string or JSON. They differ in the section's name, and 4.1 has a blank
before every tag's name.
"""

from dataclasses import replace

from ..wire.syntax import NAME, Dialect, Tagged, Thinking, Typed

STRING = Typed('" string="', "true", "false")
TURNS = ("<｜begin▁of▁sentence｜>", "<｜end▁of▁sentence｜>", "<｜User｜>", "<｜Assistant｜>", "<｜System｜>")

DEEPSEEK_DSML = Dialect(
    "deepseek-dsml",
    (
        '<｜DSML｜invoke name="',
        NAME,
        '">\n',
        Tagged('<｜DSML｜parameter name="', '">', "</｜DSML｜parameter>\n", typed=STRING),
        "</｜DSML｜invoke>",
    ),
    open="<｜DSML｜function_calls>\n",
    between="\n",
    close="\n</｜DSML｜function_calls>",
    before="\n\n",
    thinking=Thinking("<think>", "</think>"),
    frame=("<｜end▁of▁sentence｜>",),
    stop=("<｜end▁of▁sentence｜>",),
    control=(*TURNS, "<function_results>", "</function_results>", "｜DSML｜"),
    models=("deepseek-v3.2",),
)

DEEPSEEK_V4 = replace(
    DEEPSEEK_DSML,
    name="deepseek-v4",
    open="<｜DSML｜tool_calls>\n",
    close="\n</｜DSML｜tool_calls>",
    control=(*TURNS, "<tool_result>", "</tool_result>", "｜DSML｜"),
    models=("deepseek-v4",),
)

DEEPSEEK_V41 = replace(
    DEEPSEEK_V4,
    name="deepseek-v4.1",
    call=(
        '<｜DSML｜ invoke name="',
        NAME,
        '">\n',
        Tagged('<｜DSML｜ parameter name="', '">', "</｜DSML｜ parameter>\n", typed=STRING),
        "</｜DSML｜ invoke>",
    ),
    open="<｜DSML｜ calls>\n",
    close="\n</｜DSML｜ calls>",
    models=("deepseek-v4.1",),
)

GIGACHAT35 = replace(
    DEEPSEEK_DSML,
    name="gigachat-3.5",
    call=(
        '<｜GCML｜invoke name="',
        NAME,
        '">\n',
        Tagged('<｜GCML｜parameter name="', '">', "</｜GCML｜parameter>\n", typed=STRING),
        "</｜GCML｜invoke>",
    ),
    open="<｜GCML｜tool_calls>\n",
    close="\n</｜GCML｜tool_calls>",
    frame=("<|message_sep|>",),
    stop=("<|message_sep|>", "</s>"),
    control=("<|message_sep|>", "<|role_sep|>", "<s>", "</s>", "｜GCML｜"),
    models=("gigachat-3.5", "gigachat3.5"),
)
