"""The guard that keeps the tests off the network does, here and in the processes they start."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys

import pytest

FAR = ("192.0.2.1", 80)  # set aside for documentation: nobody is there


def test_far_addresses_are_refused_with_a_clear_message() -> None:
    with socket.socket() as sock, pytest.raises(RuntimeError, match="only talk to loopback"):
        sock.connect(FAR)
    with socket.socket() as sock, pytest.raises(RuntimeError, match="only talk to loopback"):
        sock.connect_ex(FAR)
    with socket.socket(type=socket.SOCK_DGRAM) as sock, pytest.raises(RuntimeError, match="only talk to loopback"):
        sock.sendto(b"x", FAR)
    with socket.socket(type=socket.SOCK_DGRAM) as sock, pytest.raises(RuntimeError, match="only talk to loopback"):
        sock.sendmsg([b"x"], [], 0, FAR)


def test_names_are_not_looked_up() -> None:
    with pytest.raises(RuntimeError, match=r"example\.com"):
        socket.create_connection(("example.com", 80))
    with pytest.raises(socket.gaierror):
        socket.getaddrinfo("nowhere.invalid", 80)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_loopback_is_open(host: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection((host, server.getsockname()[1]), timeout=5).close()


def test_asyncio_is_held_to_it_too() -> None:
    async def reach() -> None:
        await asyncio.open_connection(*FAR)

    with pytest.raises(RuntimeError, match="only talk to loopback"):
        asyncio.run(reach())


def test_child_processes_are_held_to_it_too() -> None:
    code = f"import socket; socket.create_connection({FAR!r}, timeout=5)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert "NetworkBlocked" in done.stderr
