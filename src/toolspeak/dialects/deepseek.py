"""DeepSeek: V3 and R1 write the arguments in a code fence, V3.1 without one."""

from dataclasses import replace

from ..wire.dialect import ARGS, NAME, RESULT, TEXT, TOOLS, Dialect, Part, Results, Speech, Thinking, ToolJson, ToolRows
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
SPELLINGS = (("_", "｜"), (" ", "｜"), ("\\_", "｜"), ("▁", "|"), ("_", "|"))
"""What distilled models, and servers that do not strip the markers, write in place of `▁` and `｜`."""


def _spelled(parts: tuple[Part, ...], space: str, bar: str) -> tuple[Part, ...]:
    return tuple(part.replace("▁", space).replace("｜", bar) if isinstance(part, str) else part for part in parts)


BEGIN, END = "<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"
FENCED = ("<｜tool▁call▁begin｜>function<｜tool▁sep｜>", NAME, "\n```json\n", JSON, "\n```<｜tool▁call▁end｜>")
BARE = ("function<｜tool▁sep｜>", *FENCED[1:])
PLAIN = ("<｜tool▁call▁begin｜>", NAME, "<｜tool▁sep｜>", JSON, "<｜tool▁call▁end｜>")
SECTIONS = tuple(
    (BEGIN.replace("▁", space).replace("｜", bar), END.replace("▁", space).replace("｜", bar))
    for space, bar in SPELLINGS
)
SPELLED = tuple(_spelled(call, *spelling) for spelling in SPELLINGS for call in (FENCED, PLAIN))
"""The sections and the calls in other spellings."""

RESULTS = Results(
    "user",
    ("<｜tool▁output▁begin｜>", RESULT, "<｜tool▁output▁end｜>"),
    open="<｜tool▁outputs▁begin｜>",
    close="<｜tool▁outputs▁end｜>",
)

DEEPSEEK_V3 = Dialect(
    "deepseek-v3",
    FENCED,
    open=BEGIN,
    between="\n",
    close=END,
    also=(*SECTIONS, ("<｜tool▁calls｜>", END)),
    forms=(PLAIN, BARE, *SPELLED),
    frame=("<｜end▁of▁sentence｜>",),
    stop=("<｜end▁of▁sentence｜>",),
    control=CONTROL,
    models=(
        *("deepseek-v3", "deepseek-r1", "deepseek-chat-v3"),
        *("cogito-v2-preview-deepseek", "cogito-v2.1", "cogito-671b"),  # made from DeepSeek's
    ),
    thinkers=("deepseek-r1",),
    speech=Speech(
        opening=(
            "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with"
            " function signatures within <tools></tools> XML tags:\n<tools>\n",
            TOOLS,
            "\n</tools>\n\nFor function call returns, you should first print <｜tool▁calls▁begin｜>For each function"
            " call, you should return object like:\n<｜tool▁call▁begin｜>function<｜tool▁sep｜><function_name>\n```json\n"
            "<function_arguments_in_json_format>\n```<｜tool▁call▁end｜>At the end of function call returns, you should"
            " print <｜tool▁calls▁end｜><｜end▁of▁sentence｜>",
        ),
        tools=ToolJson(wrapped=True, lines=True),
        results=RESULTS,
    ),
)

DEEPSEEK_V31 = replace(
    DEEPSEEK_V3,
    name="deepseek-v31",
    call=PLAIN,
    between="",
    also=SECTIONS,
    forms=(FENCED, *SPELLED),
    thinking=Thinking("<think>", "</think>"),
    models=("deepseek-v3.1", "deepseek-chat-v3.1", "deepseek-v3.2-exp", "deepseek.v3-v1"),  # the last on Bedrock
    speech=Speech(
        opening=(
            "## Tools\nYou have access to the following tools:\n\n",
            TOOLS,
            "\n\nIMPORTANT: ALWAYS adhere to this exact format for tool use:\n<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>"
            "tool_call_name<｜tool▁sep｜>tool_call_arguments<｜tool▁call▁end｜>{additional_tool_calls}"
            "<｜tool▁calls▁end｜>\n\nWhere:\n\n- `tool_call_name` must be an exact match to one of the available tools\n"
            "- `tool_call_arguments` must be valid JSON that strictly follows the tool's Parameters Schema\n- For multiple"
            " tool calls, chain them directly without separators or spaces",
        ),
        tools=ToolRows(("### ", NAME, "\nDescription: ", TEXT, "\n\nParameters: ", ARGS)),
        results=replace(RESULTS, open="", between="", close=""),
    ),
)
