"""Any model, by prompt alone: Thought, Action and Action Input, then an Observation with the result.

The labels are read in Markdown's bold too, as chat models write them.
"""

from ..wire.dialect import NAME, RESULT, TOOL_NAMES, TOOLS, Dialect, Json, Results, Speech, Thinking, ToolJson

ARGUMENTS = Json(plain=True)

REACT = Dialect(
    "react",
    ("Action: ", NAME, "\nAction Input: ", ARGUMENTS),
    between="\n",
    before="\n",
    forms=(
        ("**Action:** ", NAME, "\n**Action Input:** ", ARGUMENTS),
        ("**Action**: ", NAME, "\n**Action Input**: ", ARGUMENTS),
    ),
    thinking=Thinking("Thought: ", "\n", frame_ends=True, also=("**Thought:**", "**Thought**:")),
    frame=("Final Answer:", "**Final Answer:**", "**Final Answer**:"),
    stop=("\nObservation:", "\n**Observation:**", "\n**Observation**:"),
    control=("Observation:",),
    speech=Speech(
        opening=(
            "These tools are offered, one to a line, each with the JSON Schema of its parameters:\n",
            TOOLS,
            "\n\nTo use one, write exactly three lines, then wait for its result, which comes after Observation:\n"
            "Thought: what you need to know and why\nAction: one of ",
            TOOL_NAMES,
            "\nAction Input: the tool's parameters as one JSON object\n\nWhen you can answer the user, write:\n"
            "Thought: what the answer rests on\nFinal Answer: the answer",
        ),
        tools=ToolJson(lines=True),
        results=Results("user", ("Observation: ", RESULT)),
    ),
)
