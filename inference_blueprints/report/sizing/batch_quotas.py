"""The use of AWS service quotas by days of batch.

Rates are means over the day, because the number of places limits jobs to this rate. Work that may occur at
the same time is counted as such. If a figure depends on unknown values, it is the maximum.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import inference_catalog as catalog
from inference_blueprints.report.sizing.batch_day import BatchDay
from inference_contracts import batch_limits as limits
from inference_contracts.errors import UserError
from inference_contracts.records import dataclass
from inference_contracts.units import SECONDS_PER_DAY

#: A processor checks 20,000 short requests per second, or 99 MiB of long ones (measured). Half of that is
#: assumed.
_CHECKED_LINES_A_SECOND: Final = 10_000
_CHECKED_BYTES_A_SECOND: Final = 49 * 2**20
#: Results that a function joins, with each byte read and written. An assumption: AWS promises no network
#: speed.
_JOINED_BYTES_A_SECOND: Final = 37 * 2**20
_WRITES_A_JOB: Final = 10
_UNITS_A_WRITE: Final = 6
#: Half a unit reads 4 KB of an index; a record has 2 KB.
_UNITS_A_RECORD: Final = 0.25
#: A unit reads 4 KB consistently. The progress of a shard has 200 bytes.
_UNITS_A_SHARD: Final = 0.05
_REQUESTS_A_JOB: Final = 10
_INVOCATIONS_A_JOB: Final = 4
#: A script of three commands, and each KB of data.
_ECPUS_A_SCRIPT: Final = 3
_BYTES_AN_ECPU: Final = 1024
_BYTES_BESIDE_A_SIGNAL: Final = 300


@dataclass(frozen=True, slots=True)
class ServiceQuotaUse:
    """Use of one service quota by batch."""

    name: str
    """Key of the quota in the catalogue."""
    service: str
    quota_name: str
    unit: str
    """`service`, `quota_name`, `unit`: Service, AWS's name of the quota, and its unit."""
    basis: str
    """What is counted."""
    used: float
    """Maximum use."""
    quota: float
    """The default quota of the region."""
    adjustable: bool
    """Whether AWS raises it on request."""
    code: str
    """Code in Service Quotas; empty if unknown."""

    @property
    def share(self) -> float:
        """Used over quota."""
        return self.used / self.quota

    @property
    def is_exceeded(self) -> bool:
        """Whether the use is above the quota."""
        return self.used > self.quota


def service_quota_uses(days: Sequence[BatchDay], region: str) -> tuple[ServiceQuotaUse, ...]:
    """Return the use of each quota, in the order of the services.

    days: Days of all queues of a platform. Without days, no quota is used.
    """
    if not days:
        return ()
    quotas = catalog.service_quotas()
    return tuple(
        ServiceQuotaUse(
            name=name,
            service=quotas[name].service,
            quota_name=quotas[name].quota,
            unit=quotas[name].unit,
            basis=basis,
            used=used,
            quota=quotas[name].in_region(region),
            adjustable=quotas[name].adjustable,
            code=quotas[name].code,
        )
        for name, used, basis in _uses(days)
    )


def hard_limits(uses: Iterable[ServiceQuotaUse]) -> list[ServiceQuotaUse]:
    """Return the exceeded quotas that AWS does not raise.

    uses: Use of each quota.
    """
    return [use for use in uses if use.is_exceeded and not use.adjustable]


def refuse_exceeded(uses: Iterable[ServiceQuotaUse]) -> None:
    """Refuse days that exceed a quota that AWS does not raise.

    Raises UserError if a quota is exceeded that AWS does not raise. The message lists all of them.
    """
    exceeded = hard_limits(uses)
    if exceeded:
        named = "; ".join(
            f"{use.service}, {use.quota_name}: {use.used:,.0f} of {use.quota:,.0f} ({use.basis})"
            for use in exceeded
        )
        raise UserError(
            f"the daily batch load exceeds quotas that AWS does not raise: {named}; lower requestsPerJob or "
            "requestsPerDay under spec.batch.queues[].load, or use several platforms"
        )


def _uses(days: Sequence[BatchDay]) -> Iterator[tuple[str, float, str]]:
    """Yield each quota's name, its use, and what was counted."""
    yield from _orchestration(days)
    yield from _task_calls(days)
    yield from _functions(days)
    yield from _objects(days)
    yield from _records_and_requests(days)
    yield from _signals([day for day in days if day.publishes])


