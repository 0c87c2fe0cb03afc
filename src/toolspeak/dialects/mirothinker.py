"""MiroThinker: an MCP call in tags, with the name of the tool's server, and JSON arguments."""

from ..wire.dialect import (
    ARGS,
    DATE,
    NAME,
    RESULT,
    SERVER,
    SYSTEM,
    TEXT,
    TOOLS,
    Dialect,
    Json,
    Results,
    Speech,
    ToolRows,
    When,
)
from ._chatml import CHATML, CONTROL

TOOLS_PROMPT = """\
In this environment you have access to a set of tools you can use to answer the user's question.

You only have access to the tools provided below. You can only use one tool per message, and will receive the result of that tool in the user's next response. You use tools step-by-step to accomplish a given task, with each tool-use informed by the result of the previous tool-use.
"""
FORMAT_PROMPT = """
# Tool-Use Formatting Instructions

Tool-use is formatted using XML-style tags. The tool-use is enclosed in <use_mcp_tool></use_mcp_tool> and each parameter is similarly enclosed within its own set of tags.

The Model Context Protocol (MCP) connects to servers that provide additional tools and resources to extend your capabilities. You can use the server's tools via the `use_mcp_tool`.

Description:
Request to use a tool provided by a MCP server. Each MCP server can provide multiple tools with different capabilities. Tools have defined input schemas that specify required and optional parameters.

Parameters:
- server_name: (required) The name of the MCP server providing the tool
- tool_name: (required) The name of the tool to execute
- arguments: (required) A JSON object containing the tool's input parameters, following the tool's input schema, quotes within string must be properly escaped, ensure it's valid JSON

Usage:
<use_mcp_tool>
<server_name>server name here</server_name>
<tool_name>tool name here</tool_name>
<arguments>
{
  "param1": "value1",
  "param2": "value2 \\"escaped string\\""
}
</arguments>
</use_mcp_tool>

Important Notes:
- Tool-use must be placed **at the end** of your response, **top-level**, and not nested within other tags.
- Always adhere to this format for the tool use to ensure proper parsing and execution.

String and scalar parameters should be specified as is, while lists and objects should use JSON format. Note that spaces for string values are not stripped. The output is not expected to be valid XML and is parsed with regular expressions.
Here are the functions available in JSONSchema format:

## Server name: default
"""

MIROTHINKER = Dialect(
    "mirothinker",
    (
        "<use_mcp_tool>\n<server_name>",
        SERVER,
        "</server_name>\n<tool_name>",
        NAME,
        "</tool_name>\n<arguments>\n",
        Json(),
        "\n</arguments>\n</use_mcp_tool>",
    ),
    between="\n\n",
    before="\n\n",
    stop=("<|im_end|>",),
    control=CONTROL,
    models=("mirothinker",),
    speech=Speech(
        (
            SYSTEM,
            "\n\n",
            TOOLS_PROMPT,
            When(
                "date",
                (
                    "\nToday is: ",
                    DATE,
                    ". For time-dependent questions, answer based on the world as it would reasonably be today.\n",
                ),
            ),
            FORMAT_PROMPT,
            TOOLS,
        ),
        tools=ToolRows(
            ("### Tool name: ", NAME, "\nDescription:\n    ", TEXT, "\n\nInput JSON schema: ", ARGS, "\n"), between="\n"
        ),
        results=Results("user", (RESULT,), between="\n\n"),
    ),
    layout=CHATML,
)
