"""GLM 4.5 and later, and those that write as it does: `<tool_call>name<arg_key>..</arg_key><arg_value>..`.

4.5 and 4.6 put each tag on a line of its own, 4.7 and 5 write no line breaks at all.
"""

from dataclasses import replace

from ..wire.syntax import NAME, Dialect, Tagged, Thinking

TURNS = ("[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>", "<|observation|>", "<|endoftext|>")
TURN_ENDS = ("<|observation|>", "<|user|>")

GLM45 = Dialect(
    "glm45",
    ("<tool_call>", NAME, "\n", Tagged("<arg_key>", "</arg_key>\n<arg_value>", "</arg_value>\n"), "</tool_call>"),
    between="\n",
    before="\n",
    thinking=Thinking("<think>", "</think>\n"),
    frame=TURN_ENDS,
    stop=(*TURN_ENDS, "<|endoftext|>"),
    control=(*TURNS, "<tool_response>", "</tool_response>"),
    models=("glm-4.5", "glm4.5", "glm-4.6", "glm4.6"),
)

GLM47 = Dialect(
    "glm47",
    ("<tool_call>", NAME, Tagged("<arg_key>", "</arg_key><arg_value>", "</arg_value>"), "</tool_call>"),
    thinking=Thinking("<think>", "</think>"),
    frame=TURN_ENDS,
    stop=(*TURN_ENDS, "<|endoftext|>"),
    control=(*TURNS, "<tool_response>", "</tool_response>"),
    models=("glm-4.7", "glm4.7", "glm-5", "glm5"),
)

SPARK25 = replace(
    GLM47,
    name="spark-2.5",
    frame=("<｜end▁of▁sentence｜>",),
    stop=("<｜end▁of▁sentence｜>",),
    control=(
        "<｜start▁of▁sentence｜>",
        "<｜end▁of▁sentence｜>",
        *("<|System|>", "<|User|>", "<|Bot|>", "<|Tool|>", "<tool_response>", "</tool_response>"),
    ),
    models=("spark-2.5", "spark2.5"),
)

LAGUNA = replace(
    GLM47,
    name="laguna",
    frame=("</assistant>",),
    stop=("</assistant>",),
    control=(
        "〈|EOS|〉",
        *(f"{mark}{role}>" for role in ("system", "user", "assistant", "tool_response") for mark in ("<", "</")),
    ),
    models=("laguna",),
)

LAGUNA_XS = replace(
    LAGUNA,
    name="laguna-xs",
    call=GLM45.call,
    between="\n",
    before="\n",
    thinking=Thinking(close="\n</think>\n"),
    models=("laguna-xs",),
)

IQUEST_Q1 = replace(
    GLM47,
    name="iquest-q1",
    call=("<iquest_tool_call>", *GLM47.call[1:-1], "</iquest_tool_call>"),
    frame=("<|iquest_end|>",),
    stop=("<|iquest_end|>",),
    control=("<|iquest_end|>", "<|iquest_assistant|>", "<tool_response>", "</tool_response>"),
    models=("iquest-q1",),
)
