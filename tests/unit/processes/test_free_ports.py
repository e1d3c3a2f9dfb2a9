"""Ports that are free, and stay free until their program listens."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from inference_blueprints.processes import free_ports as module
from inference_blueprints.processes.free_ports import PORTS, first_free_port, free_ports

_OTHER_PROCESS = """
from inference_blueprints.processes.free_ports import free_ports
print(*free_ports(300), flush=True)
input()
"""


def test_a_port_in_use_is_passed_over() -> None:
    address = "127.0.0.9"
    with socket.create_server((address, 0)) as taken:
        port = taken.getsockname()[1]
        assert first_free_port(address, port) > port


def test_a_port_that_is_free_at_this_address_is_taken() -> None:
    with socket.create_server(("127.0.0.9", 0)) as other:
        port = other.getsockname()[1]
        assert first_free_port("127.0.0.8", port) == port


def test_two_processes_never_get_the_same_port() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _OTHER_PROCESS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout
        theirs = {int(port) for port in other.stdout.readline().split()}
        ours = set(free_ports(300))
        other.communicate("\n")
    assert len(theirs) == len(ours) == 300
    assert not theirs & ours  # without reservations, two random choices meet in 999 of 1,000 runs


def test_the_system_gives_these_ports_to_nobody() -> None:
    """A program that asks for any port, or connects to a server, gets a port of the system's range."""
    first, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert PORTS[-1] < int(first)


def test_a_port_on_which_somebody_listens_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_ports(2)
    monkeypatch.setattr(module, "PORTS", range(min(taken, free), max(taken, free) + 1, abs(taken - free)))
    for reservation in module._RESERVATIONS[-2:]:
        reservation.close()
    with socket.create_server(("127.0.0.1", taken)):
        assert free_ports(1) == [free]


def test_too_few_ports_are_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    [port] = free_ports(1)
    monkeypatch.setattr(module, "PORTS", range(port, port + 1))
    with pytest.raises(RuntimeError, match=f"only 0 of 1 ports from {port} to {port} are free on 127.0.0.1"):
        free_ports(1)
