"""Ranges and targets of elastic workers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TriggerSummary:
    """A load by which a role scales.

    Parameters
    ----------
    name
        The load.
    target
        Value at which no worker is added.
    per_worker
        Whether the target is for each worker; else it is for the role.
    why
        How the target follows from the plan.
    query
        PromQL expression that measures the load.
    """

    name: str
    target: float
    per_worker: bool
    why: str
    query: str


@dataclass(frozen=True, slots=True)
class FloorSummary:
    """A smallest number of workers during a part of the week.

    Parameters
    ----------
    start, end
        Cron expressions.
    time_zone
        Time zone of both.
    workers
        The number.
    """

    start: str
    end: str
    time_zone: str
    workers: int


@dataclass(frozen=True, slots=True)
class ScalingSummary:
    """The elastic workers of a role.

    Parameters
    ----------
    model, deployment, name
        Model and deployment, and name of the process.
    workers_least, workers_most
        Their range.
    usd_per_hour_least, usd_per_hour_most
        Their share of the nodes' price, in US dollars per hour; None if a price is unknown.
    triggers
        Loads by which they scale.
    floors
        Smallest numbers of workers by schedule.
    down_after_seconds
        Time during which fewer workers must suffice before one goes.
    """

    model: str
    deployment: str
    name: str
    workers_least: int
    workers_most: int
    usd_per_hour_least: float | None
    usd_per_hour_most: float | None
    triggers: tuple[TriggerSummary, ...]
    floors: tuple[FloorSummary, ...]
    down_after_seconds: int
