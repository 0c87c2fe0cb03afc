"""Gemma: 3 writes Python in a code fence, as prompted; FunctionGemma and 4 write `call:f{k:..}` with their own quotes."""

from ..wire.dialect import NAME, RESULT, Dialect, Keywords, Results, Speech, Thinking

GEMMA3 = Dialect(
    "gemma3",
    (NAME, Keywords()),
    open="```tool_code\n",
    between="\n",
    close="\n```",
    before="\n",
    forms=(
        ("print(default_api.", NAME, Keywords(), ")"),
        ("print(", NAME, Keywords(), ")"),
        ("default_api.", NAME, Keywords()),
    ),
    thinking=None,
    stop=("<end_of_turn>",),
    control=("<bos>", "<start_of_turn>", "<end_of_turn>"),
    models=("gemma-3", "gemma-2", "medgemma"),
    speech=Speech(results=Results(each=("```tool_output\n", RESULT, "\n```"))),
)

ESCAPED = Keywords("{", "}", ":", ("<escape>",), escapes=False, bare=True, constants=("true", "false", "None"))
FUNCTIONGEMMA = Dialect(
    "functiongemma",
    (
        "<start_function_call>",
        "call:",
        NAME,
        ESCAPED,
        "<end_function_call>",
    ),
    forms=(("call:", NAME, ESCAPED, "<end_function_call>"),),
    thinking=None,
    frame=("<start_function_response>", "<end_of_turn>"),
    stop=("<end_of_turn>", "<start_function_response>"),
    control=(
        *("<bos>", "<start_of_turn>", "<end_of_turn>", "<start_function_declaration>", "<end_function_declaration>"),
        *("<start_function_response>", "<end_function_response>"),
    ),
    models=("functiongemma",),
    speech=Speech(
        results=Results(
            each=(
                "<start_function_response>response:",
                NAME,
                "{value:<escape>",
                RESULT,
                "<escape>}<end_function_response>",
            ),
            between="",
        )
    ),
)

FIELDS = Keywords("{", "}", ":", ('<|"|>',), escapes=False, bare=True, constants=("true", "false", "None"))
GEMMA4 = Dialect(
    "gemma4",
    ("<|tool_call>", "call:", NAME, FIELDS, "<tool_call|>"),
    forms=(
        ("call:", NAME, FIELDS, "<tool_call|>"),
        ("<|tool_call>:call:", NAME, FIELDS, "<tool_call|>"),
        ("<call>", NAME, FIELDS, "<tool_call|>"),
    ),
    thinking=Thinking("<|channel>thought\n", "\n<channel|>", also=("<|channel>",)),
    frame=("<turn|>", "<|tool_response>", "<|channel>", "<|channel>thought", "<channel|>"),
    stop=("<turn|>", "<|tool_response>"),
    control=("<bos>", "<|turn>", "<turn|>", "<|tool>", "<tool|>", "<|tool_response>", "<tool_response|>", "<|think|>"),
    models=("gemma-4", "diffusiongemma"),
    speech=Speech(
        results=Results(
            each=("<|tool_response>response:", NAME, '{value:<|"|>', RESULT, '<|"|>}<tool_response|>'), between=""
        )
    ),
)
