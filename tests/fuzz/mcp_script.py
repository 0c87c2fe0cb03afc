"""An MCP server that answers one method as a script says, and all others as it should: over stdio where it is run with
$SCRIPT.

A script is JSON: `method` is what is answered wrongly, `steps` how. A step is one of {"json": a message, in which "ID"
stands for the id of the request}, {"raw": text in latin-1}, {"times": how often the step before it is said again, -1 for
ever}, {"wait": seconds}, {"pulse": seconds between saying the same for ever, over HTTP}, {"end": true}, which closes the
connection. `modern` speaks the version with server/discover.
It uses the standard library alone, since a process of it is started for each script.
"""

import json
import os
import sys
import time

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}}
NEWEST = "2026-07-28"
TOOLS = [
    {
        "name": "look",
        "title": "Look",
        "description": "Looks.",
        "inputSchema": TEXT,
        "annotations": {"readOnlyHint": True},
    },
    {"name": "act", "description": "Acts.", "inputSchema": TEXT, "outputSchema": {"type": "object"}},
]
INFO = {"serverInfo": {"name": "script", "version": "1"}, "capabilities": {"tools": {"listChanged": True}}}
BLOCKS = [
    {"type": "text", "text": "done"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"},
    {"type": "resource", "resource": {"uri": "file:///a", "text": "b", "mimeType": "text/plain"}},
    {"type": "resource_link", "uri": "file:///a", "name": "a", "description": "d", "size": 3},
]  # fmt: skip
GOOD = {
    "server/discover": {"supportedVersions": [NEWEST], "resultType": "complete", "instructions": "Hi", **INFO},
    "initialize": {"protocolVersion": "2025-06-18", "instructions": "Hi", **INFO},
    "tools/list": {"tools": TOOLS, "nextCursor": None, "resultType": "complete"},
    "tools/call": {"content": BLOCKS, "structuredContent": {"a": 1}, "isError": False, "resultType": "complete"},
    "ping": {},
}


def message(method, modern):
    """What a server should answer."""
    if method not in GOOD or (method == "server/discover" and not modern):
        return {"jsonrpc": "2.0", "id": "ID", "error": {"code": -32601, "message": "no such method"}}
    result = {key: value for key, value in GOOD[method].items() if value is not None}
    return {"jsonrpc": "2.0", "id": "ID", "result": result}


def steps_for(script, method):
    """What is answered to a request of a method."""
    if method == script["method"]:
        return script["steps"]
    return [{"json": message(method, script.get("modern"))}]


def with_id(value, known):
    """A message with the request's id where ID stands."""
    if value == "ID":
        return known
    if isinstance(value, dict):
        return {key: with_id(one, known) for key, one in value.items()}
    return [with_id(one, known) for one in value] if isinstance(value, list) else value


def written(step, known):
    return step["raw"].encode("latin-1") if "raw" in step else json.dumps(with_id(step["json"], known)).encode() + b"\n"


def main():
    script = json.loads(os.environ["SCRIPT"])
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked or "method" not in asked:
            continue
        last = b""
        for step in steps_for(script, asked["method"]):
            if "end" in step:
                os._exit(0)
            if "wait" in step:
                time.sleep(step["wait"])
                continue
            if "times" in step:
                left = step["times"]
                many = last * max(1, 65536 // len(last)) if left < 0 else last
                while left:
                    os.write(1, many)
                    left -= 1
                continue
            last = written(step, asked["id"])
            data = last
            while data:
                data = data[os.write(1, data) :]


if __name__ == "__main__":
    try:
        main()
    except (OSError, KeyboardInterrupt):
        os._exit(0)
