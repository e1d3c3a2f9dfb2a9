"""Signals: answers of jobs, stored by key so that applications can read them during a request."""

from pydantic import Field

from inference_blueprints.spec.section import Name, Section

#: Three days: the answers of a nightly job stay until the second job after it has run.
_TTL_HOURS = 72.0
_MAX_TTL_HOURS = 8784.0


class ValkeyCache(Section):
    """An ElastiCache serverless cache for Valkey."""

    # Limit of ElastiCache for a serverless cache.
    max_gb: int = Field(ge=1, le=5000)
    """Maximum size, in GB. When the cache is full, the least recently used signals are evicted."""


class Signal(Section):
    """A kind of signal, written by the jobs of one team."""

    name: Name
    """Name of the signal. It is part of the keys."""
    team: Name
    """Name of the team whose jobs write the signal. Everyone with read access to the store can read it."""
    ttl_hours: float | None = Field(default=None, gt=0.0, le=_MAX_TTL_HOURS)
    """Hours after which a value expires. Without it, the value of the store applies."""


class SignalStore(Section):
    """Store of job answers by key, fast enough to read during a request, with a history in S3."""

    valkey: ValkeyCache
    """Cache that holds the newest values."""
    ttl_hours: float = Field(default=_TTL_HOURS, gt=0.0, le=_MAX_TTL_HOURS)
    """Hours after which a value expires."""
    history_days: int = Field(default=365, ge=1, le=3650)
    """Days for which S3 keeps every written value, for queries with Athena."""
    # The names are in the environment variables of the batch functions, which hold 4 KB in total.
    signals: list[Signal] = Field(min_length=1, max_length=20)
    """Signals that jobs may write."""
