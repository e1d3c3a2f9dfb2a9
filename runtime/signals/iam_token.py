"""A token of IAM in place of a password.

The token is a presigned request that is never sent, good for 15 minutes; ElastiCache ends a connection after
12 hours, and the next one brings a fresh token
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

from signals.errors import SettingsError

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
        The cache's region; None for that of the environment.

    Raises
    ------
    SettingsError
        If there is no region, or there are no credentials, or AWS's own settings are wrong.
    """

    def __init__(self, cache: str, user: str, region: str | None = None) -> None:
        self._cache = cache
        self._user = user
        # The signer knows the session's parts by weak references alone.
        self._session = session = botocore.session.get_session()
        try:
            self._region = region or session.get_config_variable("region")
            credentials = session.get_credentials()
        except BotoCoreError as error:
            raise SettingsError(" ".join(str(error).split())) from error
        faults = [
            *([] if self._region else ["SIGNALS_REGION: name the cache's region"]),
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
            If credentials have ended and cannot be renewed; to the client a refusal.
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
