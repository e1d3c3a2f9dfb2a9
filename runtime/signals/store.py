"""Signals in Valkey: written in pipelines, an older version never over a newer one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Protocol

from signals.record import Signal, storage_key

#: Writes that travel together.
PIPELINE_SIZE: Final = 1000
# Atomic in the server: reads the version, and writes all or nothing. Equal versions are the same write come
# again, or a second answer to the same question: the first stays, so that readers see one.
_WRITE_IF_NEWER: Final = """
local version = redis.call('HGET', KEYS[1], 'v')
if version and tonumber(version) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'v', ARGV[1], 'd', ARGV[2])
redis.call('EXPIREAT', KEYS[1], ARGV[3])
return 1
"""


class Client(Protocol):
    """What is used of a client of the package ``valkey``, for one server or a cluster."""

    def pipeline(self, *, transaction: bool = ...) -> Any:
        """Return commands that travel together."""

    def hget(self, name: str, key: str) -> Any:
        """Return a field of a hash."""


@dataclass(frozen=True, slots=True)
class Written:
    """What became of writes.

    Parameters
    ----------
    written
        Signals that are there now.
    superseded
        Signals that lost against a version that was there.
    """

    written: int = 0
    superseded: int = 0

    def __add__(self, other: Written) -> Written:
        return Written(self.written + other.written, self.superseded + other.superseded)


class SignalStore:
    """Signals in Valkey.

    Parameters
    ----------
    client
        A client of the package ``valkey``.
    """

    def __init__(self, client: Client) -> None:
        self._client = client

    def write(self, signals: Iterable[Signal]) -> Written:
        """Write signals; doing it again changes nothing.

        Parameters
        ----------
        signals
            As many as there are: they are not held at once.

        Raises
        ------
        valkey.exceptions.ValkeyError
            If the server cannot be reached or refuses; what went before stays, and may be written again.
        """
        total = Written()
        for group in _groups(signals, PIPELINE_SIZE):
            pipeline = self._client.pipeline(transaction=False)
            for each in group:
                pipeline.execute_command(
                    "EVAL",
                    _WRITE_IF_NEWER,
                    1,
                    storage_key(each.name, each.key),
                    each.version,
                    each.to_json(),
                    each.expires,
                )
            written = sum(pipeline.execute())
            total += Written(written, len(group) - written)
        return total

    def get(self, name: str, key: str) -> Signal | None:
        """Return the newest value of a key; None if there is none that is still true.

        Raises
        ------
        valkey.exceptions.ValkeyError
            If the server cannot be reached or refuses.
        """
        text = self._client.hget(storage_key(name, key), "d")
        return None if text is None else Signal.from_json(name, key, text)

    def get_many(self, name: str, keys: Sequence[str]) -> dict[str, Signal]:
        """Return the newest values of many keys, by key; one without a value is left out.

        Raises
        ------
        valkey.exceptions.ValkeyError
            If the server cannot be reached or refuses.
        """
        pipeline = self._client.pipeline(transaction=False)
        for key in keys:
            pipeline.hget(storage_key(name, key), "d")
        texts = pipeline.execute()
        return {
            key: Signal.from_json(name, key, text)
            for key, text in zip(keys, texts, strict=True)
            if text is not None
        }


def _groups(signals: Iterable[Signal], size: int) -> Iterator[list[Signal]]:
    """Iterate over runs of signals."""
    iterator = iter(signals)
    while group := list(islice(iterator, size)):
        yield group
