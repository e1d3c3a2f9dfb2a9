"""Clients for an AWS account, with retries and readable errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError, ProfileNotFound

from inference_contracts.errors import UserError

#: How to get credentials.
SIGN_IN = "aws sso login, or export AWS_PROFILE=..."
_RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 6})


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
        try:
            self._session = boto3.Session(region_name=region, profile_name=profile)
        except ProfileNotFound as error:
            raise SignInError(describe_error(error)) from error
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """Return the client of a service; it repeats throttled calls."""
        if service not in self._clients:
            with readable_errors():
                self._clients[service] = self._session.client(service, config=_RETRIES)
        return self._clients[service]

    def patient_client(self, service: str, config: Config) -> Any:
        """Return a client of a service with its own limits, for calls that take minutes.

        config: Its limits.
        """
        with readable_errors():
            return self._session.client(service, config=config)

    @property
    def credentials(self) -> Credentials:
        """The environment's credentials. Raises SignInError if there are none."""
        try:
            found = self._session.get_credentials()
        except BotoCoreError as error:
            raise SignInError(describe_error(error)) from error
        if found is None:
            raise SignInError("there are no AWS credentials")
        return found

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """What STS says about the credentials."""
        _ = self.credentials
        try:
            return dict(self.client("sts").get_caller_identity())
        except (ClientError, BotoCoreError) as error:
            raise SignInError(describe_error(error)) from error

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


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn errors of AWS into one line. Raises UserError with the operation and AWS's message."""
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise UserError(describe_error(error)) from error


def describe_error(error: ClientError | BotoCoreError) -> str:
    """Return an error of AWS as one line.

    error: The client's exception.
    """
    return " ".join(str(error).split())
