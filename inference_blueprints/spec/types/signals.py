"""What models said of things, kept where a request can read it, and who writes it."""

from __future__ import annotations

from pydantic import Field

from inference_blueprints.spec.types.section import Name, Section

#: Three days: what a nightly job said is there until the job after the next has run.
_TTL_HOURS = 72.0
_MOST_TTL_HOURS = 8784.0


class ValkeyCache(Section):
    """An ElastiCache serverless cache for Valkey."""

    # ElastiCache's own limit of a serverless cache.
    max_gb: int = Field(ge=1, le=5000)
    """What it may hold, in GB; when it is full, the signals that were used least recently make room."""


class Signal(Section):
    """One kind of signal, which jobs of one team write."""

    name: Name
    """Name of the signal; part of its keys."""
    team: Name
    """Team whose jobs write it; everybody with the right to read the store reads it."""
    ttl_hours: float | None = Field(default=None, gt=0.0, le=_MOST_TTL_HOURS)
    """Hours after which a value is no longer true; without it the store's."""


class SignalStore(Section):
    """Where jobs leave their answers by key, for reading while a request waits, and their history in S3."""

    valkey: ValkeyCache
    """What holds the newest values."""
    ttl_hours: float = Field(default=_TTL_HOURS, gt=0.0, le=_MOST_TTL_HOURS)
    """Hours after which a value is no longer true."""
    history_days: int = Field(default=365, ge=1, le=3650)
    """Days for which S3 keeps every value that was written, readable by Athena."""
    # Each is a part of what the functions of batch are told by their variables, which have 4 KB together.
    signals: list[Signal] = Field(min_length=1, max_length=20)
    """What may be written, and by whom."""
