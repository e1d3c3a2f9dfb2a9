"""The function: `batch.authorizer.handler.handle`, a REQUEST authorizer.

Its identity source is the header `Authorization`.

============================ =================================================================================
Variable                     Meaning
============================ =================================================================================
``BATCH_CONFIGURATION``      platform and teams (`batch.jobs.settings`)
``BATCH_AUTHORIZER_SECONDS`` for how long API Gateway remembers an answer: `authorizerResultTtlInSeconds`
``BATCH_ACCOUNT``            AWS account of the platform
``BATCH_DOOR_KEYS_TABLE``    table of the API keys of the front door; none without such keys
``AWS_REGION``               set by Lambda
``AWS_ENDPOINT_URL_STS``,    where STS is, if it is an emulation
``AWS_ENDPOINT_URL``
============================ =================================================================================

A cached decision applies to every route, so it allows all routes that accept tokens. A token that would
expire while its decision is cached is refused.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import boto3
import urllib3

from batch.authorizer.caller_identity import CallerIdentity, TokenError, read_token
from batch.authorizer.door_key import LimitedKeyError, team_of_key
from batch.jobs.settings import read_configuration
from inference_contracts import batch_names, principals
from inference_contracts.batch_configuration import Configuration
from inference_contracts.batch_names import sts_host, token_audience
from inference_contracts.door_key_table import KeyTable
from inference_contracts.door_keys import key_id

_logger = logging.getLogger(__name__)
_logger.setLevel(logging.INFO)


class UnauthorizedError(Exception):
    """API Gateway answers with status 401 if the message is exactly `Unauthorized`."""


class Authorizer:
    """Accepts or refuses tokens.

    remembered_seconds: Time in which API Gateway caches a decision.
    keys: API keys of the front door; None without a door.
    clock: Returns seconds since 1970.
    """

    def __init__(
        self,
        configuration: Configuration,
        identity: CallerIdentity,
        *,
        region: str,
        remembered_seconds: float,
        keys: KeyTable | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._configuration = configuration
        self._identity = identity
        self._region = region
        self._remembered_seconds = remembered_seconds
        self._keys = keys
        self._clock = clock

    def decide(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Return the policy for a caller.

        event: Event of API Gateway for a REQUEST authorizer.
        Raises UnauthorizedError if the token is invalid. Raises StsUnavailableError if STS cannot be asked
            now.
        """
        try:
            token = _bearer(event)
            if self._keys is not None and key_id(token):
                return self._decide_key(event, token, self._keys)
            question = read_token(
                token,
                region=self._region,
                now=self._clock(),
                min_seconds=self._remembered_seconds,
            )
            arn = self._identity.arn(question)
        except TokenError as error:
            _logger.info("token refused: %s", error)
            raise UnauthorizedError("Unauthorized") from error
        team = self._configuration.team_of(arn)
        if team is None:
            reason = f"{arn} does not belong to a team of {self._configuration.platform}"
            _logger.info("caller refused: %s", reason)
            return _policy(event, "Deny", arn, {"reason": reason})
        return _policy(event, "Allow", arn, {"principal": arn, "team": team.name})

    def _decide_key(self, event: Mapping[str, Any], secret: str, keys: KeyTable) -> dict[str, Any]:
        """Return the policy for a caller with a key of the front door."""
        caller = f"key {key_id(secret)}"
        try:
            limited = self._configuration.limited_keys
            identifier, name = team_of_key(secret, keys, limited, now=self._clock())
        except LimitedKeyError as error:
            _logger.info("caller refused: %s", error)
            return _policy(event, "Deny", caller, {"reason": str(error)})
        if self._configuration.team(name) is None:
            raise TokenError(f"its team {name} is not one of {self._configuration.platform}")
        return _policy(event, "Allow", caller, {"principal": caller, "key": identifier, "team": name})


def handle(event: Mapping[str, Any], _context: Any) -> dict[str, Any]:
    """Decide about a request."""
    return authorizer().decide(event)


@cache
def authorizer() -> Authorizer:
    configuration = read_configuration(os.environ)
    table = os.environ.get(batch_names.DOOR_KEYS_TABLE)
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
            audience=token_audience(os.environ[batch_names.ACCOUNT], configuration.platform),
            endpoint=endpoint.rstrip("/"),
        ),
        region=region,
        remembered_seconds=float(os.environ[batch_names.AUTHORIZER_SECONDS]),
        keys=KeyTable(boto3.client("dynamodb"), table) if table else None,
    )


def _bearer(event: Mapping[str, Any]) -> str:
    """Return the bearer token of a request."""
    headers: Mapping[str, list[str]] = event.get("multiValueHeaders") or {}
    values = [value for name, sent in headers.items() if name.lower() == "authorization" for value in sent]
    if len(values) != 1:
        raise TokenError(f"there are {len(values)} Authorization headers, must be one")
    scheme, _, token = values[0].partition(" ")
    if scheme.lower() != "bearer":
        raise TokenError("it is not sent as a bearer token")
    return token


def _policy(event: Mapping[str, Any], effect: str, arn: str, context: dict[str, str]) -> dict[str, Any]:
    """Return a policy for all routes that accept tokens: `<api>/<stage>/<method>/v1/…`."""
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