def _orchestration(days: Sequence[BatchDay]) -> Iterator[tuple[str, float, str]]:
    """Yield the use by executions and maps."""
    children = sum(_children(day) for day in days)
    yield (
        "states.openExecutions",
        sum(day.jobs for day in days) + _places(days) + _preparing(days) * limits.MAX_CONCURRENT_SEGMENTS,
        "all jobs of a day, shards in progress, and segments being checked",
    )
    yield (
        "states.openMapRuns",
        sum(day.running_jobs for day in days) + _preparing(days),
        "running jobs, at most one per place, and jobs being checked",
    )
    yield "states.mapConcurrency", max(day.places for day in days), "shards of one job in progress"
    yield (
        "states.childStarts",
        max(day.shards for day in days) / SECONDS_PER_DAY,
        "shards of one queue; at its start they are limited to 100 per second",
    )
    yield (
        "states.historyEvents",
        max(map(_events, days)),
        "a shard that no worker takes until the deadline: 4 events per "
        f"{limits.TASK_HEARTBEAT_SECONDS + limits.MAX_TASK_RETRY_SECONDS} s",
    )
    yield (
        "states.payload",
        max(max(day.segments_of_a_job, day.shards_of_a_job) for day in days) * limits.CHILD_OUTPUT_BYTES,
        "outputs of a map's children: 3 bytes per child",
    )
    yield (
        "states.transitions",
        (sum(day.jobs for day in days) * limits.STATES_PER_JOB + children * limits.STATES_PER_CHILD)
        / SECONDS_PER_DAY,
        f"{limits.STATES_PER_JOB} per job, {limits.STATES_PER_CHILD} per segment or shard",
    )
    yield (
        "states.startExecution",
        (sum(day.jobs for day in days) + children) / SECONDS_PER_DAY,
        "jobs, and children as if each needed a call",
    )


def _task_calls(days: Sequence[BatchDay]) -> Iterator[tuple[str, float, str]]:
    """Yield the calls of workers and the scheduler to Step Functions."""
    shards = sum(day.shards for day in days)
    yield (
        "states.sendTaskSuccess",
        (shards + sum(day.jobs for day in days)) / SECONDS_PER_DAY,
        "one per shard, one per job",
    )
    yield (
        "states.sendTaskHeartbeat",
        _places(days) / limits.WORKER_HEARTBEAT_SECONDS + shards / SECONDS_PER_DAY,
        f"one per {limits.WORKER_HEARTBEAT_SECONDS} s for each shard in progress, and one at its start",
    )
    yield (
        "states.updateMapRun",
        min(sum(day.running_jobs for day in days), limits.MAX_RESIZES_PER_RUN) / limits.SCHEDULE_SECONDS,
        f"running jobs whose places change, at most {limits.MAX_RESIZES_PER_RUN} per minute",
    )
    yield "sqs.inFlight", max(day.places for day in days), "shards of one model in progress"


def _functions(days: Sequence[BatchDay]) -> Iterator[tuple[str, float, str]]:
    """Yield the use by functions."""
    reserved = sum(limits.RESERVED_CALLS.values())
    publishing = sum(day.shards * _shard_seconds(day) for day in days if day.publishes)
    joining = sum(day.jobs * _joining_seconds(day) for day in days)
    yield (
        "lambda.concurrency",
        reserved + max((publishing + joining) / SECONDS_PER_DAY, limits.UNRESERVED_CALLS),
        f"{reserved} reserved for checks, API and scheduler, and the mean of all other calls, at least "
        f"{limits.UNRESERVED_CALLS}",
    )
    yield (
        "lambda.timeout",
        max(max(_segment_seconds(day), min(_joining_seconds(day), limits.JOINING_SECONDS)) for day in days),
        "the longest call: checking a segment, or joining results, which large jobs do in several calls",
    )


def _objects(days: Sequence[BatchDay]) -> Iterator[tuple[str, float, str]]:
    """Yield the use by objects, as if all were below the prefix of one job."""
    commits = max(map(_commits_a_second, days))
    ends = max(day.shards * limits.OBJECTS_PER_SHARD for day in days) / SECONDS_PER_DAY
    segments = max(day.segments * limits.OBJECTS_PER_SEGMENT + day.shards for day in days) / SECONDS_PER_DAY
    yield (
        "s3.writes",
        commits + ends + segments,
        f"one commit per {limits.FLUSH_SECONDS:.0f} s for each shard in progress, results of shards, checks",
    )
    yield (
        "s3.reads",
        2 * commits + ends + segments,
        "each commit twice; shards, their results and segments once",
    )
    yield "s3.parts", max(day.shards_of_a_job for day in days), "results of a job: one part per shard"


