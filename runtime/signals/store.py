"""Signals in Valkey: written in pipelines, an older version never over a newer one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from valkey.exceptions import NoScriptError

from signals.errors import store_errors
from signals.reading import PIPELINE_SIZE, SignalReader
from signals.record import Signal, storage_key

# Atomic in the server: reads the version, and writes all or nothing. Equal versions are the same write come
# again, or a second answer to the same question: the first stays, so that readers see one.
_WRITE_IF_NEWER: Final = """
local version = redis.call('HGET', KEYS[1], 'v')
if version and tonumber(version) >= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'v', ARGV[1], 'd', ARGV[2])
redis.call('EXPIREAT', KEYS[1], ARGV[3])
return 1
"""
# The server's name of the script, which it knows once it was sent whole.
_DIGEST: Final = hashlib.sha1(_WRITE_IF_NEWER.encode(), usedforsecurity=False).hexdigest()


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


class SignalStore(SignalReader):
    """Signals in Valkey, read and written.

    Parameters
    ----------
    client
        A client of the package ``valkey``.
    """

    def write(self, signals: Iterable[Signal]) -> Written:
        """Write signals; doing it again changes nothing.

        Parameters
        ----------
        signals
            As many as there are: they are not held at once.

        Raises
        ------
        StoreError
            If the server cannot be reached or refuses; what went before stays, and may be written again.
        """
        total = Written()
        for group in _groups(signals, PIPELINE_SIZE):
            with store_errors():
                written = self._write_group(group)
            total += Written(written, len(group) - written)
        return total

    def _write_group(self, group: Sequence[Signal]) -> int:
        """Write signals in one pipeline, and return how many are there now."""
        answers = self._send("EVALSHA", _DIGEST, group)
        # A server that was started or replaced since knows no script; in a cluster, only some of them.
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

    def _send(self, command: str, script: str, signals: Sequence[Signal]) -> list[Any]:
        """Return the answer to each write, be it an error."""
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


def _groups(signals: Iterable[Signal], size: int) -> Iterator[list[Signal]]:
    """Iterate over runs of signals."""
    iterator = iter(signals)
    while group := list(islice(iterator, size)):
        yield group
