"""IBM Granite: 4 writes the Hermes format, 3 a list after a marker, the 20B function calling model one object per
call."""

from dataclasses import replace

from ..wire.dialect import RESULT, TOOLS, Dialect, Layout, Results, Speech, Thinking, ToolJson
from ._json import BARE, JSON_CALL, LIST
from .hermes import HERMES

CONTROL = ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>", "<|tool_call|>")

LAYOUT = Layout(("<|start_of_role|>", "<|end_of_role|>"), "<|end_of_text|>\n", strip=False)
NO_TOOL = (
    " If a tool does not exist in the provided list of tools, notify the user that you do not have the ability to"
    " fulfill the request."
)

GRANITE4 = replace(
    HERMES,
    name="granite4",
    thinking=None,
    stop=("<|end_of_text|>",),
    control=CONTROL,
    models=("granite-4.0", "granite-4.1", "granite-4"),
    speech=Speech(
        opening=(
            "You are a helpful assistant with access to the following tools. You may call one or more tools to assist"
            " with the user query.\n\nYou are provided with function signatures within <tools></tools> XML tags:\n"
            "<tools>\n",
            TOOLS,
            "\n</tools>\n\nFor each tool call, return a json object with function name and arguments within"
            ' <tool_call></tool_call> XML tags:\n<tool_call>\n{"name": <function-name>, "arguments":'
            f" <args-json-object>}}\n</tool_call>.{NO_TOOL}",
        ),
        tools=ToolJson(wrapped=True, lines=True),
        results=Results("user", ("<tool_response>\n", RESULT, "\n</tool_response>"), open="\n"),
    ),
    layout=LAYOUT,
)

GRANITE3 = Dialect(
    "granite3",
    (JSON_CALL,),
    open="<|tool_call|>",
    items=LIST,
    also=(("<tool_call>", ""),),
    forms=BARE,
    thinking=Thinking("<think>", "</think>"),
    frame=("<response>", "</response>", "</tool_call>"),
    stop=("<|end_of_text|>",),
    control=CONTROL,
    models=("granite-3",),
    speech=Speech(
        opening=(
            "You are a helpful assistant with access to the following tools. When a tool is required to answer the"
            f" user's query, respond only with <|tool_call|> followed by a JSON list of tools used.{NO_TOOL}\n\n",
            TOOLS,
        ),
        tools=ToolJson(wrapped=True, indent=4),
        native_results=Results("tool", (RESULT,), grouped=False),
    ),
    layout=LAYOUT,
)

GRANITE32 = replace(
    GRANITE3,
    name="granite3.2",
    thinking=Thinking("Here is my thought process:", "Here is my response:"),
    models=("granite-3.2",),
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
