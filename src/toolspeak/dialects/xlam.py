"""Salesforce xLAM: a bare JSON list, or one in a code fence or after another family's markers."""

from ..wire.dialect import SYSTEM, TOOLS, Dialect, Speech, ToolJson
from ._json import JSON_CALL, LIST

XLAM = Dialect(
    "xlam",
    (JSON_CALL,),
    items=LIST,
    also=(("[TOOL_CALLS]", ""), ("<tool_call>", "</tool_call>")),
    before="\n",
    guard=True,
    stop=("<|im_end|>", "<|eot_id|>"),
    control=("<|im_start|>", "<|im_end|>", "<|endoftext|>"),
    models=(
        "xlam",
        "hammer2?",
    ),
    speech=Speech(
        opening=(
            SYSTEM,
            "\nYou have access to a set of tools. When using tools, make calls in a single JSON array: \n\n"
            '[{"name": "tool_call_name", "arguments": {"arg1": "value1", "arg2": "value2"}}, ... (additional parallel'
            " tool calls as needed)]\n\nIf no tool is suitable, state that explicitly. If the user's input lacks required"
            " parameters, ask for clarification. Do not interpret or respond until tool results are returned. Once they"
            " are available, process them or make additional calls if needed. For tasks that don't require tools, such"
            " as casual conversation or general advice, respond directly in plain text. The available tools are:\n\n",
            TOOLS,
            "\n\n",
        ),
        system="You are a helpful assistant. You are developed by Salesforce xLAM team.",
        tools=ToolJson(wrapped=True, lines=True, between="\n\n", indent=4),
    ),
)
