"""Which metrics of serving pods are kept, and how many series they are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DroppedMetrics:
    """Metrics that are scraped and not stored.

    Parameters
    ----------
    pattern
        Regular expression that matches the whole name of a metric, in RE2 and in Python.
    reason
        Why nobody misses them.
    """

    pattern: str
    reason: str


@dataclass(frozen=True, slots=True)
class ServingMetrics:
    """The metrics of serving pods.

    Parameters
    ----------
    source, date
        Where the series were counted, and when.
    dropped
        What is dropped.
    series
        Series that stay, by program: of one ``dynamo_frontend``, ``dynamo_frontend_per_worker`` of its model,
        and of one ``vllm_worker``. An engine that is not listed has not been counted.
    """

    source: str
    date: str
    dropped: tuple[DroppedMetrics, ...]
    series: Mapping[str, int]

    @property
    def dropped_names(self) -> str:
        """One regular expression that matches the name of every dropped metric."""
        return "|".join(f"(?:{each.pattern})" for each in self.dropped)
