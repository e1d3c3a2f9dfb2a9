"""Elastic workers: their range, and what decides how many of them run."""

from typing import Literal

from pydantic import Field

from inference_blueprints.spec.section import Choice, CronTime, Section, TimeZone

LoadMetric = Literal["tokensInFlight", "queueLength", "kvCacheUse", "timeToFirstToken"]


class ReplicaRange(Section):
    """Number of workers that follows the load. Requires `scaledBy`."""

    min: int = Field(ge=0, le=10_000)
    """Smallest number of workers, at least 1, or 0 with `scaledBy: {capacityShift: {}}`."""
    max: int = Field(ge=1, le=10_000)
    """Largest number of workers. Pools, quotas and the KV cache are checked for it."""


class Floor(Section):
    """A smallest number of workers during a part of the week, such as before the morning's peak."""

    start: CronTime
    """Start as a cron expression: minute, hour, day of month, month, day of week."""
    end: CronTime
    """End as a cron expression with the same fields."""
    time_zone: TimeZone = "Etc/UTC"
    """Time zone of both, a name of the IANA database."""
    replicas: int = Field(ge=1, le=10_000)
    """Smallest number of workers from start to end."""


class LoadScaling(Section):
    """Scale by the measured load of the role's workers."""

    metric: LoadMetric | None = None
    """The measured load: tokens of running and waiting requests (`tokensInFlight`), waiting requests
    (`queueLength`), the used share of the KV cache (`kvCacheUse`), or the time to first token
    (`timeToFirstToken`): its 90th percentile, or the highest that has an objective if the 90th has none.
    Without it, `tokensInFlight`; workers that do both prefill and decode also scale by `queueLength`."""
    target: float | None = Field(default=None, gt=0.0, le=1_000_000_000.0)
    """Value at which no worker is added: per worker, as tokens or requests; for `kvCacheUse` a share from 0
    to 1, for `timeToFirstToken` milliseconds. Without it, `plan` computes and explains the value."""
    floors: list[Floor] = Field(default_factory=list, max_length=20)
    """Smallest numbers of workers by schedule."""
    scale_down_after_seconds: int = Field(default=300, ge=0, le=3600)
    """Time for which fewer workers must suffice before one goes."""


class MeasuredStart(Section):
    """Times that you measured of a worker on a new node. They replace the plan's own."""

    launch_seconds: int | None = Field(default=None, ge=1, le=7200)
    """Time from a worker that waits for a node until the node accepts it. Without it, a published time."""
    engine_seconds: int | None = Field(default=None, ge=1, le=7200)
    """Time of the engine from its start, with image and weights on the node, until it serves. Without it, a
    published time for vLLM."""


class LentWorkers(Section):
    """Workers that serve batch alone. They get what real time leaves of a shared pool, and may all go."""


class ScaledBy(Choice):
    """The one owner of the number of workers. Requires a range in `replicas`."""

    load: LoadScaling | None = None
    """KEDA, by the measured load."""
    capacity_shift: LentWorkers | None = None
    """The capacity shift, for workers of a shared pool that serve batch alone."""
