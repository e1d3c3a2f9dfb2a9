"""Checks IAM tokens.

A token is a presigned request (https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html). Its
signature is computed again with the secret of its access key.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

_SERVICE: Final = "elasticache"
_TIME: Final = "%Y%m%dT%H%M%SZ"


class TokenCheck:
    """Checks the tokens of one cache.

    cache: Name of the cache. It is part of the signature.
    secret_of: Returns the secret of an access key. None for an unknown key.
    """

    def __init__(self, cache: str, secret_of: Callable[[str], str | None]) -> None:
        self._cache = cache
        self._secret_of = secret_of

    def is_valid(self, user: str, token: str) -> bool:
        """Return whether a token is for this cache and user, not expired, and signed with a known key.

        user: User of the cache.
        token: The password that the client sent.
        """
        try:
            return self._is_signed(user, dict(parse_qsl(urlsplit(f"https://{token}").query)))
        except (KeyError, ValueError):  # not a token
            return False

    def _is_signed(self, user: str, values: dict[str, str]) -> bool:
        key, _, region, service, _ = values["X-Amz-Credential"].split("/")
        secret = self._secret_of(key)
        if secret is None or service != _SERVICE:
            return False
        seconds = int(values["X-Amz-Expires"])
        # The expected request. Another cache, user or action has another signature.
        query = urlencode({"Action": "connect", "User": user, "ResourceType": "ServerlessCache"})
        request = AWSRequest("GET", f"https://{self._cache}/?{query}")
        credentials = Credentials(key, secret, values.get("X-Amz-Security-Token"))
        auth = SigV4QueryAuth(credentials, service, region, expires=seconds)
        # `add_auth` would use the current time.
        request.context["timestamp"] = values["X-Amz-Date"]
        auth._modify_request_before_signing(request)
        expected = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
        until = datetime.strptime(values["X-Amz-Date"], _TIME).replace(tzinfo=UTC) + timedelta(
            seconds=seconds
        )
        return datetime.now(UTC) < until and values["X-Amz-Signature"] == str(expected)
