"""CWM (Code World Model): `<tool: NAME>`, the arguments, `</tool>`, each on its own lines.

Arguments that are not JSON are the text of the tool's first parameter, since the model was trained on `bash`.
"""

from ..wire.dialect import ARGS, NAME, RESULT, TEXT, TOOLS, Dialect, Json, Results, Speech, Thinking, ToolRows
from ._llama3 import CONTROL, LLAMA3

CWM = Dialect(
    "cwm",
    ("<tool: ", NAME, ">\n", Json(plain=True), "\n</tool>"),
    between="\n",
    before="\n",
    thinking=Thinking("<think>\n", "\n</think>\n"),
    stop=("<|eot_id|>",),
    control=CONTROL,
    models=("cwm",),
    speech=Speech(
        opening=("You have access to the following tools:\n", TOOLS),
        tools=ToolRows(
            (
                *("<tool: ", NAME, ">\n[json params]\n</tool>\n", TEXT),
                *("\n\nParameters must respect the following schema: ", ARGS),
            ),
            indent=2,
        ),
        native_results=Results("tool", (RESULT,), grouped=False),
    ),
    layout=LLAMA3,
)
