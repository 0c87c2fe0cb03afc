"""NVIDIA Nemotron Nano v2: `<TOOLCALL>[{"name": .., "arguments": {..}}]</TOOLCALL>`."""

from ..wire.dialect import RESULT, TOOLS, Dialect, Results, Speech
from ._json import BARE, JSON_CALL, LIST

NEMOTRON_NANO_V2 = Dialect(
    "nemotron-nano-v2",
    (JSON_CALL,),
    open="<TOOLCALL>",
    close="</TOOLCALL>",
    items=LIST,
    before="\n",
    forms=BARE,
    stop=("<SPECIAL_12>",),
    control=("<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>", "</TOOL_RESPONSE>"),
    models=(
        *("nemotron-nano-9b-v2", "nemotron-nano-12b-v2", "nemotron-nano-v2"),
        *("llama-3.1-nemotron-nano", "llama-3.1-nemotron-ultra", "llama-3.3-nemotron"),
        "nemotron-nano?",
    ),
    speech=Speech(
        opening=(
            "You can use the following tools to assist the user if required:\n<AVAILABLE_TOOLS>",
            TOOLS,
            "</AVAILABLE_TOOLS>\n\nIf you decide to call any tool(s), use the following format:\n<TOOLCALL>[{{"
            '"name": "tool_name1", "arguments": "tool_args1"}}, {{"name": "tool_name2", "arguments": "tool_args2"}}]'
            "</TOOLCALL>\n\nThe user will execute tool-calls and return responses from tool(s) in this format:\n"
            '<TOOL_RESPONSE>[{{"tool_response1"}}, {{"tool_response2"}}]</TOOL_RESPONSE>\n\nBased on the tool responses,'
            " you can call additional tools if needed, correct tool calls if any errors are found, or just respond to"
            " the user.",
        ),
        results=Results("user", (RESULT,), open="<TOOL_RESPONSE>[", between=", ", close="]</TOOL_RESPONSE>"),
    ),
)
