"""The events of a run as they happen: the call, its result, the answer.

python examples/stream.py
"""

import toolspeak as ts


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


for event in ts.stream("How much is 17 plus 25?", tools=[add]):
    match event:
        case ts.CallStart(name=name):
            print(f"{name} ", end="", flush=True)
        case ts.ArgumentsDelta(json=arguments):
            print(arguments, end="", flush=True)
        case ts.CallResult(result=result):
            print(f" -> {result.text}")
        case ts.TextDelta(text=text):
            print(text, end="", flush=True)
print()
