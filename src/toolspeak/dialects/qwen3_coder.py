"""Qwen 3 Coder and the many that write as it does: `<tool_call><function=..><parameter=..>`, values on lines of their own."""

from dataclasses import replace

from ..wire.syntax import NAME, Dialect, JsonCall, Tagged, Thinking

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
    thinking=Thinking(call_ends=True),
    stop=("<|im_end|>",),
    control=("<|im_start|>", "<|im_end|>", "<|endoftext|>", "<tool_response>", "</tool_response>"),
    models=("qwen3-coder", *(f"qwen3.{n}" for n in "5678"), "minicpm-v", "granite-4.2", "nanbeige"),
)

NEMOTRON3 = replace(
    QWEN3_CODER,
    name="nemotron-3",
    before="\n",
    thinking=Thinking(close="\n</think>\n"),
    models=("nemotron-3",),
)

STEP35 = replace(
    NEMOTRON3,
    name="step-3.5",
    between="",
    before="",
    models=("step-3.5", "step3.5", "step-3.7", "step3.7"),
)
