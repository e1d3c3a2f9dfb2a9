"""When a PromQL alarm of CloudWatch is raised: the times between a breach and the state.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-promql.html: a series that the query
returns breaches. It is in ALARM once it has breached without a gap for the pending period, and OK again once
it has not been returned for the recovery period.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def in_alarm(
    breaches: Iterable[float],
    evaluations: Sequence[float],
    *,
    pending_seconds: float,
    recovery_seconds: float,
) -> tuple[float, ...]:
    """Return the evaluations at which one contributor is in ALARM.

    Parameters
    ----------
    breaches
        Times at which the query returned the series, in seconds.
    evaluations
        All times at which it was evaluated, in seconds and in order.
    pending_seconds, recovery_seconds
        The alarm's periods.
    """
    returned = set(breaches)
    breaching_since: float | None = None
    well_since: float | None = None
    alarm = False
    found = []
    for now in evaluations:
        if now in returned:
            breaching_since = now if breaching_since is None else breaching_since
            well_since = None
            alarm = alarm or now - breaching_since >= pending_seconds
        else:
            breaching_since = None
            well_since = now if well_since is None else well_since
            alarm = alarm and now - well_since < recovery_seconds
        if alarm:
            found.append(now)
    return tuple(found)
