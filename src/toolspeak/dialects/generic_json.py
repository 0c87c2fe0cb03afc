"""Any model, held to JSON: one object with a call, several calls or a message."""

from dataclasses import replace

from ..wire.syntax import ARGS, CALL, ID, NAME, TEXT, THOUGHT, Dialect, JsonCall

GENERIC_JSON = Dialect(
    "generic-json",
    (
        JsonCall(
            (("tool", NAME), ("tool_input", ARGS)),
            (
                ("tool_call", CALL),
                ("tool_calls", CALL),
                ("name", NAME),
                ("tool_name", NAME),
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
)

RESPONSE_TEMPLATE = replace(GENERIC_JSON, name="response-template")
