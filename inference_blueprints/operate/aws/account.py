"""Clients for an AWS account, with retries and readable errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import boto3
import botocore.session
from botocore.config import Config
from botocore.configprovider import ConstantProvider
from botocore.credentials import Credentials
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    LoginError,
    NoCredentialsError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
)

from inference_contracts.errors import UserError

#: How to get credentials.
SIGN_IN = "aws sso login, or export AWS_PROFILE=..."
_RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 6})
_METADATA_TIMEOUT = "metadata_service_timeout"
# Outside EC2, the instance metadata service may not answer. botocore then waits for it twice (`IMDSFetcher`
# in botocore/utils.py asks for a token, then for a role without one), by default a second each time.
_METADATA_SECONDS = 0.4
_NO_CREDENTIALS = "there are no AWS credentials"
# Errors of botocore that say that credentials are missing, incomplete, or cannot be renewed.
_CREDENTIAL_ERRORS = (
    CredentialRetrievalError,
    LoginError,
    PartialCredentialsError,
    ProfileNotFound,
    SSOError,
)
# Codes with which AWS refuses credentials that are unknown or have expired
# (IAM and STS, "Common Errors"; EC2, "Client error codes").
_CREDENTIAL_CODES = frozenset(
    {
        "AuthFailure",
        "ExpiredToken",
        "ExpiredTokenException",
        "IncompleteSignature",
        "InvalidClientTokenId",
        "RequestExpired",
        "SignatureDoesNotMatch",
        "UnrecognizedClientException",
    }
)


class SignInError(UserError):
    """There are no valid credentials for AWS.

    reason: What is wrong with them. The message adds how to sign in.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"{reason}; run {SIGN_IN}")


class Account:
    """One account and region, reached with the environment's credentials.

    profile: Profile of the AWS configuration; None for the environment's.
    Raises SignInError if the profile does not exist.
    """

    def __init__(self, region: str, profile: str | None = None) -> None:
        self.region = region
        with readable_errors():
            self.session = _session(region, profile)
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """Return the client of a service; it repeats throttled calls. Raises SignInError as `credentials`."""
        if service not in self._clients:
            self._clients[service] = self.patient_client(service, _RETRIES)
        return self._clients[service]

    def patient_client(self, service: str, config: Config) -> Any:
        """Return a client of a service with its own limits, for calls that take minutes.

        config: Its limits.
        Raises SignInError as `credentials`.
        """
        _ = self.credentials
        with readable_errors():
            return self.session.client(service, config=config)

    @cached_property
    def credentials(self) -> Credentials:
        """The environment's credentials. Raises SignInError if there are none."""
        return demand_credentials(self.session)

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """What STS says about the credentials."""
        client = self.client("sts")
        with readable_errors():
            return dict(client.get_caller_identity())

    @property
    def number(self) -> str:
        """The account's number, 12 digits. Raises SignInError if the credentials are missing or not valid."""
        return str(self._identity["Account"])

    @property
    def caller(self) -> str:
        """ARN of the caller. Raises SignInError if the credentials are missing or not valid."""
        return str(self._identity["Arn"])

    def demand(self, expected: str | None) -> None:
        """Check that this is the blueprint's account.

        expected: ``environment.account``; None if the blueprint allows any account.
        Raises UserError if it is another account.
        """
        if expected and self.number != expected:
            raise UserError(
                f"got credentials for account {self.number}, the blueprint names {expected}; "
                f"sign in to {expected}, or change environment.account"
            )


def _session(region: str, profile: str | None) -> boto3.Session:
    """Return a session. Unless the environment says how long, it waits briefly for instance metadata."""
    core = botocore.session.get_session()
    if profile is not None:
        core.set_config_variable("profile", profile)
    stated = os.environ.get("AWS_METADATA_SERVICE_TIMEOUT") or core.get_scoped_config().get(_METADATA_TIMEOUT)
    if not stated:
        # `set_config_variable` would make whole seconds of it.
        provider = ConstantProvider(_METADATA_SECONDS)
        core.get_component("config_store").set_config_provider(_METADATA_TIMEOUT, provider)
    return boto3.Session(region_name=region, botocore_session=core)


def demand_credentials(session: boto3.Session) -> Credentials:
    """Return a session's credentials. Raises SignInError if there are none."""
    with readable_errors():
        found = session.get_credentials()
    if found is None:
        raise SignInError(_NO_CREDENTIALS)
    return found


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn errors of AWS into one line.

    Raises SignInError if the credentials are missing or no longer valid, else UserError with the operation
        and AWS's message.
    """
    try:
        yield
    except NoCredentialsError as error:
        raise SignInError(_NO_CREDENTIALS) from error
    except _CREDENTIAL_ERRORS as error:
        raise SignInError(describe_error(error)) from error
    except ClientError as error:
        of_credentials = error.response.get("Error", {}).get("Code") in _CREDENTIAL_CODES
        raise (SignInError if of_credentials else UserError)(describe_error(error)) from error
    except BotoCoreError as error:
        raise UserError(describe_error(error)) from error


def describe_error(error: ClientError | BotoCoreError) -> str:
    """Return an error of AWS as one line.

    error: The client's exception.
    """
    return " ".join(str(error).split())
