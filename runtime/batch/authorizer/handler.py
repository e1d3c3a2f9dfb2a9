"""The function: `batch.authorizer.handler.handle`, a REQUEST authorizer.

Its identity source is the header `Authorization`.

============================ =================================================================================
Variable                     Meaning
============================ =================================================================================
``BATCH_CONFIGURATION``      platform and teams (`batch.jobs.settings`)
``BATCH_AUTHORIZER_SECONDS`` for how long API Gateway remembers an answer: `authorizerResultTtlInSeconds`
``AWS_REGION``               set by Lambda
``AWS_ENDPOINT_URL_STS``,    where STS is, if it is an emulation
``AWS_ENDPOINT_URL``
============================ =================================================================================

An answer that is remembered stands for every route, so it allows all that take tokens; and it is forgotten
before the token ends, for a token that would end sooner is refused.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import urllib3

from batch.authorizer.caller_identity import CallerIdentity
from batch.authorizer.token import TokenError, read_token, sts_host
from batch.jobs import principals
from batch.jobs.configuration import Configuration
from batch.jobs.settings import read_configuration

_logger = logging.getLogger(__name__)
_logger.setLevel(logging.INFO)


class UnauthorizedError(Exception):
    """What API Gateway answers with status 401, if it reads exactly `Unauthorized`."""


class Authorizer:
    """Decides about tokens.

    Parameters
    ----------
    configuration
        Platform and teams.
    identity
        Asks STS.
    region
        The platform's region.
    remembered_seconds
        For how long an answer is remembered.
    clock
        Returns seconds since 1970.
    """

    def __init__(
        self,
        configuration: Configuration,
        identity: CallerIdentity,
        *,
        region: str,
        remembered_seconds: float,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._configuration = configuration
        self._identity = identity
        self._region = region
        self._remembered_seconds = remembered_seconds
        self._clock = clock

    def decide(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return what a caller may do.

        Parameters
        ----------
        event
            What API Gateway sends to a REQUEST authorizer.

        Raises
        ------
        UnauthorizedError
            If nobody vouches for the token.
        StsUnavailableError
            If that cannot be told now.
        """
        try:
            question = read_token(
                _bearer(event),
                region=self._region,
                now=self._clock(),
                least_seconds=self._remembered_seconds,
            )
            arn = self._identity.arn(question)
        except TokenError as error:
            _logger.info("token refused: %s", error)
            raise UnauthorizedError("Unauthorized") from error
        team = self._configuration.team_of(arn)
        if team is None:
            reason = f"{arn} belongs to no team of {self._configuration.platform}"
            _logger.info("caller refused: %s", reason)
            return _policy(event, "Deny", arn, {"reason": reason})
        return _policy(event, "Allow", arn, {"principal": arn, "team": team.name})


def handle(event: Mapping[str, Any], _context: Any) -> dict[str, Any]:
    """Decide about a request.

    Parameters
    ----------
    event
        What API Gateway sends to a REQUEST authorizer.
    """
    return authorizer().decide(event)


@cache
def authorizer() -> Authorizer:
    """Return the authorizer of this process."""
    configuration = read_configuration(os.environ)
    region = os.environ["AWS_REGION"]
    endpoint = (
        os.environ.get("AWS_ENDPOINT_URL_STS")
        or os.environ.get("AWS_ENDPOINT_URL")
        or f"https://{sts_host(region)}"
    )
    return Authorizer(
        configuration,
        CallerIdentity(
            urllib3.PoolManager(),
            region=region,
            platform=configuration.platform,
            endpoint=endpoint.rstrip("/"),
        ),
        region=region,
        remembered_seconds=float(os.environ["BATCH_AUTHORIZER_SECONDS"]),
    )


def _bearer(event: Mapping[str, Any]) -> str:
    """Return the token of a request, which has one."""
    headers: Mapping[str, list[str]] = event.get("multiValueHeaders") or {}
    values = [value for name, sent in headers.items() if name.lower() == "authorization" for value in sent]
    if len(values) != 1:
        raise TokenError(f"there are {len(values)} Authorization headers, must be one")
    scheme, _, token = values[0].partition(" ")
    if scheme.lower() != "bearer":
        raise TokenError("it is not sent as a bearer's")
    return token


def _policy(event: Mapping[str, Any], effect: str, arn: str, context: dict[str, str]) -> dict[str, Any]:
    """Return an answer about all routes that take tokens: `<api>/<stage>/<method>/v1/…`."""
    api, stage, *_ = str(event["methodArn"]).split("/")
    return {
        "principalId": principals.canonical(arn) or arn,
        "policyDocument": {
            "Version": "2012-10-17",
            "Statement": [
                {"Action": "execute-api:Invoke", "Effect": effect, "Resource": f"{api}/{stage}/*/v1/*"}
            ],
        },
        "context": context,
    }
