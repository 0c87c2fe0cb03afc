"""How well models call functions, measured: cases, contenders, verdicts, tables, pages, comparisons.

from toolspeak import evals

cases = evals.load("bfcl:simple[100:110]", "my-cases.jsonl", tools=[weather, calculator])
records = evals.run(cases, evals.contenders(["local", "ollama:NAME"]), "out")
print(evals.markdown(evals.summarise(records)))
evals.write_report("out")
print(evals.compare_folders("before", "out")[0].verdict)
"""

from .case import Case, Verdict
from .compare import Comparison, Paired, compare, compare_folders
from .contender import Contender, contenders
from .record import Manifest, Record, read, read_manifest
from .recording import unpacked
from .report import write as write_report
from .running import Settings, arun, put, run
from .sources import load
from .stats import Estimate, difference, sign_test, wilson
from .summary import Group, Summary, as_json, markdown, summarise, table

__all__ = [
    "Case",
    "Comparison",
    "Contender",
    "Estimate",
    "Group",
    "Manifest",
    "Paired",
    "Record",
    "Settings",
    "Summary",
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
