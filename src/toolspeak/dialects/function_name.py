"""Any model, prompted to write nothing but one call: `{"functionName": .., "args": {..}}`."""

from ..wire.dialect import ARGS, NAME, TOOLS, Dialect, JsonCall, Speech, ToolReprs

FUNCTION_NAME = Dialect(
    "function-name",
    (
        JsonCall(
            (("functionName", NAME), ("args", ARGS)),
            (("name", NAME), ("arguments", ARGS), ("parameters", ARGS)),
        ),
    ),
    between="\n",
    before="\n",
    guard=True,
    speech=Speech(
        opening=(
            "You are a computer specialist. Your job is translating client requests into tool calls. Your client has"
            " sent a request to use a tool; return the function call corresponding to the request and no other"
            ' commentary. Return a value of type `{"functionName" :: string, "args" :: {arg_name: arg value} }`. You'
            " have access to the tools: ",
            TOOLS,
            ".",
        ),
        tools=ToolReprs(),
    ),
)
