"""Errors of the store, independent of the Valkey client."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from valkey.exceptions import (
    AuthenticationError,
    AuthorizationError,
    ClusterDownError,
    ConnectionError,  # noqa: A004 - the client's error is not Python's
    NoPermissionError,
    TimeoutError,  # noqa: A004 - likewise
    ValkeyClusterException,
    ValkeyError,
)

# Some refusals are subclasses of connection errors, so they are tested first.
_REFUSALS = (AuthenticationError, AuthorizationError, NoPermissionError)
_SILENCES = (ConnectionError, TimeoutError, ClusterDownError)


# Other programs have an error of the same kind. This package keeps its own, because users install it alone.
class SettingsError(Exception):
    """Settings of the connection are missing or wrong. One message names all of them."""


class StoreError(Exception):
    """The store did not carry out a command. Repeating it is safe."""


class StoreUnreachableError(StoreError):
    """The store does not answer, or not in time."""


class StoreRefusedError(StoreError):
    """The store rejects the user, or the user lacks a permission."""


@contextmanager
def store_errors() -> Iterator[None]:
    """Translate errors of the client into errors of this module.

    Raises
    ------
    StoreRefusedError
        If the user or its token is rejected, or the user lacks a permission.
    StoreUnreachableError
        If there is no answer.
    StoreError
        If the server answers with another error.
    """
    try:
        yield
    except ValkeyClusterException as error:
        # No node answers, or all reject the client; the cause is the error of the last node.
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
