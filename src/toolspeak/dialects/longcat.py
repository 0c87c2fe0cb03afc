"""LongCat Flash: calls as in Hermes between its own markers, or as key and value pairs."""

from ..wire.dialect import ARGS, NAME, RESULT, TEXT, TOOLS, Dialect, Results, Speech, Tagged, Thinking, ToolRows
from ._json import JSON_CALL

PAIR = Tagged("<longcat_arg_key>", "</longcat_arg_key>\n<longcat_arg_value>", "</longcat_arg_value>\n")
PAIRS = ("<longcat_tool_call>", NAME, "\n", PAIR, "</longcat_tool_call>")
OBJECT = ("<longcat_tool_call>\n", JSON_CALL, "\n</longcat_tool_call>")
THINKING = Thinking("<longcat_think>\n", "\n</longcat_think>\n")
CONTROL = ("<longcat_s>", "</longcat_s>", "<longcat_tool_response>", "</longcat_tool_response>")
RESULTS = Results("user", ("<longcat_tool_response>\n", RESULT, "\n</longcat_tool_response>"))

LONGCAT = Dialect(
    "longcat",
    OBJECT,
    before="\n",
    forms=(PAIRS, (JSON_CALL,)),
    thinking=THINKING,
    stop=("</longcat_s>",),
    control=CONTROL,
    models=("longcat",),
    speech=Speech(
        opening=(
            "## Tools\nYou have access to the following tools: \n\n### Tool namespace: function\n\n",
            TOOLS,
            "\n\n**Note**: For each function call, return a json object with function name and arguments within"
            ' <longcat_tool_call></longcat_tool_call> XML tags as follows:\n<longcat_tool_call>\n{"name":'
            ' <function-name>, "arguments": <args-dict>}\n</longcat_tool_call>\nWhen multiple functions need to be'
            " called simultaneously, each function call should be wrapped in its own <longcat_tool_call> tag and placed"
            ' consecutively. For example:\n<longcat_tool_call>\n{"name": <function-name>, "arguments": <args-dict>}\n'
            '</longcat_tool_call><longcat_tool_call>\n{"name": <function-name>, "arguments": <args-dict>}\n'
            "</longcat_tool_call>\n\n",
        ),
        tools=ToolRows(("#### Tool name: ", NAME, "\n\nDescription: ", TEXT, "\n\nInputSchema: \n", ARGS), indent=2),
        results=RESULTS,
    ),
)

LONGCAT_PAIRS = Dialect(
    "longcat-pairs",
    PAIRS,
    between="\n",
    before="\n",
    forms=(OBJECT,),
    thinking=THINKING,
    stop=("</longcat_s>",),
    control=CONTROL,
    models=("longcat-2", "longcat-next"),
    speech=Speech(results=RESULTS),
)
