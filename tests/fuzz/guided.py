"""The inputs that atheris makes, led by the code they reach; run.py starts this, with the options of libFuzzer."""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

with atheris.instrument_imports(include=["toolspeak.wire"]):
    import toolspeak.wire.decode

from judge import judged, least, save
from seeds import from_bytes

EACH = 100
inputs = 0


def one(data: bytes) -> None:
    """Judges one input; the first that is wrong ends the run."""
    global inputs
    inputs += 1
    if inputs % EACH == 0:
        print("inputs", inputs, flush=True)
    case = from_bytes(data)
    if problem := judged(case):
        smallest = least(case, problem)
        print(f"FOUND {problem}\n  {smallest}\n  kept in {save(smallest, problem)}", flush=True)
        raise RuntimeError(problem)


if __name__ == "__main__":
    assert toolspeak.wire.decode.Decoder
    atheris.Setup([*sys.argv, "-artifact_prefix=/dev/null"], one)
    atheris.Fuzz()
