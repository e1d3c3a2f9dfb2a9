"""The contract of the worker: environment variables.

=============================== ==================================================================== ========
Variable                        Meaning                                                              Default
=============================== ==================================================================== ========
``BATCH_QUEUE_URL``             queue of the model's shards                                          required
``BATCH_BUCKET``                bucket that holds the jobs (`batch.contracts.keys`)                  required
``BATCH_ENDPOINT``              base address of the model's endpoint, without ``/v1``                required
``BATCH_MODEL``                 the model's name, a dimension of the metrics                         required
``BATCH_PLATFORM``              the platform's name, the other one                                   local
``BATCH_IN_FLIGHT_LEAST``       requests in flight that are tried however often they are refused     4
``BATCH_IN_FLIGHT_START``       requests in flight at the start                                      64
``BATCH_IN_FLIGHT_MOST``        requests in flight at most, over all shards of the process           512
``BATCH_LATENCY_PERCENT``       how much longer answers may take than when little is asked, before   20
                                fewer requests are in flight; 0 where nobody else asks the endpoint
``BATCH_SHARDS_AT_ONCE``        shards held at most: one is sent, the others end or begin            8
``BATCH_MEMORY_MIB``            lines that are open, in MiB; images may take as much again           256
``BATCH_LINE_MOST_KIB``         longest line                                                         8192
``BATCH_IMAGE_MOST_KIB``        largest image                                                        20480
``BATCH_REQUEST_SECONDS``       time for a request from its sending to the last byte                 900
``BATCH_CONNECT_SECONDS``       time for a connection                                                10
``BATCH_ATTEMPTS``              failures of its own after which a line is given up                   5
``BATCH_RETRY_PERCENT``         requests sent again in vain, of all requests                         10
``BATCH_FLUSH_MILLISECONDS``    longest time from a result to its commit                             1000
``BATCH_FLUSH_KIB``             results that are committed before that time                          4096
``BATCH_HEARTBEAT_SECONDS``     time between two signs of life for a shard                           30
``BATCH_VISIBILITY_SECONDS``    time without one after which another worker gets the shard           120
``BATCH_POLL_SECONDS``          time that one look at the queue waits, 20 at most                    20
``BATCH_HOLD_SECONDS``          time after which a shard that is not done is given back, to go on    39600
                                under a new message: SQS lets nobody hold one for over 12 hours
``BATCH_DRAIN_SECONDS``         time for requests in flight after SIGTERM                            60
``BATCH_PROGRESS_TABLE``        table that is told how far shards are (`batch.contracts.progress`)   none
``BATCH_STATUS_FILE``           file that is written every 5 s while the process is well             none
``BATCH_SPOT_WARNINGS``         1 to drain on the instance's own warning, where nothing else         0
                                turns it into a SIGTERM
=============================== ==================================================================== ========

Beside them boto3 reads its own: ``AWS_REGION`` and so on. A heartbeat must come more often than the task's
``HeartbeatSeconds`` of 120.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

_KIB, _MIB = 2**10, 2**20
# From its receipt a message is hidden from others for so long at most
# (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html).
_LONGEST_HOLD_SECONDS = 43_200


class SettingsError(Exception):
    """Variables that are missing or wrong, all of them in one message."""


def _number(variable: str, default: int, *, least: int, most: int | None = None, scale: float = 1) -> Any:
    """Return a field of a whole number that is multiplied by a scale."""
    return field(
        metadata={"variable": variable, "default": default, "least": least, "most": most, "scale": scale}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a worker is told; sizes are bytes, times are seconds. The variables are described above."""

    queue_url: str
    bucket: str
    endpoint: str
    model: str
    platform: str = "local"
    in_flight_least: int = _number("BATCH_IN_FLIGHT_LEAST", 4, least=1)
    in_flight_start: int = _number("BATCH_IN_FLIGHT_START", 64, least=1)
    in_flight_most: int = _number("BATCH_IN_FLIGHT_MOST", 512, least=1)
    latency_ratio: float = _number("BATCH_LATENCY_PERCENT", 20, least=0, most=1000, scale=0.01)
    shards_at_once: int = _number("BATCH_SHARDS_AT_ONCE", 8, least=1)
    memory_bytes: int = _number("BATCH_MEMORY_MIB", 256, least=1, scale=_MIB)
    line_bytes: int = _number("BATCH_LINE_MOST_KIB", 8192, least=1, scale=_KIB)
    image_bytes: int = _number("BATCH_IMAGE_MOST_KIB", 20480, least=1, scale=_KIB)
    request_seconds: float = _number("BATCH_REQUEST_SECONDS", 900, least=1)
    connect_seconds: float = _number("BATCH_CONNECT_SECONDS", 10, least=1)
    attempts: int = _number("BATCH_ATTEMPTS", 5, least=1)
    retry_ratio: float = _number("BATCH_RETRY_PERCENT", 10, least=0, most=100, scale=0.01)
    flush_seconds: float = _number("BATCH_FLUSH_MILLISECONDS", 1000, least=1, scale=0.001)
    flush_bytes: int = _number("BATCH_FLUSH_KIB", 4096, least=1, scale=_KIB)
    heartbeat_seconds: float = _number("BATCH_HEARTBEAT_SECONDS", 30, least=1)
    visibility_seconds: int = _number("BATCH_VISIBILITY_SECONDS", 120, least=2, most=43200)
    poll_seconds: int = _number("BATCH_POLL_SECONDS", 20, least=0, most=20)
    drain_seconds: float = _number("BATCH_DRAIN_SECONDS", 60, least=0)
    hold_seconds: float = _number("BATCH_HOLD_SECONDS", 39_600, least=1, most=_LONGEST_HOLD_SECONDS)
    spot_warnings: int = _number("BATCH_SPOT_WARNINGS", 0, least=0, most=1)
    progress_table: str | None = None
    status_file: Path | None = None