def _records_and_requests(days: Sequence[BatchDay]) -> Iterator[tuple[str, float, str]]:
    """Yield the use by records, requests and events."""
    jobs = sum(day.jobs for day in days)
    shards = sum(day.shards for day in days)
    running = sum(day.running_jobs for day in days)
    yield (
        "dynamodb.writes",
        (jobs * _WRITES_A_JOB / SECONDS_PER_DAY + running / limits.SCHEDULE_SECONDS) * _UNITS_A_WRITE
        + _places(days) / limits.WORKER_HEARTBEAT_SECONDS
        + shards / SECONDS_PER_DAY,
        f"{_WRITES_A_JOB} writes per job, one per minute while it runs, and one per "
        f"{limits.WORKER_HEARTBEAT_SECONDS} s for each shard in progress, as if all were in one partition",
    )
    yield (
        "dynamodb.reads",
        jobs * _UNITS_A_RECORD + max(day.shards_of_a_job for day in days) * _UNITS_A_SHARD,
        "reading all jobs of a day and the progress of all shards of a job within one second",
    )
    uploads = sum(day.requests * day.line_bytes for day in days) / limits.MAX_REQUEST_BYTES
    yield (
        "apigateway.requests",
        (uploads + jobs * _REQUESTS_A_JOB) / SECONDS_PER_DAY + running / limits.SCHEDULE_SECONDS,
        "all input in parts of 4 MiB, 10 requests per job, and one per minute while it runs",
    )
    yield (
        "events.invocations",
        jobs * _INVOCATIONS_A_JOB / SECONDS_PER_DAY + 1 / limits.SCHEDULE_SECONDS,
        f"{_INVOCATIONS_A_JOB} per job, and those of the scheduler",
    )


def _signals(days: Sequence[BatchDay]) -> Iterator[tuple[str, float, str]]:
    """Yield the use by the signal store, if every answer is published."""
    if not days:
        return
    used = sum(day.requests_per_second * _ecpus(day) for day in days)
    basis = f"one write per answer: {_ECPUS_A_SCRIPT} for its script, and 1 per KB"
    yield "elasticache.emptyEcpu", used, basis
    yield "elasticache.ecpu", used, basis


def _children(day: BatchDay) -> int:
    """Return the children of all maps of a day."""
    return day.segments + day.shards * (2 if day.publishes else 1)


def _places(days: Sequence[BatchDay]) -> int:
    """Return the shards that the workers of all models hold at the same time."""
    return sum({day.model: day.places for day in days}.values())


def _preparing(days: Sequence[BatchDay]) -> int:
    """Return the jobs that are checked at the same time: the mean, rounded up."""
    busy = sum(
        day.jobs * math.ceil(day.segments_of_a_job / limits.MAX_CONCURRENT_SEGMENTS) * _segment_seconds(day)
        for day in days
    )
    return math.ceil(busy / SECONDS_PER_DAY)


def _events(day: BatchDay) -> int:
    """Return the events of a shard that no worker takes until its job's deadline."""
    silence = limits.TASK_HEARTBEAT_SECONDS + limits.MAX_TASK_RETRY_SECONDS
    silences = math.ceil(day.deadline_seconds / silence)
    return limits.EVENTS_PER_CHILD + silences * limits.EVENTS_PER_TASK_TIMEOUT


def _segment_seconds(day: BatchDay) -> float:
    """Return the duration of checking a segment, in seconds."""
    lines = day.lines_of_a_segment
    return lines / _CHECKED_LINES_A_SECOND + lines * day.line_bytes / _CHECKED_BYTES_A_SECOND


def _shard_seconds(day: BatchDay) -> float:
    """Return the duration of publishing the answers of a shard, in seconds."""
    return day.requests / day.shards / _CHECKED_LINES_A_SECOND


def _joining_seconds(day: BatchDay) -> float:
    """Return the duration of joining the results of a job, in seconds."""
    return day.requests_per_job * day.row_bytes / _JOINED_BYTES_A_SECOND


def _commits_a_second(day: BatchDay) -> float:
    """Return the commits per second of a model's workers, as if all were for one job."""
    by_size = day.requests_per_second * day.row_bytes / limits.FLUSH_BYTES
    return min(day.places / limits.FLUSH_SECONDS, day.requests_per_second) + by_size


def _ecpus(day: BatchDay) -> float:
    """Return the ECPUs of a write."""
    size = day.output_tokens * limits.BYTES_PER_TOKEN + _BYTES_BESIDE_A_SIGNAL
    return _ECPUS_A_SCRIPT + math.ceil(size / _BYTES_AN_ECPU)
