"""Read signals while a request waits.

>>> from signals.reading import open_reader
>>> reader = open_reader()          # once per process
>>> signal = reader.get("intent", "shopper-1")
>>> signals = reader.get_many("intent", ["shopper-1", "shopper-2"])
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self

from signals.connection import INTERACTIVE_TIMEOUTS, Address, Timeouts, open_client, read_address
from signals.record import SignalRecord, check_name, storage_key
from signals.store_errors import store_errors

#: Commands per pipeline.
PIPELINE_SIZE: Final = 1000


class Client(Protocol):
    """The methods that readers use of a ``valkey`` client, for one server or a cluster."""

    def pipeline(self, *, transaction: bool = ...) -> Any:
        """Return a pipeline of commands."""

    def hget(self, name: str, key: str) -> Any:
        """Return a field of a hash."""

    def close(self) -> None:
        """Close all connections."""


class SignalReader:
    """Reads the newest values. Threads may share it; as a context manager it closes its connections.

    Parameters
    ----------
    client
        A client of the package ``valkey``.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    def get(self, name: str, key: str) -> SignalRecord | None:
        """Return the newest value of a key in one round trip; None if it is missing or has expired.

        Parameters
        ----------
        name, key
            Name and key of the signal.

        Raises
        ------
        InvalidSignalError
            If the name is not valid, or the stored record is not a signal.
        StoreError
            If the server cannot be reached or refuses.
        """
        check_name(name)
        with store_errors():
            text = self._client.hget(storage_key(name, key), "d")
        return None if text is None else SignalRecord.from_json(name, key, text)

    def get_many(self, name: str, keys: Sequence[str]) -> dict[str, SignalRecord]:
        """Return the newest values of many keys by key. A round trip reads a thousand keys.

        Parameters
        ----------
        name
            Name of the signal.
        keys
            Keys to read. The result leaves out keys without a value.

        Raises
        ------
        InvalidSignalError
            If the name is not valid, or the stored record is not a signal.
        StoreError
            If the server cannot be reached or refuses.
        """
        check_name(name)
        found = {}
        for start in range(0, len(keys), PIPELINE_SIZE):
            group = keys[start : start + PIPELINE_SIZE]
            pipeline = self._client.pipeline(transaction=False)
            for key in group:
                pipeline.hget(storage_key(name, key), "d")
            with store_errors():
                texts = pipeline.execute()
            for key, text in zip(group, texts, strict=True):
                if text is not None:
                    found[key] = SignalRecord.from_json(name, key, text)
        return found


def open_reader(address: Address | None = None, timeouts: Timeouts = INTERACTIVE_TIMEOUTS) -> SignalReader:
    """Return a reader that keeps its connections.

    Parameters
    ----------
    address
        Address of the store. None reads the environment variables of `signals.connection`.
    timeouts
        Timeouts and repetitions.

    Raises
    ------
    SettingsError
        If the address, the region or credentials are missing or wrong.
    StoreError
        If the cache cannot be reached or refuses the connection.
    """
    return SignalReader(open_client(address or read_address(), timeouts))
