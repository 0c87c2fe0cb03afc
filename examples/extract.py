"""Extract a Python value from a text: here a dataclass; any type that pydantic supports works.

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
