"""Llama 3.1, 3.2 and 3.3: a bare JSON object with the arguments under the key `parameters`.

After `<|python_tag|>` a built-in tool may be called, as in llama3-builtin.
"""

from ..wire.dialect import (
    DATE,
    NAME,
    RESULT,
    SYSTEM,
    TOOLS,
    Dialect,
    Keywords,
    Results,
    Speech,
    ToolJson,
    When,
)
from ._llama3 import CONTROL, JSON_CALL, LLAMA3

LLAMA3_JSON = Dialect(
    "llama3-json",
    (JSON_CALL,),
    between="; ",
    also=(("<|python_tag|>", ""),),
    forms=((NAME, ".call", Keywords(quotes=('"', "'"))),),
    before="\n",
    guard=True,
    thinking=None,
    stop=("<|eot_id|>", "<|eom_id|>"),
    control=CONTROL,
    models=("llama-3.1", "llama-3.2", "llama-3.3", "nemotron:70b"),
    speech=Speech(
        opening=(
            "Environment: ipython\nCutting Knowledge Date: December 2023\n",
            When("date", ("Today Date: ", DATE, "\n")),
            "\nYou have access to the following functions. To call a function, please respond with JSON for a function"
            ' call.Respond in the format {"name": function name, "parameters": dictionary of argument name and its'
            " value}.Do not use variables.\n\n",
            TOOLS,
            "\n\n",
            SYSTEM,
        ),
        tools=ToolJson(wrapped=True, lines=True, between="\n\n", indent=4),
        native_results=Results("ipython", (RESULT,), grouped=False),
    ),
    layout=LLAMA3,
)
