"""What can go wrong with the store, whatever client is underneath."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from valkey.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    ConnectionError,  # noqa: A004 - the client's, which is none of Python's
    NoPermissionError,
    TimeoutError,  # noqa: A004 - likewise
    ValkeyClusterException,
    ValkeyError,
)

# Some refusals are errors of connections too, so they are looked for first.
_REFUSALS = (AuthenticationError, AuthorizationError, NoPermissionError)
_SILENCES = (ConnectionError, TimeoutError, ClusterDownError)


class SettingsError(Exception):
    """What the store is reached with is missing or wrong, all of it in one message."""


class StoreError(Exception):
    """The store does not do what it was asked for; doing it again is harmless."""


class StoreUnreachableError(StoreError):
    """Nothing answers, or not in time."""


class StoreRefusedError(StoreError):
    """The store does not let this user in, or not do this."""


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn the client's errors into those of this module.

    Raises
    ------
    StoreRefusedError
        If the user or its token is refused, or may not do this.
    StoreUnreachableError
        If there is no answer.
    StoreError
        If the server answers with another error.
    """
    try:
        yield
    except ValkeyClusterException as error:
        # No node answers, or all refuse; the cause is the last one's. Without any, none has answered before.
        raise _as_store_error(error.__cause__ or ConnectionError(str(error))) from error
    except ValkeyError as error:
        raise _as_store_error(error) from error


def _as_store_error(error: BaseException) -> StoreError:
    words = " ".join(str(error).split())
    if isinstance(error, _REFUSALS):
        return StoreRefusedError(words)
    if isinstance(error, _SILENCES):
        return StoreUnreachableError(words)
    return StoreError(words)
