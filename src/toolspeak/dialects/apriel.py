"""ServiceNow Apriel: `<tool_calls>[..]</tool_calls>` after `[BEGIN FINAL RESPONSE]`."""

from dataclasses import replace

from ..wire.dialect import ARGS, ID, NAME, TOOLS, Dialect, JsonCall, Speech, Thinking, ToolJson
from ._json import ALSO, LIST

CALL = JsonCall((("name", NAME), ("arguments", ARGS), ("id", ID)), ALSO)
APRIEL = Dialect(
    "apriel",
    (CALL,),
    open="<tool_calls>",
    close="</tool_calls>",
    items=LIST,
    before="\n",
    forms=((CALL,),),
    thinking=Thinking("Here are my reasoning steps:\n", "\n[BEGIN FINAL RESPONSE]\n"),
    frame=("\n[END FINAL RESPONSE]\n", "<|end|>"),
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
    thinkers=("thinker",),
    speech=Speech(
        opening=(
            "You are provided with function signatures within <available_tools></available_tools> XML tags. You may call"
            " one or more functions to assist with the user query. Don't make assumptions about the arguments. You"
            " should infer the argument values from previous user responses and the system message. Here are the"
            " available tools:\n<available_tools>\n",
            TOOLS,
            "\n</available_tools>\n\nReturn all function calls as a list of JSON objects within <tool_calls></tool_calls>"
            " XML tags. Each JSON object should contain a function name and arguments as follows:\n<tool_calls>[\n"
            '    {"name": <function-name-1>, "arguments": <args-dict-1>},\n    {"name": <function-name-2>, "arguments":'
            " <args-dict-2>},\n    ...\n]</tool_calls>",
        ),
        tools=ToolJson(wrapped=True, lines=True),
    ),
)

APRIEL15 = replace(
    APRIEL,
    name="apriel1.5",
    control=("<|system|>", "<|user|>", "<|assistant|>", "<|tool_result|>", "<|end|>"),
    models=("apriel-1.5",),
)
