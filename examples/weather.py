"""The smallest program: one function, one question.

python examples/weather.py
"""

import toolspeak as ts


def weather(city: str) -> str:
    """Get the current weather in a city."""
    return f"Sunny, 21 °C in {city}"


print(ts.run("What is the weather in Xiamen?", tools=[weather]).text)
