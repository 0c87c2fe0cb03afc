"""A command that becomes `toolspeak` in a copy of the preloaded process, for code that starts programs by itself.

`COMMAND` is a small program that imports almost nothing. It hands its streams, arguments, folder and environment over a socket
to the tests, which start the copy. It passes signals on, and ends when the copy does; killed, it takes the copy along.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
from pathlib import Path

from preloaded import Started

COMMAND = """
import json, os, signal, socket, sys
tests = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
tests.connect(sys.argv[1])
message = json.dumps([sys.argv[2:], dict(os.environ), os.getcwd()]).encode()
socket.send_fds(tests, [message], [0, 1, 2])
os.closerange(0, 3)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, lambda number, _: tests.send(b"%d" % number))
code = int(tests.recv(16) or 1)
os._exit(code if code >= 0 else 128 - code)
"""


@functools.cache
def toolspeak_command() -> list[str]:
    """What to run in place of `python -m toolspeak`."""
    folder = tempfile.mkdtemp(prefix="toolspeak-tests-command-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    program, address = Path(folder, "toolspeak.py"), str(Path(folder, "tests"))
    program.write_text(COMMAND, "utf-8")
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(address)
    listening.listen()
    threading.Thread(target=_accept, args=(listening,), daemon=True).start()
    return [sys.executable, "-I", "-S", str(program), address]


def _accept(listening: socket.socket) -> None:
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_become, args=(connection,), daemon=True).start()


def _become(connection: socket.socket) -> None:
    with connection:
        message, streams, _, _ = socket.recv_fds(connection, 1 << 20, 3)
        args, env, folder = json.loads(message)
        process = Started(args, stdin=streams[0], stdout=streams[1], stderr=streams[2], env=env, cwd=Path(folder))
        for stream in streams:
            os.close(stream)
        threading.Thread(target=_pass_signals, args=(connection, process), daemon=True).start()
        code = process.wait()
        with contextlib.suppress(OSError):  # whoever waited for it was killed
            connection.send(b"%d" % code)
            connection.shutdown(socket.SHUT_RDWR)


def _pass_signals(connection: socket.socket, process: Started) -> None:
    with contextlib.suppress(OSError):
        while process.returncode is None:
            os.kill(process.pid, int(connection.recv(16) or signal.SIGKILL))
