"""Qwen 3 Coder, and the many models with the same format: `<tool_call><function=..><parameter=..>`, each value on
lines of its own."""

from dataclasses import replace

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, JsonCall, Results, Speech, Tagged, Thinking, ToolJson
from ._chatml import CHATML, CONTROL

FORMAT_PROMPT = """
</tools>

If you choose to call a function ONLY reply in the following format with NO suffix:

<tool_call>
<function=example_function_name>
<parameter=example_parameter_1>
value_1
</parameter>
<parameter=example_parameter_2>
This is the value for the second parameter
that can span
multiple lines
</parameter>
</function>
</tool_call>

<IMPORTANT>
Reminder:
"""
RULES = """\
- Function calls MUST follow the specified format: an inner <function=...></function> block must be nested within <tool_call></tool_call> XML tags
- Required parameters MUST be specified
- You may provide optional reasoning for your function call in natural language BEFORE the function call, but NOT after
- If there is no function call available, answer the question like normal with your current knowledge and do not tell the user about function calls
</IMPORTANT>"""
STEP_RULES = """\
- Function calls MUST follow the specified format: an inner <function=...>
...
</function> block must be nested within <tool_call>
...
</tool_call> XML tags
- Required parameters MUST be specified
</IMPORTANT>"""
RESULTS = Results(each=("<tool_response>\n", RESULT, "\n</tool_response>"))

QWEN3_CODER = Dialect(
    "qwen3-coder",
    (
        "<tool_call>\n<function=",
        NAME,
        ">\n",
        Tagged("<parameter=", ">\n", "\n</parameter>\n"),
        "</function>\n</tool_call>",
    ),
    between="\n",
    before="\n\n",
    forms=(("<tool_call>\n", JsonCall(), "\n</tool_call>"),),
    thinking=Thinking(frame_ends=True),
    stop=("<|im_end|>",),
    control=(*CONTROL, "<tool_response>", "</tool_response>"),
    models=(
        "qwen3-coder",
        *(f"qwen3.{n}" for n in "5678"),
        "minicpm-v",
        "granite-4.2",
        "nanbeige",
        "kat-dev",
        "intellect-3",
        "trinity-large-thinking",
        "intern-s2",
        "iquest-coder-v1",
        "kat-coder?",
    ),
    speech=Speech(
        ("# Tools\n\nYou have access to the following functions:\n\n<tools>\n", TOOLS, f"{FORMAT_PROMPT}{RULES}"),
        tools=ToolJson(wrapped=True, lines=True),
        results=RESULTS,
    ),
    layout=CHATML,
)

NEMOTRON3 = replace(
    QWEN3_CODER,
    name="nemotron-3",
    before="\n",
    thinking=Thinking(close="\n</think>\n"),
    models=("nemotron-3", "nemotron-nano-3", "nemotron-super-3", "nemotron-ultra-3", "nemotron-lightning-3"),
    speech=replace(QWEN3_CODER.speech, results=replace(RESULTS, close="\n")),
)

STEP35 = replace(
    NEMOTRON3,
    name="step-3.5",
    between="",
    before="",
    models=("step-3.5", "step-3.7"),
    thinkers=("step-3.5",),
    speech=Speech(
        (
            "# Tools\n\nYou have access to the following functions in JSONSchema format:\n\n<tools>\n",
            TOOLS,
            f"{FORMAT_PROMPT}{STEP_RULES}",
        ),
        tools=ToolJson(wrapped=True, lines=True),
        results=RESULTS,
        native_results=Results("tool_response", ("<tool_response>", RESULT, "</tool_response>"), between=""),
    ),
)
