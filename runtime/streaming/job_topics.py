"""The topics of a job: what the tools read from them and write to them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import boto3
from kafka import KafkaConsumer, KafkaProducer, TopicPartition

from inference_contracts.streaming_job import (
    JOB_DOCUMENT,
    JobKafka,
    JobSignalStore,
    StreamingJobConfiguration,
)
from signals.connection import Address


@cache
def job_configuration() -> StreamingJobConfiguration:
    """Return the configuration, which the environment variable ``STREAMING_CONFIGURATION`` addresses."""
    bucket, _, key = os.environ[JOB_DOCUMENT].removeprefix("s3://").partition("/")
    body = boto3.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    return StreamingJobConfiguration.from_json(body.decode("utf-8"))


def store_address(store: JobSignalStore, environment: Mapping[str, str] = os.environ) -> Address:
    """Return the address of the signal store, with the user of this function (``SIGNALS_USER``).

    store: The store in the job's configuration.
    """
    iam = store.authentication == "iam"
    return Address(
        host=store.host,
        port=store.port,
        cache=store.cache_name if iam else None,
        user=environment.get("SIGNALS_USER", store.user) if iam else None,
        region=store.region if iam else None,
    )


_ANSWER_MILLISECONDS: Final = 30_000
_POLL_MILLISECONDS: Final = 1000
_MAX_RECORDS: Final = 500
#: A topic that gives nothing for so long is not reachable.
_SILENCE_SECONDS: Final = 60.0

#: Position by partition: the offset of the next record.
Positions = dict[int, int]


class TopicError(Exception):
    """A topic that cannot be read. The message says why."""


@dataclass(frozen=True, slots=True)
class TopicRecord:
    """A record of a topic."""

    partition: int
    offset: int
    """`partition`, `offset`: Its position."""
    value: bytes
    """Its content."""


def _connection(kafka: JobKafka) -> dict[str, Any]:
    """Return the settings of a client. MSK takes IAM's signatures by TLS only."""
    servers = kafka.bootstrap_servers.split(",")
    if kafka.authentication == "none":
        return {"bootstrap_servers": servers}
    # https://docs.aws.amazon.com/msk/latest/developerguide/iam-access-control.html
    return {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "AWS_MSK_IAM",
    }


class TopicReader:
    """Reads a topic from given positions, without a consumer group: it leaves no trace.

    kafka: Where the topic is.
    """

    def __init__(self, kafka: JobKafka, topic: str) -> None:
        self._topic = topic
        self._consumer = KafkaConsumer(
            enable_auto_commit=False, group_id=None, max_poll_records=_MAX_RECORDS, **_connection(kafka)
        )
        found = self._consumer.partitions_for_topic(topic)
        if not found:
            self._consumer.close()
            raise TopicError(f"the topic {topic} does not exist, or this role may not describe it")
        self._partitions = [TopicPartition(topic, number) for number in sorted(found)]

    def close(self) -> None:
        """Close the connections."""
        self._consumer.close()

    def oldest(self) -> Positions:
        """Return the position of the oldest record of each partition."""
        return {each.partition: place for each, place in self._bounds("beginning_offsets").items()}

    def newest(self) -> Positions:
        """Return the position after the newest record of each partition."""
        return {each.partition: place for each, place in self._bounds("end_offsets").items()}

    def _bounds(self, method: str) -> Mapping[TopicPartition, int]:
        found: Mapping[TopicPartition, int] = getattr(self._consumer, method)(self._partitions)
        return found

    def read(self, start: Positions, end: Positions) -> Iterator[TopicRecord]:
        """Iterate over records, partition by partition.

        start, end: First position, and the position after the last, of each partition.
        Raises TopicError if the brokers give nothing for a minute.
        """
        for partition in self._partitions:
            number = partition.partition
            if start.get(number, 0) >= end.get(number, 0):
                continue
            self._consumer.assign([partition])
            self._consumer.seek(partition, start[number])
            yield from self._read_partition(partition, end[number])

    def _read_partition(self, partition: TopicPartition, end: int) -> Iterator[TopicRecord]:
        silent_since = time.monotonic()
        # A position can pass records that retention or a transaction removed, so it decides, not the records.
        while self._consumer.position(partition) < end:
            batches = self._consumer.poll(timeout_ms=_POLL_MILLISECONDS)
            for record in batches.get(partition, []):
                if record.offset < end:
                    yield TopicRecord(record.partition, record.offset, record.value or b"")
            if batches:
                silent_since = time.monotonic()
            elif time.monotonic() - silent_since > _SILENCE_SECONDS:
                raise TopicError(f"the brokers of {self._topic} give no records")


class TopicWriter:
    """Writes records to a topic and waits until all replicas that are in sync have them."""

    def __init__(self, kafka: JobKafka, topic: str) -> None:
        self._topic = topic
        self._producer = KafkaProducer(acks="all", enable_idempotence=False, **_connection(kafka))

    def write(self, value: bytes, key: bytes | None = None) -> None:
        """Write one record.

        value: Its content.
        key: Decides about the partition; None spreads records.
        """
        self._producer.send(self._topic, value=value, key=key).get(timeout=_ANSWER_MILLISECONDS / 1000)

    def close(self) -> None:
        """Close the connections."""
        self._producer.close()


def event_writer(kafka: JobKafka) -> TopicWriter:
    """Return what writes to the topic of a job's events."""
    return TopicWriter(kafka, kafka.topic)
