"""Functionary, five formats: markers (v1), recipients (v2, v3), a token (v2.5), a tag (v3.1).

The tool `python` may get its code as plain text instead of JSON.
"""

from ..wire.dialect import NAME, RESULT, TEXT, TOOLS, Dialect, Header, Json, Raw, Results, Speech, ToolRows
from ._llama3 import CONTROL, LLAMA3

CODE = Json(plain=True)
TURNS = (
    "<|END_OF_SYSTEM|>",
    "<|END_OF_USER|>",
    "<|END_OF_ASSISTANT|>",
    "<|END_OF_FUNCTION_RESULT|>",
)

FUNCTIONARY_V1 = Dialect(
    "functionary-v1",
    ("<|START_OF_FUNCTION_CALL|>", NAME, ":\n", CODE, "<|END_OF_FUNCTION_CALL|>"),
    before="\n",
    thinking=None,
    frame=("<|END_OF_ASSISTANT|>",),
    stop=("<|END_OF_FUNCTION_CALL|>", "<|END_OF_ASSISTANT|>"),
    control=TURNS,
    models=("functionary-7b-v0", "functionary-7b-v1", "functionary-v1"),
)

FUNCTIONARY_V2 = Dialect(
    "functionary-v2",
    (CODE,),
    between="\n",
    before="\n",
    thinking=None,
    header=Header(
        "<|from|>assistant\n<|recipient|>",
        "<|content|>",
        (("^ all\n$", "text"), ("^all\n$", "text"), ("^ ", "call"), ("^", "call")),
        ("<|stop|>",),
        (
            "\n<|from|>assistant\n<|recipient|>",
            "\n<|from|> assistant\n<|recipient|>",
            "<|from|> assistant\n<|recipient|>",
            "<|recipient|>",
        ),
        (NAME, "\n"),
        text="all\n",
    ),
    stop=("<|stop|>",),
    control=("<|from|>", "<|recipient|>", "<|content|>", "<|stop|>"),
    models=("functionary-small-v2", "functionary-medium-v2", "functionary-7b-v2"),
)

FUNCTIONARY_V2_LLAMA3 = Dialect(
    "functionary-v2-llama3",
    ("<|reserved_special_token_249|>", NAME, "\n", CODE),
    thinking=None,
    stop=("<|eot_id|>", "<|end_of_text|>"),
    control=CONTROL,
    models=("functionary-small-v2.5", "functionary-medium-v2.5"),
    speech=Speech(native_results=Results("tool", ("name=", NAME, "\n", RESULT), grouped=False)),
    layout=LLAMA3,
)

FUNCTIONARY_V3 = Dialect(
    "functionary-v3",
    (CODE,),
    guard=True,
    thinking=None,
    header=Header(">>>", "\n", (("^all$", "text"), ("^", "call")), text="all"),
    stop=("<|eot_id|>", "<|end_of_text|>"),
    control=CONTROL,
    models=("functionary-medium-v3", "functionary-small-v3"),
    speech=Speech(native_results=Results("tool", (RESULT,), grouped=False)),
    layout=LLAMA3,
)

FUNCTIONARY_V31 = Dialect(
    "functionary-v31",
    ("<function=", NAME, ">", Json(), "</function>"),
    forms=(("<|python_tag|>", Raw("code", "python")),),
    stop=("<|eom_id|>", "<|eot_id|>"),
    control=CONTROL,
    models=("functionary-small-v3.1", "functionary-medium-v3.1", "functionary-v3.1"),
    speech=Speech(
        opening=(
            "You have access to the following functions:\n\n",
            TOOLS,
            "\n\n\nThink very carefully before calling functions.\nIf a you choose to call a function ONLY reply in the"
            " following format:\n<{start_tag}={function_name}>{parameters}{end_tag}\nwhere\n\nstart_tag => `<function`\n"
            "parameters => a JSON dict with the function argument name as key and function argument value as value.\n"
            'end_tag => `</function>`\n\nHere is an example,\n<function=example_function_name>{"example_name":'
            ' "example_value"}</function>\n\nReminder:\n- If looking for real time information use relevant functions'
            " before falling back to brave_search\n- Function calls MUST follow the specified format, start with"
            " <function= and end with </function>\n- Required parameters MUST be specified\n- Only call one function at a"
            " time\n- Put the entire function call reply on one line\n\n",
        ),
        tools=ToolRows(("Use the function '", NAME, "' to '", TEXT, "'\n", TOOLS)),
        native_results=Results("ipython", (RESULT,), grouped=False),
    ),
    layout=LLAMA3,
)
