"""Any model, by prompt alone: Thought, Action and Action Input, then an Observation with the result."""

from ..wire.dialect import NAME, RESULT, TOOL_NAMES, TOOLS, Dialect, Json, Results, Speech, Thinking, ToolJson

REACT = Dialect(
    "react",
    ("Action: ", NAME, "\nAction Input: ", Json(plain=True)),
    between="\n",
    before="\n",
    thinking=Thinking("Thought: ", "\n", frame_ends=True),
    frame=("Final Answer:",),
    stop=("\nObservation:",),
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
