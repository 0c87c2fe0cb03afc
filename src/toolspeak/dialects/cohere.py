"""Cohere Command: `Action:` and a list in a fence (R, R+), or a list between action marks (R7B, A, North)."""

from dataclasses import replace

from ..wire.syntax import ARGS, INDEX, NAME, Dialect, JsonCall, Thinking
from ._json import LINES

CONTROL = (
    "<BOS_TOKEN>",
    "<|START_OF_TURN_TOKEN|>",
    "<|END_OF_TURN_TOKEN|>",
    "<|SYSTEM_TOKEN|>",
    "<|USER_TOKEN|>",
    "<|CHATBOT_TOKEN|>",
)
MORE = ("<|START_TOOL_RESULT|>", "<|END_TOOL_RESULT|>")
NAMED = JsonCall((("tool_name", NAME), ("parameters", ARGS)), (("name", NAME), ("arguments", ARGS)), indent=4)

COMMAND_R_PLUS = Dialect(
    "command-r-plus",
    (NAMED,),
    open="Action:\n```json\n",
    close="```",
    items=LINES,
    before="\n",
    forms=((NAMED,),),
    thinking=None,
    frame=("<|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>"),
    stop=("<|END_OF_TURN_TOKEN|>",),
    control=CONTROL,
    models=("command-r",),
)

COMMAND_R7B = Dialect(
    "command-r7b",
    (
        JsonCall(
            (("tool_call_id", INDEX), ("tool_name", NAME), ("parameters", ARGS)),
            (("name", NAME), ("arguments", ARGS)),
        ),
    ),
    open="<|START_ACTION|>",
    close="<|END_ACTION|>",
    items=LINES,
    forms=((NAMED,),),
    thinking=Thinking("<|START_THINKING|>", "<|END_THINKING|>"),
    frame=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>"),
    stop=("<|END_OF_TURN_TOKEN|>",),
    control=(*CONTROL, *MORE),
    models=("command-r7b", "command-a", "c4ai-command-a"),
)

COHERE2_MOE = replace(COMMAND_R7B, name="cohere2-moe", models=("cohere2", "north-mini", "command-4"))
