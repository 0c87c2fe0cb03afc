"""An MCP server over stdio with tools of our own making, as many as are asked for, of one of several services.

    python tools_server.py SERVICE COUNT

They do nothing: they are there to be listed by the programs that `record.py` runs, and to be put beside the tools of a
recorded request by `measure.py`.
"""

from __future__ import annotations

import json
import sys
from typing import Any

SERVICES = {
    "tracker": ["issue", "sprint", "label", "milestone", "board", "comment", "worklog", "release"],
    "forge": ["repository", "pull_request", "branch", "file", "commit", "workflow_run", "review", "tag"],
    "mail": ["message", "thread", "draft", "folder", "filter", "contact", "attachment", "signature"],
    "warehouse": ["table", "query", "schema", "row", "export", "dashboard", "report", "job"],
    "cloud": ["instance", "bucket", "log_group", "alarm", "secret", "function", "cluster", "deployment"],
    "browser": ["page", "tab", "screenshot", "form", "link", "console_message", "request", "cookie"],
    "notes": ["page", "block", "database", "template", "workspace", "backlink", "search", "export"],
    "chat": ["channel", "message", "reaction", "member", "reminder", "thread", "file", "status"],
    "crm": ["lead", "deal", "company", "activity", "pipeline", "quote", "task", "owner"],
    "design": ["frame", "component", "style", "comment", "version", "asset", "project", "token"],
}
"""The services, and what their tools handle."""
DEEDS = ["list", "get", "create", "update", "delete", "search", "read", "edit", "run", "watch"]
SAID = {
    "list": "Lists every {noun} that the account may see, page by page.",
    "get": "Gives one {noun} by its id, with all of its fields.",
    "create": "Creates a new {noun} and gives its id.",
    "update": "Changes fields of a {noun}; what is left out stays as it is.",
    "delete": "Deletes a {noun} for good. Ask the user first.",
    "search": "Searches each {noun} of {service} for words, and gives the best matches.",
    "read": "Reads the content of a {noun} as text.",
    "edit": "Edits the content of a {noun}: replaces one text by another.",
    "run": "Runs or triggers a {noun}, and waits until it has finished.",
    "watch": "Watches a {noun} and tells what changes or fails.",
}


def tools(service: str, count: int) -> list[dict[str, Any]]:
    """The first `count` tools of a service, as MCP lists them; 80 at most."""
    made: list[dict[str, Any]] = []
    for at in range(count):
        noun = SERVICES[service][at % 8]
        deed = DEEDS[(at + at // 8) % 10]
        spoken = noun.replace("_", " ")
        properties = {
            f"{noun}_id": {"type": "string", "description": f"Which {spoken} of {service} is meant."},
            "content": {"type": "string", "description": "The new content, or the words to look for."},
            "limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "How many are given at most."},
        }
        schema = {"type": "object", "properties": properties, "required": [f"{noun}_id"]}
        said = SAID[deed].format(noun=spoken, service=service)
        made.append({"name": f"{deed}_{noun}", "description": said, "inputSchema": schema})
    return made


def answer(asked: dict[str, Any], listed: list[dict[str, Any]]) -> dict[str, Any]:
    """The result of one request of the protocol."""
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        return {
            "protocolVersion": version,
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "ours", "version": "1"},
        }
    return {"tools": listed} if asked["method"] == "tools/list" else {}


def main() -> None:
    listed = tools(sys.argv[1], int(sys.argv[2]))
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked:
            told = {"jsonrpc": "2.0", "id": asked["id"], "result": answer(asked, listed)}
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
