"""Opens clients of the store: without TLS for a local server, with TLS and IAM tokens for a cache in AWS.

===================== ======================================================= ================
Variable              Meaning                                                 Default
===================== ======================================================= ================
``SIGNALS_HOST``      host name of the cache's endpoint                       required
``SIGNALS_PORT``      its port                                                6379
``SIGNALS_CACHE``     name of the ElastiCache serverless cache; turns on TLS, none
                      IAM authentication and cluster mode
``SIGNALS_USER``      user of the cache whose authentication is IAM           required with
                                                                              cache
``SIGNALS_REGION``    the cache's region                                      that of the
                                                                              environment
``SIGNALS_AUTHORITY`` file with the certificate of the authority that signed  authorities that
                      the cache's certificate                                 the system trusts
``SIGNALS_TUNNEL``    host:port of a tunnel to the endpoint                   none
===================== ======================================================= ================
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import botocore.session
import valkey
from botocore.exceptions import BotoCoreError
from botocore.model import ServiceId
from botocore.signers import RequestSigner
from valkey.backoff import ExponentialBackoff
from valkey.cluster import ClusterNode, NodesManager
from valkey.connection import SSLConnection
from valkey.credentials import CredentialProvider
from valkey.exceptions import AuthenticationError
from valkey.exceptions import ConnectionError as ValkeyConnectionError
from valkey.retry import Retry

from signals.store_errors import SettingsError, store_errors

# IAM tokens that replace a password.
#
# A token is a presigned request that is never sent; it is valid for 15 minutes. ElastiCache closes a
# connection after 12 hours, and the next connection sends a fresh token
# (https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html).

_SECONDS: Final = 900
_SERVICE: Final = "elasticache"


class IamToken(CredentialProvider):
    """User and token for each new connection.

    Parameters
    ----------
    cache
        Name of the serverless cache.
    user
        User of the cache.
    region
        AWS region of the cache. None takes the region of the AWS environment.

    Raises
    ------
    SettingsError
        If the region or credentials are missing, or AWS settings are wrong.
    """

    def __init__(self, cache: str, user: str, region: str | None = None) -> None:
        self._cache = cache
        self._user = user
        # The signer holds only weak references to parts of the session.
        self._session = session = botocore.session.get_session()
        try:
            self._region = region or session.get_config_variable("region")
            credentials = session.get_credentials()
        except BotoCoreError as error:
            raise SettingsError(" ".join(str(error).split())) from error
        faults = [
            *([] if self._region else ["SIGNALS_REGION: missing; set it to the AWS region of the cache"]),
            *([] if credentials else ["there are no AWS credentials: sign in, or set AWS_PROFILE"]),
        ]
        if faults:
            raise SettingsError("\n".join(faults))
        self._signer: Any = RequestSigner(
            ServiceId(_SERVICE),
            self._region,
            _SERVICE,
            "v4",
            credentials,
            session.get_component("event_emitter"),
        )

    def get_credentials(self) -> tuple[str, str]:
        """Return the user and a fresh token.

        Raises
        ------
        AuthenticationError
            If credentials have expired and cannot be renewed; the client treats it as a refusal.
        """
        url = f"https://{self._cache}/?Action=connect&User={self._user}&ResourceType=ServerlessCache"
        try:
            signed = self._signer.generate_presigned_url(
                {"method": "GET", "url": url, "body": {}, "headers": {}, "context": {}},
                operation_name="connect",
                expires_in=_SECONDS,
                region_name=self._region,
            )
        except BotoCoreError as error:
            raise AuthenticationError(f"no token can be signed: {error}") from error
        return self._user, str(signed).removeprefix("https://")


_PORT: Final = 6379
_LONGEST_PAUSE_SECONDS: Final = 2.0


class _CacheConnection(SSLConnection):
    """A TLS connection that checks the host name; the cluster client drops the option for it."""

    def __init__(self, *, certificate_host: str, **options: Any) -> None:
        super().__init__(ssl_check_hostname=True, **options)  # type: ignore[no-untyped-call]  # valkey lacks types here
        self._certificate_host = certificate_host

    def _wrap_socket_with_ssl(self, sock: socket.socket) -> Any:
        # The client checks the certificate against `host`, which is the end of the tunnel if there is one.
        reached, self.host = self.host, self._certificate_host
        try:
            return super()._wrap_socket_with_ssl(sock)  # type: ignore[no-untyped-call]  # valkey lacks types here
        finally:
            self.host = reached


@dataclass(frozen=True, slots=True)
class Address:
    """Address of a store, and the user that connects."""

    host: str
    port: int = _PORT
    """`host`, `port`: Endpoint of the store."""
    cache: str | None = None
    """Name of the ElastiCache serverless cache; None for a server without TLS and users."""
    user: str | None = None
    """User of the cache."""
    region: str | None = None
    """AWS region of the cache. None takes the region of the AWS environment."""
    authority: str | None = None
    """File with the certificate of the authority that signed the cache's certificate. None trusts the
    authorities of the system."""
    tunnel: tuple[str, int] | None = None
    """Host and port of a tunnel to the cache's endpoint. None connects directly."""

    def __post_init__(self) -> None:
        """Check that a cache has a user.

        Raises
        ------
        SettingsError
            If there is a cache but no user.
        """
        if self.cache and not self.user:
            raise SettingsError("SIGNALS_USER: missing; SIGNALS_CACHE needs a user of the cache")


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a client waits, and how often it tries again."""

    connect_seconds: float
    """Limit for a new connection, including TLS and the check of the token, in seconds."""
    answer_seconds: float
    """Limit for an answer, in seconds."""
    repetitions: int
    """Attempts to reconnect before a lost connection is an error."""
    pause_seconds: float
    """Pause before the first repetition, in seconds. It doubles each time, up to two seconds."""


#: For writing many signals: long enough to survive a restart of the server.
BULK_TIMEOUTS: Final = Timeouts(connect_seconds=5.0, answer_seconds=5.0, repetitions=5, pause_seconds=0.1)
#: For reads that a request waits for. One repetition replaces a connection that was closed since then.
INTERACTIVE_TIMEOUTS: Final = Timeouts(
    connect_seconds=0.5, answer_seconds=0.1, repetitions=1, pause_seconds=0.0
)


def read_address(environment: Mapping[str, str] = os.environ) -> Address:
    """Read the address from environment variables.

    Parameters
    ----------
    environment
        Environment variables, as in the table of this module.

    Raises
    ------
    SettingsError
        If variables are missing or wrong. One message names all of them.
    """
    host, port = environment.get("SIGNALS_HOST"), environment.get("SIGNALS_PORT", str(_PORT))
    cache, user = environment.get("SIGNALS_CACHE"), environment.get("SIGNALS_USER")
    tunnel_host, _, tunnel_port = environment.get("SIGNALS_TUNNEL", "").rpartition(":")
    faults = [
        *([] if host else ["SIGNALS_HOST: missing; set it to the host name of the cache's endpoint"]),
        *([] if port.isdecimal() else [f"SIGNALS_PORT: got {port!r}, must be a number"]),
        *(["SIGNALS_USER: missing; SIGNALS_CACHE needs a user of the cache"] if cache and not user else []),
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
    """Return a client for bulk writes to the store that environment variables name.

    Parameters
    ----------
    environment
        Environment variables, as in the table of this module.

    Raises
    ------
    SettingsError
        If variables are missing or wrong.
    StoreError
        If the cache cannot be reached or refuses the connection.
    """
    return open_client(read_address(environment), BULK_TIMEOUTS)


def open_client(address: Address, timeouts: Timeouts) -> Any:
    """Return a client with a connection pool, which threads may share.

    Parameters
    ----------
    address
        Address of the store. The client of a cache connects at once, that of a local server at first use.
    timeouts
        Timeouts and repetitions.

    Raises
    ------
    SettingsError
        If there is no region, or there are no credentials, for a cache.
    StoreError
        If the cache cannot be reached or refuses the connection.
    """
    # The client doubles the base before the first pause.
    backoff = ExponentialBackoff(cap=_LONGEST_PAUSE_SECONDS, base=timeouts.pause_seconds / 2)
    common: dict[str, Any] = {
        "socket_timeout": timeouts.answer_seconds,
        "socket_connect_timeout": timeouts.connect_seconds,
        "retry": Retry(backoff, timeouts.repetitions),
    }
    if address.cache is None or address.user is None:
        errors = [ValkeyConnectionError]
        return valkey.Valkey(host=address.host, port=address.port, retry_on_error=errors, **common)
    token = IamToken(address.cache, address.user, address.region)
    with store_errors():
        reached = address.tunnel or (address.host, address.port)
        host, port = reached
        client = valkey.ValkeyCluster(
            # The client accepts a connection class only together with a URL.
            url=f"valkey://{host}:{port}",
            # A serverless cache names its nodes by the host name of its endpoint.
            connection_class=partial(_CacheConnection, certificate_host=address.host),
            address_remap=(lambda _: reached) if address.tunnel else None,
            cluster_error_retry_attempts=timeouts.repetitions,
            ssl_ca_certs=address.authority,
            credential_provider=token,
            **common,
        )
    _keep_asking(client.nodes_manager, host, port)
    return client


def _keep_asking(nodes: NodesManager, host: str, port: int) -> None:
    """Make a client retry the endpoint: it drops a failed node, and a serverless cache has only one."""
    plain: Callable[[], None] = nodes.initialize

    def initialize() -> None:
        if not nodes.startup_nodes:
            nodes.populate_startup_nodes([ClusterNode(host, port)])
        plain()

    nodes.initialize = initialize  # type: ignore[method-assign]
