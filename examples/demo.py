"""A very small language model (135 million parameters), which was not trained on tools, calls Python functions.

The program asks three questions: small talk, the weather, a sum. It shows every step: the decision, the function's
result, and the answer in words. Nothing here is scripted. Ask your own question:

    python examples/demo.py "Is it raining in Oslo?"
"""

import sys
import time

import toolspeak as ts


def get_current_weather(location: str) -> str:
    """Get the current weather in a given location.

    Args:
        location: The city, e.g. Beijing
    """
    return f"The weather of {location} is cloudy, and the temperature is 35°C."


def calculator(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number
        b: The second number
    """
    return a + b


QUESTIONS = ["Hello!", "What is the weather in Xiamen?", "How much is 383 plus 135721?"]


def show(question: str) -> None:
    """Prints one question and every step of its answer."""
    print(f"you    {question}")
    speaking = False
    for event in ts.stream(question, tools=[get_current_weather, calculator], model="local", max_tokens=60):
        match event:
            case ts.CallStart(name=name):
                print(f"model  calls {name} ", end="", flush=True)
            case ts.ArgumentsDelta(json=arguments):
                print(arguments)
            case ts.CallResult(result=result):
                print(f"tool   {result.text}")
            case ts.TextDelta(text=text):
                print(text if speaking else f"model  {text}", end="", flush=True)
                speaking = True
            case _:
                pass
    print("\n")


def main() -> int:
    began = time.monotonic()
    try:
        for question in sys.argv[1:] or QUESTIONS:
            show(question)
    except ts.ToolspeakError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if sys.stderr.isatty():
        print(f"{time.monotonic() - began:.0f} seconds, most of them the model's", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
