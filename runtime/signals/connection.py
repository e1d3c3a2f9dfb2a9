"""A client for the store: plain on a machine of one's own, TLS and a token of IAM for a cache in AWS.

===================== ======================================================= ================
Variable              Meaning                                                 Default
===================== ======================================================= ================
``SIGNALS_HOST``      name of the cache's endpoint                            required
``SIGNALS_PORT``      its port                                                6379
``SIGNALS_CACHE``     name of the ElastiCache serverless cache; with it TLS,  none
                      IAM and cluster mode are on
``SIGNALS_USER``      user of the cache whose authentication is IAM           required with
                                                                              cache
``SIGNALS_REGION``    the cache's region                                      that of the
                                                                              environment
``SIGNALS_AUTHORITY`` file with the certificate that the cache's is signed    those that the
                      by                                                      system trusts
``SIGNALS_TUNNEL``    host:port that leads to the endpoint                    none
===================== ======================================================= ================
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import valkey
from valkey.backoff import ExponentialBackoff
from valkey.cluster import ClusterNode, NodesManager
from valkey.connection import SSLConnection
from valkey.exceptions import ConnectionError as ValkeyConnectionError
from valkey.retry import Retry

from signals.errors import SettingsError, store_errors
from signals.iam_token import IamToken

_PORT: Final = 6379
_LONGEST_PAUSE_SECONDS: Final = 2.0


class _CacheConnection(SSLConnection):
    """An encrypted connection to whom a certificate names; the cluster client drops the option for it."""

    def __init__(self, *, certificate_host: str, **options: Any) -> None:
        super().__init__(ssl_check_hostname=True, **options)
        self._certificate_host = certificate_host

    def _wrap_socket_with_ssl(self, sock: socket.socket) -> Any:
        # The name that is checked is the client's `host`, which at a tunnel is the tunnel's end.
        reached, self.host = self.host, self._certificate_host
        try:
            return super()._wrap_socket_with_ssl(sock)
        finally:
            self.host = reached


@dataclass(frozen=True, slots=True)
class Address:
    """Where a store is, and who asks.

    Parameters
    ----------
    host, port
        Its endpoint.
    cache
        Name of the ElastiCache serverless cache; None for a server without TLS and users.
    user
        User of the cache.
    region
        The cache's region; None for that of the environment.
    authority
        File with the certificate that the cache's is signed by; None for those that the system trusts.
    tunnel
        Host and port that lead to the cache's endpoint; None where that is reached itself.
    """

    host: str
    port: int = _PORT
    cache: str | None = None
    user: str | None = None
    region: str | None = None
    authority: str | None = None
    tunnel: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        """Make sure that it is whole.

        Raises
        ------
        SettingsError
            If there is a cache and no user.
        """
        if self.cache and not self.user:
            raise SettingsError("SIGNALS_USER: name the cache's user, as SIGNALS_CACHE is set")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited, and how often tried again.

    Parameters
    ----------
    connect_seconds
        For a new connection, its encryption and the token's check.
    answer_seconds
        For an answer.
    repetitions
        How often a lost connection is made again before it is an error.
    pause_seconds
        Before the first repetition; it doubles with each, to two seconds.
    """

    connect_seconds: float
    answer_seconds: float
    repetitions: int
    pause_seconds: float


#: For loads of many signals, which outlive a restart of the server.
PATIENT: Final = Patience(connect_seconds=5.0, answer_seconds=5.0, repetitions=5, pause_seconds=0.1)
#: For reads while a request waits; one repetition replaces a connection that ended since the last read.
QUICK: Final = Patience(connect_seconds=0.5, answer_seconds=0.1, repetitions=1, pause_seconds=0.0)


def read_address(environment: Mapping[str, str] = os.environ) -> Address:
    """Return the address that variables name.

    Parameters
    ----------
    environment
        Variables as the module's table has them.

    Raises
    ------
    SettingsError
        If variables are missing or wrong, all of them in one message.
    """
    host, port = environment.get("SIGNALS_HOST"), environment.get("SIGNALS_PORT", str(_PORT))
    cache, user = environment.get("SIGNALS_CACHE"), environment.get("SIGNALS_USER")
    tunnel_host, _, tunnel_port = environment.get("SIGNALS_TUNNEL", "").rpartition(":")
    faults = [
        *([] if host else ["SIGNALS_HOST: name the cache's endpoint"]),
        *([] if port.isdecimal() else [f"SIGNALS_PORT: must be a number; got {port!r}"]),
        *(["SIGNALS_USER: name the cache's user, as SIGNALS_CACHE is set"] if cache and not user else []),
        *(
            ["SIGNALS_TUNNEL: must be HOST:PORT"]
            if "SIGNALS_TUNNEL" in environment and not (tunnel_host and tunnel_port.isdecimal())
            else []
        ),
    ]
    if faults or not host:
        raise SettingsError("\n".join(faults))
    return Address(
        host,
        int(port),
        cache,
        user,
        region=environment.get("SIGNALS_REGION"),
        authority=environment.get("SIGNALS_AUTHORITY"),
        tunnel=(tunnel_host, int(tunnel_port)) if tunnel_host else None,
    )


def connect(environment: Mapping[str, str] = os.environ) -> Any:
    """Return a patient client, for writing, to the store that variables name.

    Parameters
    ----------
    environment
        Variables as the module's table has them.

    Raises
    ------
    SettingsError
        If variables are missing or wrong.
    StoreError
        If a cache cannot be reached, or refuses.
    """
    return open_client(read_address(environment), PATIENT)


def open_client(address: Address, patience: Patience) -> Any:
    """Return a client with a pool of connections; threads may share it.

    Parameters
    ----------
    address
        Where the store is. The client of a cache connects at once, that of a plain server when it is used.
    patience
        How long it waits.

    Raises
    ------
    SettingsError
        If there is no region, or there are no credentials, for a cache.
    StoreError
        If a cache cannot be reached, or refuses.
    """
    # The client counts from one, and doubles for each.
    backoff = ExponentialBackoff(cap=_LONGEST_PAUSE_SECONDS, base=patience.pause_seconds / 2)
    common: dict[str, Any] = {
        "socket_timeout": patience.answer_seconds,
        "socket_connect_timeout": patience.connect_seconds,
        "retry": Retry(backoff, patience.repetitions),
    }
    if address.cache is None or address.user is None:
        errors = [ValkeyConnectionError]
        return valkey.Valkey(host=address.host, port=address.port, retry_on_error=errors, **common)
    token = IamToken(address.cache, address.user, address.region)
    with store_errors():
        host, port = address.tunnel or (address.host, address.port)
        client = valkey.ValkeyCluster(
            # Of what makes connections the client takes a class of them only beside an address of this form.
            url=f"valkey://{host}:{port}",
            # A serverless cache speaks of nodes under the name of its endpoint.
            connection_class=partial(_CacheConnection, certificate_host=address.host),
            address_remap=(lambda _: address.tunnel) if address.tunnel else None,
            cluster_error_retry_attempts=patience.repetitions,
            ssl_ca_certs=address.authority,
            credential_provider=token,
            **common,
        )
    _keep_asking(client.nodes_manager, host, port)
    return client


def _keep_asking(nodes: NodesManager, host: str, port: int) -> None:
    """Let a client ask the endpoint again: it forgets a node that failed, and a cache has one alone."""
    plain = nodes.initialize

    def initialize() -> None:
        if not nodes.startup_nodes:
            nodes.populate_startup_nodes([ClusterNode(host, port)])
        plain()

    nodes.initialize = initialize  # type: ignore[method-assign]
