"""dspy: native calls of a predictor, which dspy leaves to its caller to run, over chat."""

from __future__ import annotations

from typing import Any

import dspy
import litellm
from steps import KEY, URL, clock, main, weather

RUN = {"weather": weather, "clock": clock}


def native(model: str) -> str:
    litellm.register_model({f"openai/{model}": {"litellm_provider": "openai", "supports_function_calling": True}})
    lm = dspy.LM(f"openai/{model}", api_base=f"{URL}/v1", api_key=KEY, cache=False)
    found = ""
    with dspy.context(lm=lm, adapter=dspy.ChatAdapter(use_native_function_calling=True)):
        for name in RUN:
            predict: Any = dspy.Predict("question, tools: list[dspy.Tool] -> calls: dspy.ToolCalls")
            told = predict(question=f"[[{name} city=Xiamen]]", tools=[dspy.Tool(one) for one in RUN.values()])
            for call in told.calls.tool_calls:
                found = RUN[call.name](**call.args)
    return found


if __name__ == "__main__":
    main({"chat": native})
