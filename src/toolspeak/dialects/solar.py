"""Solar Open: id, name and arguments, each after a marker; ids are ten letters and digits. Solar Open 2: each argument
between markers, its value verbatim."""

from ..wire.dialect import ID, NAME, RESULT, TOOLS, Dialect, Results, Speech, Tagged, Thinking, ToolJson
from ._json import JSON

SOLAR_OPEN = Dialect(
    "solar-open",
    (
        "<|tool_call:begin|>",
        ID,
        "<|tool_call:name|>",
        NAME,
        "<|tool_call:args|>",
        JSON,
        "<|tool_call:end|>",
    ),
    open="<|tool_calls|>",
    close="<|calls|>",
    thinking=Thinking("<|think|>", "<|end|>"),
    frame=("<|begin|>assistant", "<|content|>", "<|end|>"),
    stop=("<|calls|>", "<|flush|>"),
    control=(
        "<|begin|>",
        "<|tools:begin|>",
        "<|tools:end|>",
        "<|tool:begin|>",
        "<|tool:end|>",
        "<|tool_response|>",
        "<|tool_response:begin|>",
        "<|tool_response:id|>",
        "<|tool_response:name|>",
        "<|tool_response:result|>",
        "<|tool_response:end|>",
        "<|flush|>",
    ),
    id_length=10,
    models=("solar-open",),
    speech=Speech(
        opening=(
            "## Tools\n\n### Tool Call Instruction\nYou may invoke one or more tools to assist with the user's query."
            " Available tools are provided in JSON Schema format: <|tools:begin|><|tool:begin|><tools-json-object>"
            "<|tool:end|>...<|tools:end|>\n\n### Available Tools\n<|tools:begin|><|tool:begin|>",
            TOOLS,
            "<|tool:end|><|tools:end|>\n\n### Tool Call Format\nFor each tool call, return a JSON object with the"
            " following structure, enclosed within <|tool_call:begin|> and <|tool_call:end|> tags: \n<|tool_call:begin|>"
            "<tool-call-id><|tool_call:name|><tool-name><|tool_call:args|><args-json-object><|tool_call:end|>\n- The"
            " <tool-call-id> must be a randomly generated string consisting of 10 lowercase letters (a-z) and/or digits"
            " (0-9) (e.g., a1b2c3d4e5)\n\n### Tool Response Format\nEach tool is responded by `tool` with the following"
            " structure:\n<|tool_response:id|><tool-call-id><|tool_response:name|><tool-name><|tool_response:result|>"
            "<results><|tool_response:end|>\n- Ensure the <tool-call-id> matches the corresponding tool call",
        ),
        tools=ToolJson(lines=True, between="<|tool:end|><|tool:begin|>"),
        results=Results(
            "user",
            (
                "<|tool_response:begin|>",
                ID,
                "<|tool_response:name|>",
                NAME,
                "<|tool_response:result|>",
                RESULT,
                "<|tool_response:end|>",
            ),
            open="<|tool_response|>",
            between="",
        ),
    ),
)

SOLAR_OPEN2 = Dialect(
    "solar-open2",
    (
        "<|tool_call:start|>",
        NAME,
        "\n",
        Tagged("<|tool_arg:start|>", "<|tool_arg:value|>", "<|tool_arg:end|>\n"),
        "<|tool_call:end|>",
    ),
    thinking=Thinking("<|think:start|>", "<|think:end|>"),
    frame=("<|im:content|>", "<|im:end|>"),
    stop=("<|im:end|>",),
    control=(
        *("<|im:start|>", "<|tool:start|>", "<|tool:end|>"),
        *("<|tool_response:start|>", "<|tool_response:end|>"),
    ),
    models=("solar-open2",),
    speech=Speech(results=Results(each=("<|tool_response:start|>", RESULT, "<|tool_response:end|>"))),
)
