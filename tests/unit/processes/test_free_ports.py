"""Ports that are free, from a number on."""

import socket

from inference_blueprints.processes.free_ports import first_free_port


def test_a_port_in_use_is_passed_over() -> None:
    address = "127.0.0.9"
    with socket.create_server((address, 0)) as taken:
        port = taken.getsockname()[1]
        assert first_free_port(address, port) > port


def test_a_port_that_is_free_at_this_address_is_taken() -> None:
    with socket.create_server(("127.0.0.9", 0)) as other:
        port = other.getsockname()[1]
        assert first_free_port("127.0.0.8", port) == port
