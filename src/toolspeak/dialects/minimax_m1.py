"""MiniMax M1: one object per line between `<tool_calls>` tags."""

from ..wire.dialect import RESULT, TOOLS, Dialect, Results, Speech, ToolJson
from ._json import BARE, JSON_CALL

MINIMAX_M1 = Dialect(
    "minimax-m1",
    (JSON_CALL,),
    open="<tool_calls>\n",
    between="\n",
    close="\n</tool_calls>",
    before="\n",
    forms=BARE,
    stop=("<end_of_sentence>",),
    control=("<begin_of_document>", "<beginning_of_sentence>", "<end_of_sentence>"),
    models=("minimax-m1", "minimax-text-01", "minimax-01"),
    speech=Speech(
        opening=(
            "You are provided with these tools:\n<tools>\n",
            TOOLS,
            "\n</tools>\n\nIf you need to call tools, please respond with <tool_calls></tool_calls> XML tags, and provide"
            ' tool-name and json-object of arguments, following the format below:\n<tool_calls>\n{"name": <tool-name>,'
            ' "arguments": <args-json-object>}\n...\n</tool_calls>',
        ),
        tools=ToolJson(wrapped=True, lines=True),
        results=Results("user", ("tool result: ", RESULT), between="\n\n"),
    ),
)
