"""Hermes 2 and 3, Qwen 2.5 and 3 and many more: `<tool_call>{"name": .., "arguments": {..}}</tool_call>`."""

from dataclasses import replace

from ..wire.dialect import (
    ARGS,
    ID,
    NAME,
    RESULT,
    SYSTEM,
    TOOLS,
    Dialect,
    JsonCall,
    Layout,
    Results,
    Speech,
    Tagged,
    Thinking,
    ToolJson,
)

CALL = JsonCall(also=(("parameters", ARGS), ("args", ARGS), ("id", ID), ("tool_name", NAME)))

TAGS = (
    "<tool_call>\n<function=",
    NAME,
    ">\n",
    Tagged("<parameter=", ">\n", "\n</parameter>\n"),
    "</function>\n</tool_call>",
)
"""The format of later models of these families, which some of these models write as well."""
TOOLS_TAG = ("<tools>\n", CALL, "\n</tools>")
"""Calls in the tag that the prompt has around the tools, as Qwen 2.5 Coder writes them."""

HERMES = Dialect(
    "hermes",
    ("<tool_call>\n", CALL, "\n</tool_call>"),
    between="\n",
    before="\n",
    forms=((CALL,), TAGS, TOOLS_TAG),
    stop=("<|im_end|>",),
    thinkers=("qwq", "-thinking"),
    models=(
        *("hermes-2", "hermes-3", "hermes-4", "deephermes"),
        *("qwen2.5", "qwen3", "qwq"),  # their templates; qwen3-coder and qwen3.5 are longer
        *("exaone-4", "k-exaone", "mimo-7b", "mimo-vl", "smollm3", "trinity", "arcee", "cogito"),
        *("step3-vl", "mellum2"),
        *("ling-mini", "ling-flash", "ling-1t", "ring-mini", "ring-flash", "ring-1t"),  # inclusionAI's second ones
        *("arch-function", "arch-agent", "jan-nano", "jan-v1", "tongyi-deepresearch"),  # made from Qwen 2.5 and 3
        *("athene-v2", "llama-3-groq", "tng-r1t2"),
        *("iquest-coder-v1-40b-instruct", "iquest-coder-v1-40b-loop-instruct"),  # the other V1 write Qwen3-Coder's
        "qwen2?",
        "openhermes?",
        "ling-lite?",
        "ling-plus?",
        "ling-2.5?",
        "ring-2.5?",
    ),
    speech=Speech(
        opening=(
            SYSTEM,
            "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with"
            " function signatures within <tools></tools> XML tags:\n<tools>\n",
            TOOLS,
            "\n</tools>\n\nFor each function call, return a json object with function name and arguments within"
            ' <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments":'
            " <args-json-object>}\n</tool_call>",
        ),
        system="You are a helpful assistant.",
        tools=ToolJson(wrapped=True, lines=True),
        results=Results("user", ("<tool_response>\n", RESULT, "\n</tool_response>")),
    ),
    layout=Layout(
        ("<|im_start|>", "\n"),
        "<|im_end|>\n",
        strip=False,
    ),
)

BIELIK = replace(
    HERMES,
    name="bielik",
    thinking=Thinking("<think>\n", "\n</think>\n"),
    control=("<|function_list|>", "<|function_output|>"),
    models=("bielik",),
)

REKA = replace(HERMES, name="reka", between="", stop=("<sep>",), control=("<sep>",), models=("reka",), layout=None)
