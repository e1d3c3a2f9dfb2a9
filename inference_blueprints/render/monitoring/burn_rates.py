"""Burn-rate alarms: how fast an objective's error budget goes, over a long and a short window.

Google's SRE workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts": the long window makes the alarm
significant, the short one, a twelfth of it, ends it soon after the cause. https://sre.google/workbook/alerting-on-slos/
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

#: Shares of requests that may fail. The blueprint's objectives are 90th percentiles, so one request of ten
#: may be late. It has no objective of availability: 99.9 % is the workbook's example.
LATE_BUDGET: Final = 0.1
ERROR_BUDGET: Final = 0.001
#: A window with fewer requests says nothing.
LEAST_REQUESTS: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnRate:
    """A speed at which the budget of 30 days goes, and the windows in which it is seen.

    Parameters
    ----------
    name
        End of the alarm's name.
    rate
        1 spends the budget in exactly 30 days.
    long_window, short_window
        Windows of the recordings.
    """

    name: str
    rate: float
    long_window: str
    short_window: str


#: The workbook's pages: 2 % of the budget within one hour, 5 % within six.
_FAILING = (
    BurnRate(name="fast", rate=14.4, long_window="1h", short_window="5m"),
    BurnRate(name="slow", rate=6.0, long_window="6h", short_window="30m"),
)
#: With a budget of 10 %, no rate is above 10: then every request is late. So these say that half of the
#: requests are late for an hour, or a fifth for six hours.
_LATE = (
    BurnRate(name="fast", rate=5.0, long_window="1h", short_window="5m"),
    BurnRate(name="slow", rate=2.0, long_window="6h", short_window="30m"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnedObjective:
    """An objective, and the recorded share of requests that miss it.

    Parameters
    ----------
    name
        Beginning of the alarm's name.
    recording
        Name of the recording, without its window.
    budget
        Share that may miss it.
    rates
        Speeds that raise an alarm.
    says
        What happens, for the alarm's description.
    """

    name: str
    recording: str
    budget: float
    rates: tuple[BurnRate, ...]
    says: str

    def query(self, rate: BurnRate) -> str:
        """Return the query of one speed, with ``$labels`` as the selector."""
        limit = f"{rate.rate * self.budget:g}"
        return (
            f"{self.recording}_{rate.long_window}{{$labels}} > {limit} "
            f"and {self.recording}_{rate.short_window}{{$labels}} > {limit} "
            f"and serving_requests_{rate.long_window}{{$labels}} >= {LEAST_REQUESTS}"
        )


BURNED = (
    BurnedObjective(
        name="requests-failing",
        recording="serving_error_ratio",
        budget=ERROR_BUDGET,
        rates=_FAILING,
        says="Requests fail",
    ),
    BurnedObjective(
        name="first-token-late",
        recording="serving_first_token_late_ratio",
        budget=LATE_BUDGET,
        rates=_LATE,
        says="First tokens come later than objectives.timeToFirstTokenP90Ms",
    ),
    BurnedObjective(
        name="output-tokens-late",
        recording="serving_output_token_late_ratio",
        budget=LATE_BUDGET,
        rates=_LATE,
        says="Output tokens come later than objectives.timePerOutputTokenP90Ms",
    ),
)

#: What a rate means, by its name.
MEANINGS: Final = MappingProxyType(
    {"fast": "for an hour, faster than an operator may ignore", "slow": "for six hours, slowly"}
)
