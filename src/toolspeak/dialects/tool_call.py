"""Any model, by prompt alone: `{"type": "tool-call", "tool": .., "args": {..}}`, or a plain answer."""

from ..wire.dialect import ARGS, NAME, TEXT, TOOL_NAMES, TOOLS, Dialect, JsonCall, Kind, Speech, ToolSignatures

TOOL_CALL = Dialect(
    "tool-call",
    (JsonCall((("type", Kind("tool-call", "final")), ("tool", NAME), ("args", ARGS)), (("content", TEXT),)),),
    between="\n",
    before="\n",
    guard=True,
    speech=Speech(
        opening=(
            "You have access to the following tools.\n\nWhen you want to call a tool, respond with a single JSON object"
            ' of the following form, and NOTHING else:\n\n{\n  "type": "tool-call",\n  "tool": "<one of: ',
            TOOL_NAMES,
            '>",\n  "args": {\n    "<param>": "<value>",\n    "...": "..."\n  }\n}\n\nAvailable tools:\n\n',
            TOOLS,
            "\nUse the signature exactly. Required arguments must be present, and do not invent argument names that are"
            " not shown.\n\nIf you do not need to call a tool, respond normally instead of emitting a tool-call JSON"
            " object.",
        ),
        tools=ToolSignatures(),
    ),
)
