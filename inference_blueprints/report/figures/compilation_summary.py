"""How long the first compilation of a deployment takes, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CompilationSummary:
    """The first compilation of one deployment.

    Parameters
    ----------
    deployment
        As ``model/deployment``.
    key
        Key of its artefacts in S3; None if they cannot be shared.
    minutes
        Shortest and longest published time, in minutes; None if nobody published one.
    usd
        Cost of the node for the longest time, in US dollars; None if time or price is unknown.
    source
        For what the time is published; empty if it is not.
    """

    deployment: str
    key: str | None
    minutes: tuple[float, float] | None
    usd: float | None
    source: str
