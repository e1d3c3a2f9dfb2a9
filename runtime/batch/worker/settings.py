"""Environment variables of the worker.

=============================== ==================================================================== ========
Variable                        Meaning                                                              Default
=============================== ==================================================================== ========
``BATCH_QUEUE_URL``             queue of the model's shards                                          required
``BATCH_BUCKET``                bucket that holds the jobs (`JobKeys`)                               required
``BATCH_ENDPOINT``              base address of the model's endpoint, without ``/v1``                required
``BATCH_LENT_ENDPOINTS``        more addresses, with commas, of deployments that may have no         none
                                workers: each gets shards of its own while it has some
``BATCH_MODEL``                 the model's name, a dimension of the metrics                         required
``BATCH_LENT_DEPLOYMENTS``      through the front door, in the place of these addresses: names of     none
                                such deployments, with commas
``DOOR_KEYS_SECRET``            ARN of the secret with a key of each team, if the endpoint is the    none
                                front door: requests then name its model of batch
``BATCH_PLATFORM``              the platform's name, another dimension of the metrics                local
``BATCH_IN_FLIGHT_LEAST``       requests in flight that are tried even if all are refused            4
``BATCH_IN_FLIGHT_START``       requests in flight at the start                                      64
``BATCH_IN_FLIGHT_MOST``        maximum of requests in flight, over all shards of the process        512
``BATCH_LATENCY_PERCENT``       how much longer answers may take than with little load, before       20
                                the limit is cut; 0 if the endpoint has no other clients
``BATCH_REQUEST_HEADERS``       headers of each request to the endpoint, as a JSON object of strings   none
``BATCH_SHARDS_AT_ONCE``        maximum of shards held: one is sent, the others end or begin         8
``BATCH_MEMORY_MIB``            lines that are open, in MiB; images may take as much again           256
``BATCH_LINE_MOST_KIB``         longest line                                                         8192
``BATCH_IMAGE_MOST_KIB``        largest image                                                        20480
``BATCH_REQUEST_SECONDS``       time for a request from its sending to the last byte                 900
``BATCH_CONNECT_SECONDS``       time for a connection                                                10
``BATCH_ATTEMPTS``              failures caused by a line after which it is given up                 5
``BATCH_RETRY_PERCENT``         failing retries, as a share of all requests                          10
``BATCH_FLUSH_MILLISECONDS``    longest time from a result to its commit                             1000
``BATCH_FLUSH_KIB``             results that are committed before that time                          4096
``BATCH_HEARTBEAT_SECONDS``     time between two heartbeats for a shard                           30
``BATCH_VISIBILITY_SECONDS``    time without a heartbeat after which another worker gets the shard   120
``BATCH_POLL_SECONDS``          longest wait of one poll of the queue, at most 20                    20
``BATCH_HOLD_SECONDS``          time after which an unfinished shard is given back, to continue      39600
                                under a new message: SQS allows a holding time of 12 hours
``BATCH_DRAIN_SECONDS``         time for requests in flight after SIGTERM                            60
``BATCH_PROGRESS_TABLE``        table of the progress of shards (`batch.contracts.progress_items`)    none
``BATCH_CEILINGS_TABLE``        table of the model's ceiling, which the capacity shift writes        none
``BATCH_METRICS_SECONDS``       time between two lines of metrics                                    60
``BATCH_STATUS_FILE``           file that is written every 5 s while the process is healthy          none
``BATCH_SPOT_WARNINGS``         1 to drain on EC2's Spot warning, if nothing else                    0
                                turns it into a SIGTERM
=============================== ==================================================================== ========

boto3 also reads its own variables, such as ``AWS_REGION``. Heartbeats must be more frequent than the task's
``HeartbeatSeconds`` of 120.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from batch.variables import BatchSettingsError, missing
from inference_contracts import batch_limits as limits
from inference_contracts import batch_names as variables
from inference_contracts.platform_keys import SECRET_VARIABLE
from inference_contracts.units import KIB, MIB

# A message can be hidden from others for at most this time after its receipt
# (https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html).
_LONGEST_HOLD_SECONDS = 43_200


def _number(
    variable: str, default: int, *, minimum: int, maximum: int | None = None, scale: float = 1
) -> Any:
    """Return a dataclass field for a whole number that is multiplied by a scale."""
    return field(
        metadata={"variable": variable, "default": default, "least": minimum, "most": maximum, "scale": scale}
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSettings:
    """Settings of a worker. Sizes are in bytes, times in seconds. The variables are described above."""

    queue_url: str
    bucket: str
    endpoint: str
    model: str
    platform: str = "local"
    lent_endpoints: tuple[str, ...] = ()
    lent_deployments: tuple[str, ...] = ()
    request_headers: Mapping[str, str] = field(default_factory=dict)
    in_flight_least: int = _number(variables.IN_FLIGHT_LEAST, 4, minimum=1)
    in_flight_start: int = _number(variables.IN_FLIGHT_START, 64, minimum=1)
    in_flight_most: int = _number(variables.IN_FLIGHT_MOST, limits.REQUESTS_PER_WORKER, minimum=1)
    latency_ratio: float = _number(variables.LATENCY_PERCENT, 20, minimum=0, maximum=1000, scale=0.01)
    shards_at_once: int = _number(variables.SHARDS_AT_ONCE, 8, minimum=1)
    memory_bytes: int = _number(variables.MEMORY_MIB, limits.WORKER_LINE_BYTES // MIB, minimum=1, scale=MIB)
    line_bytes: int = _number(variables.LINE_MOST_KIB, 8192, minimum=1, scale=KIB)
    image_bytes: int = _number(variables.IMAGE_MOST_KIB, 20480, minimum=1, scale=KIB)
    request_seconds: float = _number(variables.REQUEST_SECONDS, 900, minimum=1)
    connect_seconds: float = _number(variables.CONNECT_SECONDS, 10, minimum=1)
    attempts: int = _number(variables.ATTEMPTS, 5, minimum=1)
    retry_ratio: float = _number(variables.RETRY_PERCENT, 10, minimum=0, maximum=100, scale=0.01)
    flush_seconds: float = _number(
        variables.FLUSH_MILLISECONDS, 1000 * limits.FLUSH_SECONDS, minimum=1, scale=0.001
    )
    flush_bytes: int = _number(variables.FLUSH_KIB, limits.FLUSH_BYTES // KIB, minimum=1, scale=KIB)
    heartbeat_seconds: float = _number(
        variables.HEARTBEAT_SECONDS, limits.WORKER_HEARTBEAT_SECONDS, minimum=1
    )
    visibility_seconds: int = _number(
        variables.VISIBILITY_SECONDS, limits.VISIBILITY_SECONDS, minimum=2, maximum=43200
    )
    poll_seconds: int = _number(variables.POLL_SECONDS, 20, minimum=0, maximum=20)
    drain_seconds: float = _number(variables.DRAIN_SECONDS, 60, minimum=0)
    hold_seconds: float = _number(variables.HOLD_SECONDS, 39_600, minimum=1, maximum=_LONGEST_HOLD_SECONDS)
    metrics_seconds: float = _number(variables.METRICS_SECONDS, 60, minimum=1)
    spot_warnings: int = _number(variables.SPOT_WARNINGS, 0, minimum=0, maximum=1)
    progress_table: str | None = None
    ceilings_table: str | None = None
    status_file: Path | None = None
    door_keys_secret: str | None = None


_REQUIRED = (variables.QUEUE_URL, variables.BUCKET, variables.ENDPOINT, variables.MODEL)


def read_settings(environment: Mapping[str, str]) -> WorkerSettings:
    """Read the settings from environment variables.

    Raises BatchSettingsError if variables are missing, or are not numbers in their range.
    """
    errors = missing(environment, *_REQUIRED)
    numbers: dict[str, float] = {}
    for entry in fields(WorkerSettings):
        if entry.metadata:
            value = environment.get(entry.metadata["variable"]) or str(entry.metadata["default"])
            if error := _fault(value, entry.metadata):
                errors.append(error)
            else:
                numbers[entry.name] = int(value) * entry.metadata["scale"]
    headers, fault = _headers(environment.get(variables.REQUEST_HEADERS) or "{}")
    errors += [fault] if fault else []
    if not errors:
        errors += _contradictions(numbers)
    if errors:
        raise BatchSettingsError("; ".join(errors))
    status_file = environment.get(variables.STATUS_FILE)
    return WorkerSettings(
        queue_url=environment[variables.QUEUE_URL],
        bucket=environment[variables.BUCKET],
        endpoint=environment[variables.ENDPOINT].rstrip("/"),
        model=environment[variables.MODEL],
        platform=environment.get(variables.PLATFORM) or "local",
        lent_endpoints=tuple(each.rstrip("/") for each in _list(environment, variables.LENT_ENDPOINTS)),
        lent_deployments=_list(environment, variables.LENT_DEPLOYMENTS),
        request_headers=headers,
        progress_table=environment.get(variables.PROGRESS_TABLE) or None,
        ceilings_table=environment.get(variables.CEILINGS_TABLE) or None,
        status_file=Path(status_file) if status_file else None,
        door_keys_secret=environment.get(SECRET_VARIABLE) or None,
        **numbers,  # type: ignore[arg-type]
    )


def _fault(value: str, rule: Mapping[str, Any]) -> str | None:
    """Return the problem of a number."""
    maximum = rule["most"]
    if value.isdecimal() and rule["least"] <= int(value) and (maximum is None or int(value) <= maximum):
        return None
    upper = "" if maximum is None else f" and at most {maximum}"
    return f"{rule['variable']}: got {value!r}, must be a whole number of at least {rule['least']}{upper}"


def _list(environment: Mapping[str, str], variable: str) -> tuple[str, ...]:
    """Return what is between commas."""
    return tuple(each.strip() for each in environment.get(variable, "").split(",") if each.strip())


def _headers(text: str) -> tuple[dict[str, str], str | None]:
    """Return headers, or the problem of their text."""
    try:
        headers = json.loads(text)
    except json.JSONDecodeError:
        headers = None
    if isinstance(headers, dict) and all(isinstance(value, str) for value in headers.values()):
        return headers, None
    return {}, f"{variables.REQUEST_HEADERS}: got {text!r}, must be a JSON object of strings"


def _contradictions(numbers: Mapping[str, float]) -> list[str]:
    """Return the contradictions between numbers that are valid one by one."""
    errors = []
    minimum, start, maximum = (numbers[f"in_flight_{name}"] for name in ("least", "start", "most"))
    if not minimum <= start <= maximum:
        errors.append(
            f"BATCH_IN_FLIGHT_LEAST, _START and _MOST: got {minimum}, {start} and {maximum}, must "
            f"not decrease"
        )
    if numbers["heartbeat_seconds"] * 2 > numbers["visibility_seconds"]:
        errors.append("BATCH_HEARTBEAT_SECONDS must be at most half of BATCH_VISIBILITY_SECONDS")
    if numbers["hold_seconds"] + numbers["request_seconds"] > _LONGEST_HOLD_SECONDS:
        errors.append(
            "BATCH_HOLD_SECONDS and BATCH_REQUEST_SECONDS must be at most "
            f"{_LONGEST_HOLD_SECONDS} together: a shard is given back when its last request has ended"
        )
    return errors
