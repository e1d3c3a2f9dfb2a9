"""Reading signals while a request waits.

>>> from signals.reading import open_reader
>>> reader = open_reader()          # once a process
>>> signal = reader.get("intent", "shopper-1")
>>> signals = reader.get_many("intent", ["shopper-1", "shopper-2"])
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Protocol, Self

from signals.connection import QUICK, Address, Patience, open_client, read_address
from signals.errors import store_errors
from signals.record import Signal, check_name, storage_key

#: Commands that travel together.
PIPELINE_SIZE: Final = 1000


class Client(Protocol):
    """What is used of a client of the package ``valkey``, for one server or a cluster."""

    def pipeline(self, *, transaction: bool = ...) -> Any:
        """Return commands that travel together."""

    def hget(self, name: str, key: str) -> Any:
        """Return a field of a hash."""

    def close(self) -> None:
        """Close all connections."""


class SignalReader:
    """The newest signals; threads may share it. A context manager, that closes its connections.

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

    def get(self, name: str, key: str) -> Signal | None:
        """Return the newest value of a key, in one round trip; None if there is none that is still true.

        Parameters
        ----------
        name, key
            The signal's.

        Raises
        ------
        InvalidSignalError
            If the name is none, or what is there is no signal.
        StoreError
            If the server cannot be reached or refuses.
        """
        check_name(name)
        with store_errors():
            text = self._client.hget(storage_key(name, key), "d")
        return None if text is None else Signal.from_json(name, key, text)

    def get_many(self, name: str, keys: Sequence[str]) -> dict[str, Signal]:
        """Return the newest values of many keys, by key, in a round trip for a thousand keys.

        Parameters
        ----------
        name
            The signal's.
        keys
            The keys. One without a value is left out of what is returned.

        Raises
        ------
        InvalidSignalError
            If the name is none, or what is there is no signal.
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
                    found[key] = Signal.from_json(name, key, text)
        return found


def open_reader(address: Address | None = None, patience: Patience = QUICK) -> SignalReader:
    """Return a reader that keeps its connections.

    Parameters
    ----------
    address
        Where the store is; None for where the variables of `signals.connection` say.
    patience
        How long it waits.

    Raises
    ------
    SettingsError
        If the address, the region or credentials are missing or wrong.
    StoreError
        If a cache cannot be reached, or refuses.
    """
    return SignalReader(open_client(address or read_address(), patience))
