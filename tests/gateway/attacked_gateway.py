"""The gateway that memory.py attacks: python tests/gateway/attacked_gateway.py ENDLESS HOSTILE FOLDER SCALE

`m` answers Hello, `echo` the last text that it was sent, and `chat`, `messages` and `responses` ask the server at ENDLESS.
The model `embeds` and the tools of the key `tools` are those of the server at HOSTILE. FOLDER has the stored responses and
the audit. Limits of what a server sends are multiplied by SCALE. It prints its port.
"""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import AsyncIterator
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from attacks import AUDIT_KEY, KEYS, MAIN_KEY, TOOL_KEY
from hostile_servers import MCP

import toolspeak.models.resolve as names
from toolspeak.api import call_deltas, json_stream, sse_parser
from toolspeak.events import Event, Finished, TextDelta
from toolspeak.gateway.access.keys import digest
from toolspeak.gateway.call_policy import CallPolicy
from toolspeak.gateway.config.settings import (
    Audit,
    GatewayLimits,
    GatewaySettings,
    Key,
    McpServer,
    ModelSettings,
    Rates,
    StoreSettings,
)
from toolspeak.gateway.serve.server import listen, serve
from toolspeak.models.scripted import Scripted
from toolspeak.policy.policy import Policy
from toolspeak.types import Request
from toolspeak.wire.reading import reply_size_limits
from toolspeak.wire.reading.marker_restoring import Restorer


class Echo(Scripted):
    """Answers with the last text that it was sent, as its sender wrote it: a copy of broken markers would be no call."""

    async def stream(self, request: Request) -> AsyncIterator[Event]:
        text = next(one["content"] for one in reversed(request.messages) if one["role"] == "user")
        restorer = Restorer()  # in pieces: at once, this model would hold the event loop
        pieces = (TextDelta(text[i : i + 1000]) for i in range(0, len(text), 1000))
        for event in chain(pieces, [Finished("stop")]):
            for restored in restorer.feed([event]):
                yield restored


def keys() -> list[Key]:
    """The keys of attackers: see attacks.py."""
    rates = Rates(requests=10**9, tokens=10**9)
    audited = CallPolicy(Policy(allow=["*"]))
    return [
        Key(MAIN_KEY, digest(MAIN_KEY)),
        Key(TOOL_KEY, digest(TOOL_KEY), mcp=("web",)),
        Key(AUDIT_KEY, digest(AUDIT_KEY), policy=audited),
        *(Key(f"key{i}", digest(f"key{i}"), rates=rates) for i in range(KEYS)),
    ]


def main(endless: str, hostile: str, folder: str, scale: float) -> None:
    for module in (sse_parser, json_stream, call_deltas):
        module.LONGEST = int(scale * module.LONGEST)  # pyright: ignore[reportPrivateImportUsage]
    reply_size_limits.CHARACTERS = int(scale * reply_size_limits.CHARACTERS)
    reply_size_limits.LIKELIHOODS = int(scale * reply_size_limits.LIKELIHOODS)
    os.environ |= {"OPENAI_BASE_URL": f"{endless}/v1", "ANTHROPIC_BASE_URL": endless}
    scripted = {"Hello": Scripted(["Hello"], repeat=True), "echo": Echo(["echo"], repeat=True)}
    for model in scripted.values():
        model.requests = deque(maxlen=1)  # type: ignore[assignment] # it would keep all
    names._scripted = lambda text, options: scripted[text]
    models = [
        ModelSettings(name, (f"scripted:{text}",), dialect="hermes", mode="chat")
        for name, text in (("m", "Hello"), ("echo", "echo"))
    ]
    servers = {"chat": f"{endless}/v1#m", "messages": "anthropic:m", "responses": "openai-responses:m"}
    models += [ModelSettings(name, (server,), mode="native", key="k") for name, server in servers.items()]
    models.append(ModelSettings("embeds", (f"{hostile}/v1#m",), mode="native", key="k"))
    settings = GatewaySettings(
        {model.name: model for model in models},
        port=0,
        limits=GatewayLimits(attempts=1, failures=10**9),
        keys=tuple(keys()),
        mcp={"web": McpServer(f"{hostile}{MCP}", prefix="web_", pins=f"{folder}/pins.json")},
        store=StoreSettings(f"{folder}/store.sqlite", responses=True, size=64_000_000),
        audit=Audit(f"{folder}/audit.sqlite", arguments=True),
    )
    listening = listen(settings)
    print(f"port {listening.getsockname()[1]}", flush=True)
    serve(settings, listening)


if __name__ == "__main__":
    main(*sys.argv[1:4], float(sys.argv[4]))
