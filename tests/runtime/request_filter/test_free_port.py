"""The port of the program behind the filter is nobody else's before the program listens there."""

from __future__ import annotations

import random
import socket
from collections.abc import Sequence
from contextlib import closing

import pytest
from request_filter.__main__ import FilterError, free_port

from inference_contracts.request_filter import LOOPBACK_PORTS
from inference_local.processes.free_ports import free_ports


def offer(monkeypatch: pytest.MonkeyPatch, ports: Sequence[int]) -> None:
    """Let the ports be tried in this order."""

    def sample(population: Sequence[int], k: int) -> list[int]:
        assert (population, k) == (LOOPBACK_PORTS, len(LOOPBACK_PORTS))
        return list(ports)

    monkeypatch.setattr(random, "sample", sample)


def test_it_is_none_that_is_listened_on_or_that_a_local_run_or_another_filter_has_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listened, reserved = free_ports(2)
    taken, first = free_port()
    with closing(first), socket.create_server(("127.0.0.1", listened)):
        port, reservation = free_port()
        reservation.close()
        offer(monkeypatch, [listened, reserved, taken, port])
        found, reservation = free_port()
        reservation.close()
    assert found == port


def test_without_a_free_port_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    offer(monkeypatch, free_ports(1))
    with pytest.raises(FilterError, match="end programs that listen there"):
        free_port()
