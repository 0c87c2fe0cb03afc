"""A text into a Python value: a dataclass here; any type that pydantic knows will do.

python examples/extract.py "Bob is 45"
"""

import sys
from dataclasses import dataclass

import toolspeak as ts


@dataclass
class Person:
    name: str
    age: int


for text in sys.argv[1:] or ["Alice is 31 years old."]:
    try:
        print(ts.extract(text, Person))
    except ts.GenerationError as error:
        print(f"nobody found in {text!r}: {error}", file=sys.stderr)
