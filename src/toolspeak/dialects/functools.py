"""FireFunction v2 and Phi 4 mini: `functools[{"name": .., "arguments": {..}}]`."""

from dataclasses import replace

from ..wire.dialect import ARGS, DATE, RESULT, SYSTEM, TOOLS, Dialect, JsonCall, Layout, Results, Speech, ToolJson, When
from ._llama3 import LLAMA3

CALL = JsonCall(also=(("parameters", ARGS), ("args", ARGS)))
PHI_CONTROL = ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>", "<|tool|>", "<|/tool|>", "<|tool_response|>")

RULES = """\
In addition to plain text responses, you can chose to call one or more of the provided functions.

Use the following rule to decide when to call a function:
  * if the response can be generated from your internal knowledge (e.g., as in the case of queries like "What is the capital of Poland?"), do so
  * if you need external information that can be obtained by calling one or more of the provided functions, generate a function calls

If you decide to call functions:
  * prefix function calls with functools marker (no closing marker required)
  * all function calls should be generated in a single JSON list formatted as functools[{"name": [function name], "arguments": [function arguments as JSON]}, ...]
  * follow the provided JSON schema. Do not hallucinate arguments or values. Do to blindly copy values from the provided samples
  * respect the argument type formatting. E.g., if the type if number and format is float, write value 7 as 7.0
  * make sure you pick the right functions that match the user intent

Available functions as JSON spec:"""

FUNCTOOLS = Dialect(
    "functools",
    (CALL,),
    open=" functools",
    items=("[", ", ", "]"),
    forms=((CALL,),),
    thinking=None,
    stop=("<|eot_id|>",),
    models=("firefunction",),
    speech=Speech(
        opening=(SYSTEM, f"\n{RULES}\n", TOOLS, When("date", ("\nToday is ", DATE, "."))),
        system="You are a helpful assistant with access to functions.",
        tools=ToolJson(indent=4),
        strip=True,
        native_results=Results("tool", (RESULT,), grouped=False),
    ),
    layout=replace(LLAMA3, strip=False),
)

PHI4_MINI = replace(
    FUNCTOOLS,
    name="phi-4-mini",
    open="functools",
    also=(("<|tool_call|>", "<|/tool_call|>"),),
    stop=("<|end|>",),
    control=PHI_CONTROL,
    models=("phi-4-mini",),
    speech=replace(FUNCTOOLS.speech, native_results=None),
    layout=Layout(("<|", "|>"), "<|end|>", strip=False),
)
