"""Cohere Command: `Action:` and a list in a code fence (R, R+), or a list between action markers (R7B, A, North)."""

from dataclasses import replace

from ..wire.dialect import ARGS, INDEX, NAME, RESULT, TOOLS, Dialect, JsonCall, Results, Speech, Thinking, ToolJson
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

RULES = """\
Think about how you can make best use of the provided tools to help with the task and come up with a high level plan that you will execute first.

0. Start by writing <|START_THINKING|> followed by a detailed step by step plan of how you will solve the problem. For each step explain your thinking fully and give details of required tool calls (if needed). Unless specified otherwise, you write your plan in natural language. When you finish, close it out with <|END_THINKING|>.
    You can optionally choose to skip this step when the user request is so straightforward to address that only a trivial plan would be needed.
    NOTE: You MUST skip this step when you are directly responding to the user's request without using any tools.

Then carry out your plan by repeatedly executing the following steps.
1. Action: write <|START_ACTION|> followed by a list of JSON-formatted tool calls, with each one containing "tool_name" and "parameters" fields.
    When there are multiple tool calls which are completely independent of each other (i.e. they can be executed in parallel), you should list them out all together in one step. When you finish, close it out with <|END_ACTION|>.
2. Observation: you will then receive results of those tool calls in JSON format in the very next turn, wrapped around by <|START_TOOL_RESULT|> and <|END_TOOL_RESULT|>. Carefully observe those results and think about what to do next. Note that these results will be provided to you in a separate turn. NEVER hallucinate results.
    Every tool call produces a list of results (when a tool call produces no result or a single result, it'll still get wrapped inside a list). Each result is clearly linked to its originating tool call via its "tool_call_id".
3. Reflection: start the next turn by writing <|START_THINKING|> followed by what you've figured out so far, any changes you need to make to your plan, and what you will do next. When you finish, close it out with <|END_THINKING|>.
    You can optionally choose to skip this step when everything is going according to plan and no special pieces of information or reasoning chains need to be recorded.
    NOTE: You MUST skip this step when you are done with tool-use actions and are ready to respond to the user.

You can repeat the above 3 steps multiple times (could be 0 times too if no suitable tool calls are available or needed), until you decide it's time to finally respond to the user.

4. Response: then break out of the loop and write <|START_RESPONSE|> followed by a piece of text which serves as a response to the user's last request. Use all previous tool calls and results to help you when formulating your response. When you finish, close it out with <|END_RESPONSE|>."""

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
    speech=Speech(
        opening=(
            "## Available Tools\nHere is a list of tools that you have available to you:\n\n```json\n",
            TOOLS,
            "\n```\n\nWrite 'Action:' followed by a json-formatted list of actions that you want to perform in order to"
            " produce a good response to the user's last input. You can use any of the supplied tools any number of"
            " times, but you should aim to execute the minimum number of necessary actions for the input. The list of"
            " actions you want to call should be formatted as a list of json objects, for example:\n```json\n[\n    {\n"
            '        "tool_name": title of the tool in the specification,\n        "parameters": a dict of parameters to'
            " input into the tool as they are defined in the specs, or {} if it takes no parameters\n    }\n]```",
        ),
        tools=ToolJson(indent=4),
        results=Results("user", ("<results>\n", RESULT, "</results>")),
    ),
)

COUNTED = JsonCall(
    (("tool_call_id", INDEX), ("tool_name", NAME), ("parameters", ARGS)),
    (("name", NAME), ("arguments", ARGS)),
)

COMMAND_R7B = Dialect(
    "command-r7b",
    (COUNTED,),
    open="<|START_ACTION|>",
    close="<|END_ACTION|>",
    items=LINES,
    forms=((COUNTED,),),
    thinking=Thinking("<|START_THINKING|>", "<|END_THINKING|>"),
    frame=("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>", "<|END_OF_TURN_TOKEN|>"),
    stop=("<|END_OF_TURN_TOKEN|>",),
    control=(*CONTROL, *MORE),
    models=("command-r7b", "command-a", "c4ai-command-a"),
    speech=Speech(
        opening=(
            f"## Tool Use\n{RULES}\n\n## Available Tools\nHere is the list of tools that you have available to you.\n"
            "You can ONLY use the tools listed here. When a tool is not listed below, it is NOT available and you should"
            ' NEVER attempt to use it.\nEach tool is represented as a JSON object with fields like "name",'
            ' "description", "parameters" (per JSON Schema), and optionally, "responses" (per JSON Schema).\n\n'
            "```json\n[\n    ",
            TOOLS,
            "\n]\n```",
        ),
        tools=ToolJson(lines=True, between=",\n    "),
        results=Results(
            "user",
            open="<|START_TOOL_RESULT|>",
            close="<|END_TOOL_RESULT|>",
            record=(("tool_call_id", INDEX), ("results", RESULT)),
            decoded=True,
            indent=4,
        ),
    ),
)

COHERE2_MOE = replace(COMMAND_R7B, name="cohere2-moe", models=("cohere2", "north-mini", "command-4"))
