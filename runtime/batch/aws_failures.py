"""Failures of AWS that the state machine repeats for longer than other errors of a function.

Step Functions knows an error of a function by the name of its class
(https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from botocore.exceptions import BotoCoreError, ClientError

from batch.s3_errors import S3Meaning, meaning_of

P = ParamSpec("P")
R = TypeVar("R")


class AwsBusyError(Exception):
    """AWS could not answer now. The call is repeated until the job's deadline."""


class AwsDeniedError(Exception):
    """AWS denies one of the platform's own roles, perhaps only until a deployment has ended.

    The call is repeated for a quarter of an hour.
    """


def repeatable(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function of the state machine tell failures that may pass from its other errors."""

    @functools.wraps(function)
    def call(*words: P.args, **options: P.kwargs) -> R:
        try:
            return function(*words, **options)
        except (BotoCoreError, ClientError) as error:
            meaning = meaning_of(error)
            if isinstance(error, ClientError) and _is_denial(error):
                meaning = S3Meaning.DENIED
            if meaning is S3Meaning.FAULT:
                raise
            kind = AwsDeniedError if meaning is S3Meaning.DENIED else AwsBusyError
            raise kind(f"{type(error).__name__}: {error}") from error

    return call


def _is_denial(error: ClientError) -> bool:
    """Return whether a service other than S3 denies a call. Most of them do so with status 400."""
    return str(error.response["Error"]["Code"]).rpartition("#")[2] in {
        "AccessDeniedException",
        "AccessDenied",
        "UnauthorizedOperation",
    }
