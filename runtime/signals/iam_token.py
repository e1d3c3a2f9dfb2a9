"""IAM tokens that replace a password.

A token is a presigned request that is never sent; it is valid for 15 minutes. ElastiCache closes a connection
after 12 hours, and the next connection sends a fresh token
(https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html).
"""

from __future__ import annotations

from typing import Any, Final

import botocore.session
from botocore.exceptions import BotoCoreError
from botocore.model import ServiceId
from botocore.signers import RequestSigner
from valkey.credentials import CredentialProvider
from valkey.exceptions import AuthenticationError

from signals.store_errors import SettingsError

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
