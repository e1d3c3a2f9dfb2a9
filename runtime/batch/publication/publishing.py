"""Writes the answers of a part to the signal store and to its history, in bounded memory."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, Protocol

from batch.contracts.publication import Published
from batch.contracts.request import JobRequest
from batch.objects import Objects
from batch.preparation.line_reader import read_lines
from batch.publication.answers import read_signals
from batch.publication.prompts import PromptDigests
from inference_contracts.batch_keys import JobKeys
from inference_contracts.signal_rows import history_key
from signals.record import SignalRecord
from signals.store import Written

_AT_ONCE: Final = 1000
#: Longest row. It contains an answer, which the worker held whole in memory.
_LONGEST_LINE: Final = 256 * 2**20
# Window bits of zlib for a gzip frame. The frame contains no time.
_GZIP: Final = 31


class Store(Protocol):
    """The part of a signal store's interface that is used."""

    def write(self, signals: Iterable[SignalRecord]) -> Written:
        """Write signals. A repeated call changes nothing."""


class Publisher:
    """Publishes parts.

    history: Bucket of the history.
    """

    def __init__(self, store: Store, objects: Objects, history: Objects) -> None:
        self._store = store
        self._objects = objects
        self._history = history

    def publish(self, job: str, part: str) -> Published:
        """Publish the answers of a part. A repeated call writes the same.

        job, part: The job's identifier and the part's name.
        Raises LookupError if the job does not publish. Raises signals.store_errors.StoreError if the store
            cannot be reached or refuses. Earlier writes stay, and the history is not written.
        """
        keys = JobKeys(job).part(part)
        request = JobRequest.from_json(self._objects.read(JobKeys(job).request))
        publication = request.publication
        if publication is None:
            raise LookupError(f"{job}: the job does not publish its answers")
        digests = PromptDigests(self._lines(keys.lines))
        answers = read_signals(self._lines(keys.output), request, publication, digests)
        tally = _Tally()
        self._history.write_stream(
            history_key(publication.signal, publication.version, job, part),
            _compressed(self._written(answers, job, tally)),
        )
        self._objects.write(keys.published, tally.published.to_json().encode())
        return tally.published

    def _lines(self, key: str) -> Iterator[bytes]:
        for line in read_lines(self._objects.pieces(key), first_offset=0, limit=_LONGEST_LINE):
            if line.content is None:
                raise ValueError(f"{key}: a line has {line.size} bytes, at most {_LONGEST_LINE} are read")
            yield line.content

    def _written(self, answers: Iterator[SignalRecord | None], job: str, tally: _Tally) -> Iterator[bytes]:
        """Write signals to the store, and iterate over their rows of the history."""
        while group := list(islice(answers, _AT_ONCE)):
            signals = [signal for signal in group if signal is not None]
            tally.add(self._store.write(signals), unfit=len(group) - len(signals))
            yield _rows(signals, job)


class _Tally:
    """Counts of the answers so far."""

    def __init__(self) -> None:
        self.published = Published()

    def add(self, written: Written, *, unfit: int) -> None:
        """Add the counts of a group."""
        self.published += Published(written.written, written.superseded, unfit)


def _rows(signals: Sequence[SignalRecord], job: str) -> bytes:
    """Return signals as rows of the history, with columns `signal_rows.COLUMNS`."""
    rows = (
        {
            "key": signal.key,
            "value": signal.value,
            "version": signal.version,
            "model": signal.model,
            "prompt_hash": signal.prompt_hash,
            "time": signal.time,
            "expires": signal.expires,
            "job": job,
        }
        for signal in signals
    )
    return b"".join(json.dumps(row, separators=(",", ":")).encode() + b"\n" for row in rows)


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Iterate over pieces as a gzip file. Equal pieces make equal files."""
    compressor = zlib.compressobj(wbits=_GZIP)
    for piece in pieces:
        yield compressor.compress(piece)
    yield compressor.flush()