_REQUIRED = ("BATCH_QUEUE_URL", "BATCH_BUCKET", "BATCH_ENDPOINT", "BATCH_MODEL")


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Read what a worker is told.

    Parameters
    ----------
    environment
        The process's environment.

    Raises
    ------
    SettingsError
        If variables are missing or no numbers in their range.
    """
    errors = [f"{name} is missing" for name in _REQUIRED if not environment.get(name)]
    numbers: dict[str, float] = {}
    for entry in fields(Settings):
        if entry.metadata:
            value = environment.get(entry.metadata["variable"]) or str(entry.metadata["default"])
            if error := _fault(value, entry.metadata):
                errors.append(error)
            else:
                numbers[entry.name] = int(value) * entry.metadata["scale"]
    if not errors:
        errors += _contradictions(numbers)
    if errors:
        raise SettingsError("; ".join(errors))
    status_file = environment.get("BATCH_STATUS_FILE")
    return Settings(
        queue_url=environment["BATCH_QUEUE_URL"],
        bucket=environment["BATCH_BUCKET"],
        endpoint=environment["BATCH_ENDPOINT"].rstrip("/"),
        model=environment["BATCH_MODEL"],
        platform=environment.get("BATCH_PLATFORM") or "local",
        progress_table=environment.get("BATCH_PROGRESS_TABLE") or None,
        status_file=Path(status_file) if status_file else None,
        **numbers,  # type: ignore[arg-type]
    )


def _fault(value: str, rule: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a number."""
    most = rule["most"]
    if value.isdecimal() and rule["least"] <= int(value) and (most is None or int(value) <= most):
        return None
    upper = "" if most is None else f" and at most {most}"
    return f"{rule['variable']}: got {value!r}, must be a whole number of at least {rule['least']}{upper}"


def _contradictions(numbers: Mapping[str, float]) -> list[str]:
    """Return what is wrong with numbers that are right one by one."""
    errors = []
    least, start, most = (numbers[f"in_flight_{name}"] for name in ("least", "start", "most"))
    if not least <= start <= most:
        errors.append(
            f"BATCH_IN_FLIGHT_LEAST, _START and _MOST: got {least}, {start} and {most}, must not decrease"
        )
    if numbers["heartbeat_seconds"] * 2 > numbers["visibility_seconds"]:
        errors.append("BATCH_HEARTBEAT_SECONDS must be at most half of BATCH_VISIBILITY_SECONDS")
    if numbers["hold_seconds"] + numbers["request_seconds"] > _LONGEST_HOLD_SECONDS:
        errors.append(
            "BATCH_HOLD_SECONDS and BATCH_REQUEST_SECONDS must be at most "
            f"{_LONGEST_HOLD_SECONDS} together: a shard is given back when its last request has ended"
        )
    return errors
