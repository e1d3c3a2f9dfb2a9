"""When a PromQL alarm of CloudWatch is raised: the times between a breach and the state.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-promql.html: a series that the query
returns breaches. It is in ALARM once it has breached without a gap for the pending period, and OK again once
it has not been returned for the recovery period.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(slots=True)
class ContributorState:
    """The state of one contributor, from one evaluation to the next."""

    pending_seconds: float
    recovery_seconds: float
    """`pending_seconds`, `recovery_seconds`: The alarm's periods."""
    in_alarm: bool = False
    """Whether it is in ALARM."""
    breaching_since: float | None = None
    well_since: float | None = None
    """`breaching_since`, `well_since`: First evaluation without a gap that returned the series, and that did
    not."""

    def evaluate(self, now: float, *, returned: bool) -> bool:
        """Take the result of an evaluation, and return whether the contributor is in ALARM.

        now: Time of the evaluation, in seconds.
        returned: Whether the query returned the series.
        """
        if returned:
            self.breaching_since = now if self.breaching_since is None else self.breaching_since
            self.well_since = None
            self.in_alarm = self.in_alarm or now - self.breaching_since >= self.pending_seconds
        else:
            self.breaching_since = None
            self.well_since = now if self.well_since is None else self.well_since
            self.in_alarm = self.in_alarm and now - self.well_since < self.recovery_seconds
        return self.in_alarm


def in_alarm(
    breaches: Iterable[float],
    evaluations: Sequence[float],
    *,
    pending_seconds: float,
    recovery_seconds: float,
) -> tuple[float, ...]:
    """Return the evaluations at which one contributor is in ALARM.

    breaches: Times at which the query returned the series, in seconds.
    evaluations: All times at which it was evaluated, in seconds and in order.
    pending_seconds, recovery_seconds: The alarm's periods.
    """
    returned = set(breaches)
    contributor = ContributorState(pending_seconds, recovery_seconds)
    return tuple(now for now in evaluations if contributor.evaluate(now, returned=now in returned))
