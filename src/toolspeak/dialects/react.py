"""Any model, by prompt alone: Thought, Action and Action Input, then the observation it is told."""

from ..wire.syntax import NAME, Dialect, Json, Thinking

REACT = Dialect(
    "react",
    ("Action: ", NAME, "\nAction Input: ", Json(plain=True)),
    between="\n",
    before="\n",
    thinking=Thinking("Thought: ", "\n", call_ends=True),
    frame=("Final Answer:",),
    stop=("\nObservation:",),
    control=("Observation:",),
)
