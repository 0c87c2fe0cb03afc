"""Llama 3.1's built-in tools: `<|python_tag|>brave_search.call(query="..")`, or code for its interpreter."""

from ..wire.dialect import ARGS, NAME, RESULT, Dialect, JsonCall, Keywords, Raw, Results, Speech
from ._llama3 import CONTROL, LLAMA3

CALL = JsonCall((("name", NAME), ("parameters", ARGS)), also=(("arguments", ARGS),))

LLAMA3_BUILTIN = Dialect(
    "llama3-builtin",
    ("<|python_tag|>", NAME, ".call", Keywords(quotes=('"', "'"))),
    between="; ",
    forms=(
        ("<|python_tag|>", CALL),
        ("<|python_tag|>", Raw("code", "code_interpreter")),
        ("<|python_tag|>", Raw("code", "python")),
    ),
    thinking=None,
    stop=("<|eom_id|>", "<|eot_id|>"),
    control=CONTROL,
    speech=Speech(native_results=Results("ipython", (RESULT,), grouped=False)),
    layout=LLAMA3,
)
