"""The same model with a smaller toolbox: a model cannot call a tool that is not in the box, whatever it writes.

python examples/restrict.py
"""

import toolspeak as ts

FILES = {"notes.txt": "Buy milk.", "plan.txt": "Rest."}


def read_file(name: str) -> str:
    """Read a file and give its text."""
    return FILES[name]


def delete_file(name: str) -> str:
    """Delete a file."""
    del FILES[name]
    return f"{name} is gone"


everything = ts.Toolbox(read_file, delete_file)
safe = everything.without("delete_*")

for box in (safe, everything):
    decided = ts.decide("Delete the file plan.txt", tools=box)
    print(f"{box} wants {[f'{call.name} {call.json}' for call in decided.calls]}")

try:
    safe.call({"name": "delete_file", "arguments": {"name": "plan.txt"}})
except ts.UnknownTool as error:
    print(error)
print(", ".join(FILES))
