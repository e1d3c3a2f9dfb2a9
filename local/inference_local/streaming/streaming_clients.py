"""Clients of Kafka and Valkey: they send events, read dead letters, and see signals as readers do."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from kafka import KafkaConsumer, KafkaProducer, TopicPartition
from valkey.exceptions import ConnectionError as ValkeyConnectionError

from inference_blueprints.spec.types import StreamingJob
from inference_contracts.units import MILLISECONDS_PER_SECOND
from inference_local.streaming.click_stream import Click
from inference_local.streaming.streaming_counts import Sighting

_POLL_MILLIS = 500
#: Valkey announces each write of a hash field: https://valkey.io/topics/notifications/
_NOTIFICATIONS, _CHANNEL = "Eh", "__keyevent@0__:hset"


class ClickProducer:
    """Sends records at their times, in the background. Use it as a context manager.

    address: Address of the broker.
    job: The job that reads them.
    clicks: The records, in the order in which they are due.
    began: When the stream begins, in seconds since 1970.
    """

    def __init__(self, address: str, job: StreamingJob, clicks: Sequence[Click], began: float) -> None:
        # One request at a time: of a topic that was just created, a broker may take the second and then
        # refuse the first for ever (https://github.com/apache/kafka/pull/23234, KAFKA-15591).
        self._producer: Any = KafkaProducer(
            bootstrap_servers=address, acks="all", linger_ms=5, max_in_flight_requests_per_connection=1
        )
        self._name = job.topic_names.events
        self._clicks = clicks
        self._began = began
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._send, name="click producer", daemon=True)
        self._error: BaseException | None = None
        #: How many records are sent.
        self.sent = 0

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if exception is not None:
            self.stop()
        self._thread.join()
        self._producer.close()
        if self._error is not None and exception is None:
            raise self._error

    def stop(self) -> None:
        """Send no more records."""
        self._stopped.set()

    def _send(self) -> None:
        try:
            results = []
            for click in self._clicks:
                self._stopped.wait(max(0.0, self._began + click.due_seconds - time.time()))
                if self._stopped.is_set():
                    return
                # One key per session: its records keep their order.
                results.append(self._producer.send(self._name, key=click.session.encode(), value=click.body))
                self.sent += 1
            self._producer.flush()
            for result in results:
                result.get(timeout=60)
        except BaseException as error:  # noqa: BLE001 -- raised where the run waits
            self._error = error


class SignalWatch:
    """Sees each version of a signal when it becomes visible. Use it as a context manager.

    connect: Returns a client of the store that may configure it.
    """

    def __init__(self, connect: Callable[[], Any], signal: str) -> None:
        self._client = connect()
        self._client.config_set("notify-keyspace-events", _NOTIFICATIONS)
        self._prefix = f"signal:{signal}:"
        self._events = connect().pubsub()
        self._events.subscribe(_CHANNEL)
        self._seen: list[Sighting] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="signal watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
        self._events.close()
        self._client.close()

    @property
    def sightings(self) -> tuple[Sighting, ...]:
        """What was seen so far."""
        return tuple(self._seen)

    def visible(self) -> dict[str, int]:
        """Return the version of each session that readers get now."""
        keys = [key.decode() for key in self._client.scan_iter(match=self._prefix + "*", count=1000)]
        found: dict[str, int] = {}
        for key in keys:
            record = self._client.hget(key, "d")
            if record is not None:
                found[key.removeprefix(self._prefix)] = int(json.loads(record)["version"])
        return found

    def _watch(self) -> None:
        while not self._stopped.is_set():
            with contextlib.suppress(ValkeyConnectionError):
                message = self._events.get_message(ignore_subscribe_messages=True, timeout=0.2)
                if message is not None:
                    self._look(message["data"].decode(), time.time() * MILLISECONDS_PER_SECOND)

    def _look(self, key: str, now: float) -> None:
        if key.startswith(self._prefix):
            version = self._client.hget(key, "v")
            if version is not None:
                self._seen.append(Sighting(key.removeprefix(self._prefix), int(version), now))


def read_dead_letters(address: str, job: StreamingJob) -> list[dict[str, Any]]:
    """Return all dead letters of a job."""
    name = job.topic_names.dead_letters
    consumer: Any = KafkaConsumer(bootstrap_servers=address, enable_auto_commit=False)
    try:
        partitions = [TopicPartition(name, number) for number in consumer.partitions_for_topic(name) or ()]
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        letters: list[dict[str, Any]] = []
        while any(consumer.position(each) < ends[each] for each in partitions):
            for records in consumer.poll(timeout_ms=_POLL_MILLIS).values():
                letters += (json.loads(record.value) for record in records)
        return letters
    finally:
        consumer.close()


def read_history(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the finished files of a history. Flink hides the others by a name with a dot."""
    return [
        json.loads(line)
        for file in sorted(folder.rglob("*"))
        if file.is_file() and not file.name.startswith(".")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
