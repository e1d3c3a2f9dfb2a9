"""Ports that are free, and stay free until their program listens."""

import socket
from pathlib import Path

import pytest

from inference_contracts.request_filter import LOOPBACK_PORTS
from inference_local.processes import free_ports as module
from inference_local.processes.free_ports import first_free_port, free_ports


def test_a_port_in_use_is_passed_over() -> None:
    address = "127.0.0.9"
    with socket.create_server((address, 0)) as taken:
        port = taken.getsockname()[1]
        assert first_free_port(address, port) > port


def test_a_port_that_is_free_at_this_address_is_taken() -> None:
    with socket.create_server(("127.0.0.9", 0)) as other:
        port = other.getsockname()[1]
        assert first_free_port("127.0.0.8", port) == port


def test_two_processes_never_get_the_same_port(monkeypatch: pytest.MonkeyPatch) -> None:
    """It turns red if a reservation is not the kernel's: the second call knows nothing of the first."""
    monkeypatch.setattr(module, "LOOPBACK_PORTS", LOOPBACK_PORTS[:2000])
    reservations: list[list[socket.socket]] = [[], []]
    try:
        found = []
        for own in reservations:
            monkeypatch.setattr(module, "_RESERVATIONS", own)
            found.append(set(free_ports(150)))
    finally:
        for reservation in (*reservations[0], *reservations[1]):
            reservation.close()
    assert [len(each) for each in found] == [150, 150]
    assert not found[0] & found[1]  # without reservations, two random choices meet in 99,999 of 100,000 runs


def test_the_system_gives_these_ports_to_nobody() -> None:
    """A program that asks for any port, or connects to a server, gets a port of the system's range."""
    first, _ = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert LOOPBACK_PORTS[-1] < int(first)


def test_a_port_on_which_somebody_listens_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    taken, free = free_ports(2)
    ports = range(min(taken, free), max(taken, free) + 1, abs(taken - free))
    monkeypatch.setattr(module, "LOOPBACK_PORTS", ports)
    # Both stay reserved, so that no other process takes one now.
    monkeypatch.setattr(module, "_reserve", lambda _: True)
    with socket.create_server(("127.0.0.1", taken)):
        assert free_ports(1) == [free]


def test_too_few_ports_are_an_error_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    [port] = free_ports(1)
    monkeypatch.setattr(module, "LOOPBACK_PORTS", range(port, port + 1))
    with pytest.raises(RuntimeError, match=f"only 0 of 1 ports from {port} to {port} are free on 127.0.0.1"):
        free_ports(1)
