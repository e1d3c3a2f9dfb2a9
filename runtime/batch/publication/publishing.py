"""Writes the answers of a part to the signal store and to its history, in bounded memory."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from batch.contracts.progress_items import Published
from batch.contracts.request import JobRequest, Publication
from batch.contracts.shard import ShardLine
from batch.objects import Objects
from batch.preparation.line_reader import read_lines
from inference_contracts.batch_keys import JobKeys
from inference_contracts.signal_rows import history_key
from signals.record import InvalidSignalError, SignalRecord
from signals.store import Written

# Digests of a shard's prompts. A signal names its prompt by the digest.

_BYTES: Final = 16


class PromptDigests:
    """Half a SHA-256 for each line of a shard. It covers the body, and the addresses of its images.

    The digests take 16 bytes per line. All of them are in memory, because answers come in the order of
    completion.

    lines: Lines of the shard's file, in order.
    """

    def __init__(self, lines: Iterable[bytes]) -> None:
        self._digests = bytearray()
        for line in lines:
            read = ShardLine.from_json(line)
            asked = {"body": read.body, "images": read.images} if read.images else read.body
            self._digests += hashlib.sha256(_canonical(asked)).digest()[:_BYTES]

    def of(self, ordinal: int) -> str:
        return self._digests[ordinal * _BYTES : (ordinal + 1) * _BYTES].hex()


def _canonical(value: Any) -> bytes:
    """Return the same bytes for equal values, regardless of the order of keys."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return text.encode("utf-8", "surrogatepass")


# Converts a row of the output file to a signal.


def read_signals(
    rows: Iterable[bytes], request: JobRequest, publication: Publication, digests: PromptDigests
) -> Iterator[SignalRecord | None]:
    """Iterate over rows as signals; None for an answer that cannot be a signal.

    A signal's key is the line's ``custom_id``. Its value is the text of the first choice. Its time is the
    answer's ``created`` field, or the job's submission time if the field is missing.

    rows: Rows of the output of one shard.
    publication: Destination of the answers.
    digests: Digests of the shard's prompts.
    """
    for row in rows:
        values = json.loads(row)
        body = values["response"]["body"]
        text = _text(body)
        created = body.get("created")
        said = created if isinstance(created, int) else publication.version // 1000
        ordinal = int(values["id"].rpartition("_")[2])
        yield (
            None
            if text is None
            else _signal(
                name=publication.signal,
                key=values["custom_id"],
                value=text,
                version=publication.version,
                model=request.model,
                prompt_hash=digests.of(ordinal),
                time=said,
                expires=said + publication.ttl_seconds,
            )
        )


def _signal(**values: Any) -> SignalRecord | None:
    """Return a signal; None if the store cannot hold it, for example because the key is too long."""
    try:
        return SignalRecord(**values)
    except InvalidSignalError:
        return None


def _text(body: Mapping[str, Any]) -> str | None:
    """Return the text of an answer's first choice; None if it has none, for example a tool call."""
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices:
        return None
    message = choices[0].get("message")
    text = message.get("content") if isinstance(message, dict) else choices[0].get("text")
    return text if isinstance(text, str) and text else None


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
