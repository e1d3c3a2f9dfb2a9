"""Why an endpoint has no connection: each cause has its own words."""

from __future__ import annotations

import socket
import ssl
from types import SimpleNamespace
from typing import Any

import aiohttp
import pytest

from inference_blueprints.measure.completions.completion_client import UNREACHABLE, connection_failure

_KEY: Any = SimpleNamespace(host="example.invalid", port=443, is_ssl=True, ssl=True)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (aiohttp.ClientConnectorError(_KEY, ConnectionRefusedError(111, "refused")), "connection refused"),
        (aiohttp.ClientConnectorError(_KEY, OSError(113, "No route to host")), "no connection"),
        (aiohttp.ClientConnectorDNSError(_KEY, socket.gaierror(-2, "not known")), "unknown host name"),
        (aiohttp.ClientConnectorCertificateError(_KEY, ssl.SSLError(1, "expired")), "no TLS connection"),
        (aiohttp.ClientConnectorSSLError(_KEY, ssl.SSLError(1, "wrong version")), "no TLS connection"),
    ],
)
def test_each_cause_has_its_own_words(error: aiohttp.ClientConnectorError, reason: str) -> None:
    assert connection_failure(error) == reason
    assert reason in UNREACHABLE
