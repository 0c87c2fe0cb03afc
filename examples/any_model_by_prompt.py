"""Function calling for any model, by prompt alone: decide, run, summarize.

The prompt lists the tools. The model answers with one JSON object: a tool with its input, or a message. This
program checks and runs the call. A second question turns the result into a sentence.

    python examples/any_model_by_prompt.py http://localhost:8000/v1#name --language Chinese
"""

import argparse
import random
import sys

import toolspeak as ts


@ts.tool(
    description="Get the current weather in a given location",
    parameters={
        "type": "object",
        "properties": {
            "location": {"type": "string", "description": "The city e.g. Beijing"},
            "unit": {"type": "string", "enum": ["celsius"]},
        },
        "required": ["location"],
    },
)
def get_current_weather(location: str, unit: str = "celsius") -> str:
    condition = random.choice(["sunny", "cloudy", "rainy", "snowy"])
    return f"The weather of {location} is {condition}, and the temperature is {random.randint(-10, 35)}°C."


@ts.tool(
    description="计算器",
    parameters={
        "type": "object",
        "properties": {
            "a": {"type": "integer", "description": "the first number"},
            "b": {"type": "integer", "description": "the second number"},
        },
        "required": ["a", "b"],
    },
)
def calculator(a: int, b: int) -> int:
    return a + b


TOOLS = ts.Toolbox(get_current_weather, calculator)


def answer(question: str, model: ts.Model, language: str) -> str:
    """The answer to a question, each question a conversation of its own."""
    decided = ts.decide(question, tools=TOOLS, model=model)
    if not decided.calls:
        return decided.text
    results = []
    for call in decided.calls:
        results.append(TOOLS.call(call))
        print(f"{call.name} {call.json} -> {results[-1]}")
    result = results[0] if len(results) == 1 else results
    return ts.conclude(question, result, language=language, model=model).text


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("model", help="a server's address, such as http://localhost:8000/v1#name, or ollama:NAME")
    options.add_argument("--language", default="Chinese", help="the language of answers that come from a tool")
    given = options.parse_args()
    try:
        model = ts.model(given.model, dialect="tool-json")
        for line in sys.stdin:
            print(answer(line.strip(), model, given.language))
    except ts.ToolspeakError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
