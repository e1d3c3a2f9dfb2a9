"""Writes signals to Valkey in pipelines. An older version never replaces a newer one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from valkey.exceptions import NoScriptError

from signals.reading import PIPELINE_SIZE, SignalReader
from signals.record import SignalRecord, storage_key
from signals.store_errors import store_errors

# Atomic in the server: reads the version, then writes all or nothing. An equal version is a repeated write,
# or a second answer to the same prompt: the first value stays, so that readers see one value.
_WRITE_IF_NEWER: Final = """
local version = redis.call('HGET', KEYS[1], 'v')
if version and tonumber(version) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'v', ARGV[1], 'd', ARGV[2])
redis.call('EXPIREAT', KEYS[1], ARGV[3])
return 1
"""
# Digest by which the server finds the script after it was sent once.
_DIGEST: Final = hashlib.sha1(_WRITE_IF_NEWER.encode(), usedforsecurity=False).hexdigest()


@dataclass(frozen=True, slots=True)
class Written:
    """Result of writes."""

    written: int = 0
    """Signals that the store holds now."""
    superseded: int = 0
    """Signals that lost against an equal or newer version in the store."""

    def __add__(self, other: Written) -> Written:
        return Written(self.written + other.written, self.superseded + other.superseded)


class SignalWriter(SignalReader):
    """Signals in Valkey, read and written.

    Parameters
    ----------
    client
        A client of the package ``valkey``.
    """

    def write(self, signals: Iterable[SignalRecord]) -> Written:
        """Write signals. Repeating it changes nothing.

        Parameters
        ----------
        signals
            Signals to write. They are consumed in groups, so an iterator of any length fits into memory.

        Raises
        ------
        StoreError
            If the server cannot be reached or refuses. Earlier writes stay and may be repeated.
        """
        total = Written()
        for group in _groups(signals, PIPELINE_SIZE):
            with store_errors():
                written = self._write_group(group)
            total += Written(written, len(group) - written)
        return total

    def _write_group(self, group: Sequence[SignalRecord]) -> int:
        """Write signals in one pipeline and return how many were written."""
        answers = self._send("EVALSHA", _DIGEST, group)
        # A restarted or replaced server does not know the script; in a cluster that may be some nodes only.
        unknown = [
            signal for signal, answer in zip(group, answers, strict=True) if isinstance(answer, NoScriptError)
        ]
        answers = [answer for answer in answers if not isinstance(answer, NoScriptError)]
        if unknown:
            answers += self._send("EVAL", _WRITE_IF_NEWER, unknown)
        for answer in answers:
            if isinstance(answer, Exception):
                raise answer
        return sum(answers)

    def _send(self, command: str, script: str, signals: Sequence[SignalRecord]) -> list[Any]:
        """Return the response to each write, including errors."""
        pipeline = self._client.pipeline(transaction=False)
        for each in signals:
            pipeline.execute_command(
                command,
                script,
                1,
                storage_key(each.name, each.key),
                each.version,
                each.to_json(),
                each.expires,
            )
        answers: list[Any] = pipeline.execute(raise_on_error=False)
        return answers


def _groups(signals: Iterable[SignalRecord], size: int) -> Iterator[list[SignalRecord]]:
    """Iterate over groups of signals."""
    iterator = iter(signals)
    while group := list(islice(iterator, size)):
        yield group
