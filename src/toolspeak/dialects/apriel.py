"""ServiceNow Apriel: `<tool_calls>[..]</tool_calls>` after `[BEGIN FINAL RESPONSE]`."""

from dataclasses import replace

from ..wire.syntax import ARGS, ID, NAME, Dialect, JsonCall, Thinking
from ._json import ALSO, BARE, LIST

APRIEL = Dialect(
    "apriel",
    (JsonCall((("name", NAME), ("arguments", ARGS), ("id", ID)), ALSO),),
    open="<tool_calls>",
    close="</tool_calls>",
    items=LIST,
    before="\n",
    forms=BARE,
    thinking=Thinking("Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"),
    frame=("<|end|>",),
    stop=("<|end|>",),
    control=(
        "<|begin_system|>",
        "<|begin_user|>",
        "<|begin_assistant|>",
        "<|begin_tool_result|>",
        "<|begin_content|>",
        "<|end|>",
    ),
    models=("apriel",),
)

APRIEL15 = replace(
    APRIEL,
    name="apriel1.5",
    frame=("[END FINAL RESPONSE]", "<|end|>"),
    control=("<|system|>", "<|user|>", "<|assistant|>", "<|tool_result|>", "<|end|>"),
    models=("apriel-1.5",),
)
