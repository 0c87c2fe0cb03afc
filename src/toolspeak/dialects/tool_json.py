"""Any model, by prompt alone: one JSON object with the keys tool, tool_input and message."""

from ..wire.dialect import ARGS, NAME, TEXT, THOUGHT, TOOLS, Dialect, JsonCall, Speech, ToolJson

TOOL_JSON = Dialect(
    "tool-json",
    (
        JsonCall(
            (("tool", NAME), ("tool_input", ARGS), ("message", TEXT)),
            (("name", NAME), ("arguments", ARGS), ("parameters", ARGS), ("args", ARGS), ("thought", THOUGHT)),
        ),
    ),
    between="\n",
    before="\n",
    guard=True,
    speech=Speech(
        opening=(
            "You have access to the following tools:\n",
            TOOLS,
            "\nYou can select one of the above tools or just response user's content and respond with only a JSON"
            ' object matching the following schema:\n{\n  "tool": <name of the selected tool>,\n  "tool_input":'
            ' <parameters for the selected tool, matching the tool\'s JSON schema>,\n  "message": <direct response'
            " users content>\n}",
        ),
        tools=ToolJson(ascii=True),
    ),
)
