"""Measures how well models call functions: cases, contenders, verdicts, tables, pages, comparisons.

from toolspeak import evals

cases = evals.load("bfcl:simple[100:110]", "my-cases.jsonl", tools=[weather, calculator])
records = evals.run(cases, evals.contenders(["local", "ollama:NAME"]), "out")
print(evals.markdown(evals.summarise(records)))
evals.write_report("out")
print(evals.compare_folders("before", "out")[0].verdict)
"""

from .case import Case, Verdict
from .compare import Comparison, PairedCounts, compare, compare_folders
from .contender import Contender, contenders
from .datasets import load
from .report import write as write_report
from .results import Manifest, Record, read, read_manifest
from .runner import Settings, arun, put, run
from .stats import Estimate, difference, sign_test, wilson
from .summary import ContenderSummary, GroupScore, as_json, markdown, summarise, table
from .trace import unpacked

__all__ = [
    "Case",
    "Comparison",
    "Contender",
    "ContenderSummary",
    "Estimate",
    "GroupScore",
    "Manifest",
    "PairedCounts",
    "Record",
    "Settings",
    "Verdict",
    "arun",
    "as_json",
    "compare",
    "compare_folders",
    "contenders",
    "difference",
    "load",
    "markdown",
    "put",
    "read",
    "read_manifest",
    "run",
    "sign_test",
    "summarise",
    "table",
    "unpacked",
    "wilson",
    "write_report",
]
