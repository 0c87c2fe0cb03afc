"""MiMo V2: the tags of Qwen 3 Coder, with each value verbatim on the line of its tag."""

from dataclasses import replace

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, Results, Speech, Tagged, Thinking, ToolJson
from ._chatml import CHATML, CONTROL

FORMAT_PROMPT = """
</tools>

For each function call, output the function name and arguments in the following format:
<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>value_1</parameter>
<parameter=example_parameter_2>This is the value for the second parameter
that can span
multiple lines</parameter>
</function>
</tool_call>

<IMPORTANT>
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags
- DO NOT use function calls inside <think></think> tags.
- The value enclosed between parameter tags is preserved exactly as-is, including newlines and spaces.
</IMPORTANT>"""
RESULTS = Results(each=("<tool_response>\n", RESULT, "\n</tool_response>\n"), between="")

MIMO_V2 = Dialect(
    "mimo-v2",
    ("<tool_call>\n<function=", NAME, ">\n", Tagged("<parameter=", ">", "</parameter>\n"), "</function>\n</tool_call>"),
    thinking=Thinking("<think>", "</think>"),
    stop=("<|im_end|>",),
    control=(*CONTROL, "<tool_response>", "</tool_response>"),
    models=("mimo-v2",),
    speech=Speech(
        (
            "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou have access to the"
            " following functions:\n\n<tools>\n",
            TOOLS,
            FORMAT_PROMPT,
        ),
        tools=ToolJson(wrapped=True, lines=True),
        results=RESULTS,
        native_results=replace(RESULTS, role="tool"),
    ),
    layout=replace(CHATML, end="<|im_end|>"),
)
