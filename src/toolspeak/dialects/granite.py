"""IBM Granite: 4 writes the wire of Hermes, 3 one list behind a mark, the 20B function calling model an object each."""

from dataclasses import replace

from ..wire.syntax import Dialect, Thinking
from ._json import BARE, JSON_CALL, LIST
from .hermes import HERMES

CONTROL = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>")

GRANITE4 = replace(
    HERMES,
    name="granite4",
    thinking=None,
    stop=("<|end_of_text|>",),
    control=CONTROL,
    models=("granite-4.0", "granite-4.1", "granite-4-", "granite4"),
)

GRANITE3 = Dialect(
    "granite3",
    (JSON_CALL,),
    open="<|tool_call|>",
    items=LIST,
    also=(("<tool_call>", "</tool_call>"),),
    forms=BARE,
    thinking=Thinking("<think>", "</think>"),
    frame=("<response>", "</response>"),
    stop=("<|end_of_text|>",),
    control=CONTROL,
    models=("granite-3", "granite3"),
)

GRANITE32 = replace(
    GRANITE3,
    name="granite3.2",
    thinking=Thinking("Here is my thought process:", "Here is my response:"),
    models=("granite-3.2", "granite3.2"),
)

GRANITE_20B_FC = Dialect(
    "granite-20b-fc",
    ("<function_call> ", JSON_CALL),
    between="\n",
    before="\n",
    forms=BARE,
    thinking=None,
    stop=("<|endoftext|>",),
    control=("<|function_call_library|>", "<function_response>", "<|endoftext|>"),
    models=("granite-20b-functioncalling", "granite-20b-fc"),
)
