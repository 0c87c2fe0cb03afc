"""The least that a proxy in Python does: an ASGI application that passes requests on and answers back, unread.

python passthrough.py PORT UPSTREAM
"""

from __future__ import annotations

import sys
from typing import Any

import aiohttp
import uvicorn

PORT, UPSTREAM = int(sys.argv[1]), sys.argv[2]
_session: list[aiohttp.ClientSession] = []


async def app(scope: Any, receive: Any, send: Any) -> None:
    if not _session:
        _session.append(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    headers = {"content-type": "application/json"}
    async with _session[0].post(UPSTREAM + scope["path"], data=body, headers=headers) as answer:
        kind = [(b"content-type", answer.headers["content-type"].encode())]
        length = answer.headers.get("content-length")
        if length:
            kind.append((b"content-length", length.encode()))
        await send({"type": "http.response.start", "status": answer.status, "headers": kind})
        async for chunk in answer.content.iter_any():
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    uvicorn.run(app, port=PORT, log_level="error", access_log=False, lifespan="off", ws="none")
