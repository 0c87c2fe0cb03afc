"""An MCP server that does what a file of JSON tells it, and writes down what it was asked: `told_server.py STATE`.

It speaks the protocol by hand, with the standard library alone, so that it can also say what no library would let it.
STATE holds `tools`, the definitions; beside it, in STATE.log, stands each call that came.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

STATE = Path(sys.argv[1])
LOG = STATE.with_suffix(".log")
PAGE = 2


def log(word: str) -> None:
    with LOG.open("a") as file:
        file.write(word + "\n")


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a call; None where none is given."""
    log(name)
    if name == "die" or (name == "look" and LOG.read_text().count("look\n") == 1):
        os._exit(1)
    if name == "slow":
        return None
    if name == "announce":
        say({"method": "notifications/tools/list_changed"})
    if name == "environment":
        return text(" ".join(sorted(os.environ)))
    if name == "fail":
        return text("no such city", isError=True)
    return text(str(arguments.get("text", name)))


def answer(asked: dict[str, Any]) -> None:
    method, params = asked["method"], asked.get("params") or {}
    if method == "notifications/cancelled":
        log("cancelled")
    if "id" not in asked:
        return None
    result: dict[str, Any] | None = None
    if method == "initialize":
        info = {"name": "told", "version": "1"}
        offers = {"tools": {"listChanged": True}}
        result = {"protocolVersion": params["protocolVersion"], "capabilities": offers, "serverInfo": info}
    elif method == "tools/list":
        tools = json.loads(STATE.read_text())["tools"]
        start = int(params.get("cursor", 0))
        more = {"nextCursor": str(start + PAGE)} if start + PAGE < len(tools) else {}
        result = {"tools": tools[start : start + PAGE], **more}
    elif method == "tools/call" and params["name"] == "error":
        return say({"id": asked["id"], "error": {"code": -32603, "message": "out of order"}})
    elif method == "tools/call":
        result = called(params["name"], params.get("arguments") or {})
        if result is None:
            return None
    else:
        return say({"id": asked["id"], "error": {"code": -32601, "message": "no such method"}})
    return say({"id": asked["id"], "result": result})


def main() -> None:
    log(f"started {os.getpid()}")
    print("ready to serve", file=sys.stderr, flush=True)
    print("Welcome!", flush=True)  # no message of the protocol: many servers do so all the same
    for line in sys.stdin:
        answer(json.loads(line))


if __name__ == "__main__":
    main()
