"""The gateway as it is measured: one model behind a chat server, its tools written in a dialect into the messages.

python spoken.py PORT UPSTREAM
"""

from __future__ import annotations

import sys

from toolspeak.gateway.config.settings import GatewaySettings, ModelSettings
from toolspeak.gateway.serve.server import listen, serve

if __name__ == "__main__":
    model = ModelSettings("m", (f"{sys.argv[2]}/v1#m",), mode="chat", dialect="hermes")
    settings = GatewaySettings({"m": model}, port=int(sys.argv[1]))
    serve(settings, listen(settings))
