"""LFM 2 and 2.5: Python calls in a list between markers, or a JSON list if prompted for one."""

from dataclasses import replace

from ..wire.dialect import (
    ARGS,
    NAME,
    RESULT,
    SYSTEM,
    TOOLS,
    Dialect,
    JsonCall,
    Keywords,
    Results,
    Speech,
    Thinking,
    ToolJson,
)
from ._chatml import CHATML

LFM2 = Dialect(
    "lfm2",
    (NAME, Keywords(json=True)),
    open="<|tool_call_start|>",
    items=("[", ", ", "]"),
    close="<|tool_call_end|>",
    forms=((JsonCall(also=(("parameters", ARGS),)),),),
    thinking=Thinking("<think>", "</think>"),
    frame=("<|im_end|>",),
    stop=("<|im_end|>",),
    control=(
        *("<|startoftext|>", "<|im_start|>", "<|im_end|>", "<|tool_list_start|>", "<|tool_list_end|>"),
        *("<|tool_response_start|>", "<|tool_response_end|>"),
    ),
    models=("lfm2",),
    speech=Speech(
        (SYSTEM, "\nList of tools: ", TOOLS),
        system="You are a helpful assistant trained by Liquid AI.",
        tools=ToolJson(wrapped=True),
        native_results=Results("tool", (RESULT,), grouped=False),
    ),
    layout=replace(CHATML, bos="<|startoftext|>"),
)
