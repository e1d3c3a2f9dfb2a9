"""Which metrics of serving pods are kept, and how many series they are."""

from __future__ import annotations

from collections.abc import Mapping

from inference_contracts.records import dataclass


@dataclass(frozen=True, slots=True)
class DroppedMetrics:
    """Metrics that are scraped and not stored."""

    pattern: str
    """Regular expression that matches the whole name of a metric, in RE2 and in Python."""
    reason: str
    """Why nobody misses them."""


@dataclass(frozen=True, slots=True)
class ServingMetrics:
    """The metrics of serving pods."""

    source: str
    date: str
    """`source`, `date`: Where the series were counted, and when."""
    dropped: tuple[DroppedMetrics, ...]
    """What is dropped."""
    series: Mapping[str, int]
    """Series that stay, by program: of one ``dynamo_frontend``, ``dynamo_frontend_per_worker`` of its model,
    of one ``vllm_worker``, and ``dcgm_gpu`` of each GPU. An engine that is not listed was not counted."""

    @property
    def dropped_names(self) -> str:
        """One regular expression that matches the name of every dropped metric."""
        return "|".join(f"(?:{each.pattern})" for each in self.dropped)
