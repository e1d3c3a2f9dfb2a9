"""Clients for an AWS account, with retries and readable errors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import boto3
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, ClientError

from inference_blueprints.errors import UserError

_RETRIES = Config(retries={"mode": "standard", "total_max_attempts": 6})


class Account:
    """One account and region, reached with the environment's credentials."""

    def __init__(self, region: str) -> None:
        self.region = region
        self._session = boto3.Session(region_name=region)
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """Return the client of a service; it repeats throttled calls."""
        if service not in self._clients:
            with readable_errors():
                self._clients[service] = self._session.client(service, config=_RETRIES)
        return self._clients[service]

    @property
    def credentials(self) -> Credentials:
        """The environment's credentials.

        Raises
        ------
        UserError
            If there are none.
        """
        found = self._session.get_credentials()
        if found is None:
            raise UserError("there are no AWS credentials; run aws sso login, or export AWS_PROFILE=...")
        return found

    @cached_property
    def number(self) -> str:
        """The account's number, 12 digits.

        Raises
        ------
        UserError
            If the credentials are missing or not valid.
        """
        with readable_errors():
            return str(self.client("sts").get_caller_identity()["Account"])

    def demand(self, expected: str | None) -> None:
        """Check that this is the blueprint's account.

        Parameters
        ----------
        expected
            ``environment.account``; None if the blueprint allows any account.

        Raises
        ------
        UserError
            If it is another account.
        """
        if expected and self.number != expected:
            raise UserError(
                f"got credentials for account {self.number}, the blueprint names {expected}; "
                f"sign in to {expected}, or change environment.account"
            )


@contextmanager
def readable_errors() -> Iterator[None]:
    """Turn errors of AWS into one line.

    Raises
    ------
    UserError
        With the operation and AWS's message.
    """
    try:
        yield
    except (ClientError, BotoCoreError) as error:
        raise UserError(described(error)) from error


def described(error: ClientError | BotoCoreError) -> str:
    """Return an error of AWS as one line.

    Parameters
    ----------
    error
        The client's exception.
    """
    return " ".join(str(error).split())
