"""Feeds every dialect damaged texts, and every endpoint wrong bodies, for so many seconds:
python tests/fuzz/run.py [SECONDS] [--seed N] [--again FILE]

A quarter of the time asks the gateway with wrong bodies (bodies.py), a quarter goes to MCP servers that answer wrongly
(mcp_servers.py) and to OpenAPI documents that are damaged (openapi_documents.py). Half of the rest damages known wires, the other
half is atheris, led by what code a text reaches, where it is installed. What it looks for stands in judge.py and
tests/wire/checks.py. The last line is what was done; exits 1 when something was found, its least input kept in .fuzz/.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from time import time

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "src")]

from asking import asked_again, bodies
from judge import FOUND, judged, kind, least, save, steep
from seeds import NAMES, Input, mutated

import mcp_servers  # isort: skip
import openapi_documents  # isort: skip

MOST = 10
"""So many findings are enough."""
EACH_STEEP = 40
"""One text of so many is not damaged but made long."""


def main() -> int:
    asked = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    asked.add_argument("seconds", nargs="?", type=float, default=60)
    asked.add_argument("--seed", type=int, default=None, help="to do the same again")
    asked.add_argument("--again", type=Path, help="judge one kept finding")
    told = asked.parse_args()
    if told.again:
        case = json.loads(told.again.read_text("utf-8"))
        problem = (
            asked_again(case)
            if "body" in case
            else mcp_servers.tried_again(case)
            if "steps" in case
            else openapi_documents.tried_again(case)
            if "document" in case
            else judged(Input(**{key: value for key, value in case.items() if key != "problem"}))
        )
        print(problem or "nothing wrong")
        return bool(problem)
    guided = find_spec("atheris") is not None
    begin = time()
    seed = told.seed if told.seed is not None else int(begin)
    if not guided:
        print("atheris is not installed for this Python: all of the time damages known wires")
    asked_bodies, wrong = bodies(told.seconds / 4, seed)
    servers, wrong_servers = mcp_servers.servers(told.seconds / 8, seed)
    documents, wrong_documents = openapi_documents.documents(told.seconds / 8, seed)
    wrong += wrong_servers + wrong_documents
    end = begin + told.seconds
    inputs, found = damaged((end - time()) / (2 if guided else 1), seed)
    reached, more = by_reach(end - time(), seed) if guided and not found else (0, 0)
    findings = wrong + len(found) + more
    print(
        f"fuzz: {inputs + reached} inputs ({inputs} damaged, {reached} by atheris), {len(NAMES)} dialects, "
        f"{asked_bodies} bodies, {servers} MCP servers, {documents} OpenAPI documents, {time() - begin:.0f} s, seed {seed}, {findings} findings"
    )
    return bool(findings)


def damaged(limit: float, seed: int) -> tuple[int, set[tuple[str, str]]]:
    """How many inputs, and what was found: (dialect, kind of problem), each told once."""
    rng, end, inputs = random.Random(seed), time() + limit, 0
    found: set[tuple[str, str]] = set()
    while time() < end and len(found) < MOST:
        inputs += 1
        if inputs % EACH_STEEP:
            case = mutated(rng)
            problem = judged(case)
        else:
            case, problem = steep(rng)
        if problem and (case.dialect, kind(problem)) not in found:
            found.add((case.dialect, kind(problem)))
            tell(case, problem)
    return inputs, found


def tell(case: Input, problem: str) -> None:
    smallest = case if problem.startswith(("grows", "hang")) else least(case, problem)
    problem = judged(smallest) or problem
    print(f"FOUND {problem}\n  {smallest}\n  kept in {save(smallest, problem)}", flush=True)


def by_reach(limit: float, seed: int) -> tuple[int, int]:
    """The same by atheris, in a process of its own, since it ends the one it runs in."""
    before = set(FOUND.glob("*.json"))
    words = [
        str(HERE / "guided.py"),
        f"-max_total_time={max(1, int(limit))}",
        f"-seed={seed % 2**31 or 1}",
        "-max_len=120",
    ]
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False)
    told = done.stdout.splitlines()
    inputs = max((int(line.split()[1]) for line in told if line.startswith("inputs ")), default=0)
    findings = len(set(FOUND.glob("*.json")) - before)
    if done.returncode and not findings:
        print(done.stderr[-3000:])
        return inputs, 1
    print("\n".join(line for line in told if not line.startswith("inputs ")), end="")
    return inputs, findings


if __name__ == "__main__":
    raise SystemExit(main())
