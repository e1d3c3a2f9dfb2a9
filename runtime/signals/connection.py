"""A client for the cache: TLS, and a token of IAM in place of a password.

=================== ========================================================= =========
Variable            Meaning                                                   Default
=================== ========================================================= =========
``SIGNALS_HOST``    name of the cache's endpoint                              required
``SIGNALS_PORT``    its port                                                  6379
``SIGNALS_CACHE``   name of the ElastiCache serverless cache; with it TLS,    none
                    IAM and cluster mode are on
``SIGNALS_USER``    user of the cache whose authentication is IAM             required
                                                                              with cache
=================== ========================================================= =========

The token is a presigned request that is never sent, good for 15 minutes
(https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

import boto3
import valkey
from botocore.model import ServiceId
from botocore.signers import RequestSigner
from valkey.backoff import ExponentialBackoff
from valkey.credentials import CredentialProvider
from valkey.retry import Retry

_TOKEN_SECONDS: Final = 900
_TIMEOUT_SECONDS: Final = 5.0
_ATTEMPTS: Final = 5


class SettingsError(Exception):
    """Variables that are missing or wrong, all of them in one message."""


class IamToken(CredentialProvider):
    """User and token for each new connection.

    Parameters
    ----------
    cache
        Name of the serverless cache.
    user
        User of the cache.
    """

    def __init__(self, cache: str, user: str) -> None:
        self._cache = cache
        self._user = user
        session = boto3.Session()
        self._region = session.region_name
        self._signer = RequestSigner(
            ServiceId("elasticache"),
            self._region,
            "elasticache",
            "v4",
            session.get_credentials(),
            session.events,
        )

    def get_credentials(self) -> tuple[str, str]:
        """Return the user and a fresh token."""
        url = f"https://{self._cache}/?Action=connect&User={self._user}&ResourceType=ServerlessCache"
        signed = self._signer.generate_presigned_url(
            {"method": "GET", "url": url, "body": {}, "headers": {}, "context": {}},
            operation_name="connect",
            expires_in=_TOKEN_SECONDS,
            region_name=self._region,
        )
        return self._user, str(signed).removeprefix("https://")


def connect(environment: Mapping[str, str] = os.environ) -> Any:
    """Return a client; it connects when it is first used.

    Parameters
    ----------
    environment
        Variables as the module's table has them.

    Raises
    ------
    SettingsError
        If variables are missing or wrong.
    """
    host, port = environment.get("SIGNALS_HOST"), environment.get("SIGNALS_PORT", "6379")
    cache, user = environment.get("SIGNALS_CACHE"), environment.get("SIGNALS_USER")
    faults = [
        *([] if host else ["SIGNALS_HOST: name the cache's endpoint"]),
        *([] if port.isdecimal() else [f"SIGNALS_PORT: must be a number; got {port!r}"]),
        *(["SIGNALS_USER: name the cache's user, as SIGNALS_CACHE is set"] if cache and not user else []),
    ]
    if faults:
        raise SettingsError("\n".join(faults))
    common: dict[str, Any] = {
        "host": host,
        "port": int(port),
        "socket_timeout": _TIMEOUT_SECONDS,
        "socket_connect_timeout": _TIMEOUT_SECONDS,
        "retry": Retry(ExponentialBackoff(cap=2.0, base=0.05), _ATTEMPTS),
    }
    if cache and user:
        return valkey.ValkeyCluster(**common, ssl=True, credential_provider=IamToken(cache, user))
    return valkey.Valkey(**common, retry_on_error=[valkey.exceptions.ConnectionError])
