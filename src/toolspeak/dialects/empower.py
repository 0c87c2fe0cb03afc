"""Empower functions: `<f>[{"name": .., "arguments": "{..}"}]` for calls, `<c>` for a text, after `<thinking>`.

There are two dialects for one format: `empower` has the prompt of the model card, `empower-package` that of the
package empower-functions 0.1.7.
"""

from dataclasses import replace

from ..wire.dialect import (
    ARGS,
    ID,
    RESULT,
    SYSTEM,
    TOOLS,
    USER,
    Dialect,
    JsonCall,
    Results,
    Speech,
    Thinking,
    ToolJson,
    When,
)
from ._llama3 import LLAMA3

ALSO = (("parameters", ARGS), ("args", ARGS))
THINK = When("thinking", ("\nMake sure to include your thinking inside < thinking > </thinking > before response.",))
ROWS = (("value", RESULT), ("tool_call_id", ID))
CALL = JsonCall(also=ALSO, encoded="always")

SPEECH = Speech(
    opening=(SYSTEM, THINK, "\nFunctions: ", TOOLS, "\n\n<u>", USER),
    system="In this environment you have access to a set of functions defined in the JSON format you can use to"
    " address user's requests, use them if needed.",
    tools=ToolJson(indent=2),
    user="<u>",
    text="<c>",
    exclusive=True,
    alternate=True,
    results=Results("user", open="<r>", record=ROWS),
)

EMPOWER = Dialect(
    "empower",
    (CALL,),
    open="<f>",
    items=("[", ", ", "]"),
    forms=((CALL,),),
    thinking=Thinking("<thinking>", "</thinking>"),
    frame=("<c>",),
    stop=("<|eot_id|>",),
    models=("empower-functions",),
    speech=SPEECH,
    layout=LLAMA3,
)

EMPOWER_PACKAGE = replace(
    EMPOWER,
    name="empower-package",
    call=(JsonCall(also=ALSO, encoded="text", indent=2),),
    items=("[\n  ", ",\n  ", "\n]"),
    models=(),
    speech=replace(
        SPEECH,
        opening=(SYSTEM, THINK, "\nFunctions:\n", TOOLS, "\n\nUser Message:\n", USER),
        results=Results("user", open="<r>", record=ROWS, decoded=True, indent=2, ascii=True),
    ),
)
