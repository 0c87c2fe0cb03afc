"""Python calls in a list: `[f(k='v', n=3), g()]`, bare or (Llama 4) between markers.

Llama 4 writes JSON calls instead if its prompt asks for them, as the model's own chat template does.
"""

from dataclasses import replace

from ..wire.dialect import NAME, RESULT, TOOLS, Dialect, Keywords, Results, Speech, ToolJson
from ._llama3 import JSON_CALL, LLAMA3

TOOLS_PROMPT = """\
You are an expert in composing functions. You are given a question and a set of possible functions.
Based on the question, you will need to make one or more function/tool calls to achieve the purpose.
If none of the functions can be used, point it out. If the given question lacks the parameters required by the function, also point it out. You should only return the function call in tools call sections.

If you decide to invoke any of the function(s), you MUST put it in the format of [func_name1(params_name1=params_value1, params_name2=params_value2...), func_name2(params)]
You SHOULD NOT include any other text in the response.

Here is a list of functions in JSON format that you can invoke.

"""

PYTHONIC = Dialect(
    "pythonic",
    (NAME, Keywords()),
    items=("[", ", ", "]"),
    also=(("<|python_start|>", "<|python_end|>"),),
    before="\n",
    guard=True,
    thinking=None,
    stop=("<|eot_id|>", "<|eom_id|>"),
    models=("toolace", "watt-tool"),
    speech=Speech(
        (TOOLS_PROMPT, TOOLS),
        tools=ToolJson(indent=4),
        native_results=Results("ipython", (RESULT,), grouped=False),
    ),
    layout=LLAMA3,
)

LLAMA4_PYTHONIC = replace(
    PYTHONIC,
    name="llama4-pythonic",
    open="<|python_start|>",
    close="<|python_end|>",
    also=(("[", "]"),),
    forms=((JSON_CALL,),),
    before="",
    stop=("<|eot|>", "<|eom|>"),
    layout=replace(LLAMA3, head=("<|header_start|>", "<|header_end|>\n\n"), end="<|eot|>"),
    control=("<|begin_of_text|>", "<|header_start|>", "<|header_end|>", "<|eot|>", "<|eom|>", "<|eom_id|>", "<|step|>"),
    models=("llama-4",),
)
