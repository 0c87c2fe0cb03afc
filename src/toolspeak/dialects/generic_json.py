"""Any model, constrained to JSON: one object that holds a call, several calls or a message."""

from dataclasses import replace

from ..wire.dialect import (
    ARGS,
    CALL,
    EXAMPLE,
    ID,
    NAME,
    TEXT,
    THOUGHT,
    TOOLS,
    Dialect,
    JsonCall,
    Kind,
    Speech,
    ToolJson,
)

GENERIC_JSON = Dialect(
    "generic-json",
    (
        JsonCall(
            (("tool", NAME), ("tool_input", ARGS)),
            (
                ("tool_call", CALL),
                ("tool_calls", CALL),
                ("function_call", CALL),
                ("function", CALL),
                ("type", Kind("function")),
                ("name", NAME),
                ("tool_name", NAME),
                ("action", NAME),
                ("action_input", ARGS),
                ("arguments", ARGS),
                ("parameters", ARGS),
                ("args", ARGS),
                ("id", ID),
                ("message", TEXT),
                ("response", TEXT),
                ("thought", THOUGHT),
            ),
        ),
    ),
    between="\n",
    before="\n",
    guard=True,
    speech=Speech(
        opening=(
            "These tools are offered, one to a line, each with the JSON Schema of its parameters:\n",
            TOOLS,
            "\n\nReply with one JSON object and nothing else. To call a tool:\n",
            EXAMPLE,
            '\nTo answer the user without a tool:\n{"message": "your answer"}',
        ),
        tools=ToolJson(lines=True),
    ),
)

RESPONSE_TEMPLATE = replace(GENERIC_JSON, name="response-template")
