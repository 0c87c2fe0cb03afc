"""Llama 3.1, 3.2 and 3.3: a bare JSON object whose arguments are called parameters."""

from ..wire.syntax import ARGS, CALL, ID, NAME, Dialect, JsonCall, Kind
from ._llama3 import CONTROL

LLAMA3_JSON = Dialect(
    "llama3-json",
    (
        JsonCall(
            (("name", NAME), ("parameters", ARGS)),
            (
                ("type", Kind("function")),
                ("function", CALL),
                ("arguments", ARGS),
                ("args", ARGS),
                ("id", ID),
            ),
        ),
    ),
    between="; ",
    also=(("<|python_tag|>", ""),),
    before="\n",
    guard=True,
    thinking=None,
    stop=("<|eot_id|>", "<|eom_id|>"),
    control=CONTROL,
    models=(
        "llama-3.1",
        "llama-3.2",
        "llama-3.3",
        "llama3.1",
        "llama3.2",
        "llama3.3",
        "llama-3-1",
        "llama-3-2",
        "llama-3-3",
        "llama-v3p1",
        "llama-v3p2",
        "llama-v3p3",
    ),
)
