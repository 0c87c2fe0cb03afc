"""Commands whose extra is not installed: one line with the command that installs it, and no traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

WITHOUT = "import sys\nfor name in sys.argv.pop(1).split(','):\n    sys.modules[name] = None\n"
RUN = f"{WITHOUT}from toolspeak.cli import main\nsys.exit(main(sys.argv[1:]))\n"
MODULES = {
    "batch": "pyarrow",
    "dense": "tokenizers,safetensors",
    "local": "xllamacpp",
    "mcp": "mcp",
    "openapi": "yaml",
    "ray": "ray",
    "search": "numpy,Stemmer",
    "server": "uvicorn,httptools,prometheus_client,python_multipart",
}
COMMANDS = [
    ("batch", ["batch", "rows.parquet", "out", "-m", "scripted:x", "--prompt", "{a}"]),
    ("dense", ["route", "Sum?", "-t", "weather.py", "-m", "scripted:x", "--embed", "minilm"]),
    ("local", ["ask", "Hi", "-m", "local"]),
    ("local", ["tune", "local", "-t", "weather.py"]),
    ("mcp", ["tools", "mcp:true"]),
    ("mcp", ["mcp", "-t", "weather.py"]),
    ("mcp", ["mcp", "login", "http://127.0.0.1:9/mcp"]),
    ("openapi", ["tools", "openapi:pets.yaml"]),
    ("ray", ["batch", "rows.jsonl", "out", "-m", "scripted:x", "--prompt", "{question}", "--no-id", "--ray"]),
    ("search", ["route", "Sum?", "-t", "weather.py", "-m", "scripted:x"]),
    ("search", ["route", "--eval", "rows.jsonl", "-t", "weather.py", "-m", "scripted:x"]),
    ("server", ["serve", "-m", "m=scripted:x", "--port", "0"]),
    ("server", ["ui", "-m", "scripted:x", "--port", "0"]),
    ("server", ["launch", "aider", "-m", "scripted:x"]),
]


@pytest.mark.parametrize(("extra", "args"), COMMANDS, ids=[f"{extra}: {args[0]} {args[1]}" for extra, args in COMMANDS])
def test_a_missing_extra_is_a_line_with_the_command_that_installs_it(extra: str, args: list[str], place: Path) -> None:
    (place / "rows.jsonl").write_text('{"question": "Sum?", "tools": ["add"]}\n')
    (place / "rows.parquet").write_bytes(b"PAR1")
    (place / "pets.yaml").write_text("openapi: 3.0.3\npaths: {}\n")
    command = [sys.executable, "-c", RUN, MODULES[extra], *args]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert f"pip install 'toolspeak[{extra}]'" in line
    assert "ModuleNotFoundError" not in line
