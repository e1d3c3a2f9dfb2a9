"""Every alarm of a platform: its query, its times and its runbook."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from string import Template
from types import MappingProxyType
from typing import Final, Literal

import yaml
from pydantic import BaseModel, ConfigDict

from inference_blueprints.render.monitoring.dashboard_table import DOOR_DASHBOARD
from inference_blueprints.render.monitoring.recordings import LATE_RECORDINGS, Scope, late_name
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import EACH_TOKEN, FIRST_TOKEN, LatencyKind
from inference_contracts.door_names import DOOR_ROLE

# When a PromQL alarm of CloudWatch is raised: the times between a breach and the state.
#
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-promql.html: a series that the query
# returns breaches. It is in ALARM once it has breached without a gap for the pending period, and OK again
# once it has not been returned for the recovery period.


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


#: Share of requests that may fail. The blueprint has no objective of availability: 99.9 % is the workbook's
#: example. Late may be as many as the percentile of an objective allows: with the 90th, one of ten.
ERROR_BUDGET: Final = 0.001
#: A window with fewer requests says nothing.
MIN_REQUESTS: Final = 20
#: CloudWatch lists at most 100 contributors of a PromQL alarm in its state, and evaluates at most 500 series:
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-limits.html
MAX_CONTRIBUTORS: Final = 100
MAX_SERIES: Final = 500
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_AlarmPromQLCriteria.html
MAX_QUERY_LETTERS: Final = 10_000
#: How often CloudWatch evaluates a query.
EVALUATION_SECONDS: Final = 60
#: Runbooks of the alarms on usage records, which no Prometheus reads.
DIFFER_RUNBOOK: Final = "docs/runbooks/door-ledger-differs.md"
RECORDS_RUNBOOK: Final = "docs/runbooks/door-records-late.md"
#: Runbook of the alarms on the canary's own metric, which are no PromQL alarms.
CANARY_RUNBOOK: Final = "docs/runbooks/canary-failing.md"
#: Runbook of the alarm on the tasks of the discovery store of ECS, as Container Insights counts them.
DISCOVERY_RUNBOOK: Final = "docs/runbooks/discovery-members-missing.md"
_FILE = Path(__file__).parent / "data/alarms.yaml"
_BURN_PENDING_SECONDS = 0
_BURN_RECOVERY_SECONDS = 300
#: End of a selector, with its window in minutes. Series have a value per minute.
_SELECTOR_END = re.compile(r"\}(?:\[(\d+)m\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnRate:
    """A speed at which the budget of 30 days goes, and the windows in which it is seen.

    Google's SRE workbook, chapter 5, "Multiwindow, Multi-Burn-Rate Alerts": the long window makes the alarm
    significant, the short one, a twelfth of it, ends it soon after the cause.
    https://sre.google/workbook/alerting-on-slos/
    """

    name: str
    """End of the alarm's name."""
    rate: float
    """1 spends the budget in exactly 30 days."""
    long_window: str
    short_window: str
    """`long_window`, `short_window`: Windows of the recordings."""


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
    """An objective, and the recorded share of requests that miss it."""

    name: str
    """Beginning of the alarm's name."""
    recording: str
    """Name of the recording, without its window."""
    budget: float
    """Share that may miss it."""
    rates: tuple[BurnRate, ...]
    """Speeds that raise an alarm."""
    says: str
    """What happens, for the alarm's description."""
    runbook: str = ""
    """Beginning of its runbook's name, if it is another one's."""

    def query(self, rate: BurnRate) -> str:
        """Return the query of one speed, with ``$labels`` as the selector."""
        limit = f"{rate.rate * self.budget:g}"
        return (
            f"{self.recording}_{rate.long_window}{{$labels}} > {limit} "
            f"and {self.recording}_{rate.short_window}{{$labels}} > {limit} "
            f"and serving_requests_{rate.long_window}{{$labels}} >= {MIN_REQUESTS}"
        )


#: Name of the alarm, and what happens, by latency.
_LATE_NAMES: Mapping[LatencyKind, tuple[str, str]] = MappingProxyType(
    {
        "timeToFirstTokenMs": ("first-token-late", "First tokens come later than"),
        "timePerOutputTokenMs": ("output-tokens-late", "Output tokens come later than"),
        "requestMs": ("whole-requests-late", "Requests take longer than"),
    }
)
#: Largest shares of late requests that alarms wait for: half of them may be late under an objective for the
#: median, so twice as many cannot be.
_MOST_LATE = {"fast": 0.9, "slow": 0.7}


def _late(kind: LatencyKind, key: str, percentile: float = 90.0) -> BurnedObjective:
    """Return the alarms of an objective for a latency.

    key: Where the blueprint states it.
    """
    name, says = _LATE_NAMES[kind]
    budget = round(1 - percentile / 100, 6)
    rates = tuple(replace(each, rate=min(each.rate, _MOST_LATE[each.name] / budget)) for each in _LATE)
    return BurnedObjective(
        name=late_name(name, percentile, "-"),
        recording=late_name(LATE_RECORDINGS[kind], percentile),
        budget=budget,
        rates=rates,
        says=f"{says} {key}",
        runbook=name,
    )


BURNED = (
    BurnedObjective(
        name="requests-failing",
        recording="serving_error_ratio",
        budget=ERROR_BUDGET,
        rates=_FAILING,
        says="Requests fail",
    ),
    _late(FIRST_TOKEN, "objectives.timeToFirstTokenP90Ms"),
    _late(EACH_TOKEN, "objectives.timePerOutputTokenP90Ms"),
)


#: What a rate means, by its name.
MEANINGS: Final = MappingProxyType(
    {"fast": "for an hour, faster than an operator may ignore", "slow": "for six hours, slowly"}
)


class AlarmRow(BaseModel):
    """An alarm for any platform. ``alarms.yaml`` explains the fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    scope: Scope | Literal["node", "budget"]
    says: str
    query: str
    pending_seconds: int
    recovery_seconds: int
    elastic: bool = False
    kubernetes: bool = False
    door: bool = False
    runbook_name: str = ""
    """Name of the runbook, if it is another alarm's."""

    @property
    def dashboard(self) -> str:
        """Name of the dashboard that shows its state."""
        if self.door:
            return DOOR_DASHBOARD
        return {"platform": "platform", "pool": "pool", "node": "pool"}.get(self.scope, "model")

    @property
    def runbook(self) -> str:
        """Path of its runbook below the repository."""
        return f"docs/runbooks/{self.runbook_name or self.name}.md"


class PlatformAlarm(BaseModel):
    """An alarm of one platform."""

    model_config = ConfigDict(frozen=True)

    row: AlarmRow
    """The row that it comes from."""
    name: str
    """Name, which is unique in the platform."""
    query: str
    """PromQL whose answer has one series per breach."""
    contributors: int
    """Largest possible number of series in the answer."""

    @property
    def samples(self) -> int:
        """Samples that one evaluation reads: values of each selector, for the largest number of series."""
        return self.contributors * sum(int(each or 1) for each in _SELECTOR_END.findall(self.query))


@cache
def alarm_rows() -> tuple[AlarmRow, ...]:
    """Return every row of any platform: those of the file, and one per objective and burn rate."""
    rows = (AlarmRow.model_validate(row) for row in yaml.safe_load(_FILE.read_text("utf-8")))
    return (*rows, *(row for burned in BURNED for row in _burned_rows(burned)))


def late_alarm_rows(late: Collection[tuple[LatencyKind, float]]) -> tuple[AlarmRow, ...]:
    """Return the rows of a platform's objectives for other percentiles than the 90th, and for whole requests.

    late: Each latency and percentile, as `late_latencies` returns them.
    """
    everywhere = {each.recording for each in BURNED}
    burned = [
        _late(kind, f"objectives.{kind}.p{percentile:g}", percentile) for kind, percentile in sorted(late)
    ]
    return tuple(row for each in burned if each.recording not in everywhere for row in _burned_rows(each))


def _burned_rows(burned: BurnedObjective) -> Iterator[AlarmRow]:
    for rate in burned.rates:
        yield AlarmRow(
            name=f"{burned.name}-{rate.name}",
            scope="release",
            says=f"{burned.says} {MEANINGS[rate.name]}.",
            query=burned.query(rate),
            # The windows of the recordings are long enough.
            pending_seconds=_BURN_PENDING_SECONDS,
            recovery_seconds=_BURN_RECOVERY_SECONDS,
            runbook_name=f"{burned.runbook}-{rate.name}" if burned.runbook else "",
        )


def platform_alarms(
    platform: str,
    plan: ServingPlan,
    *,
    on_ecs: bool = False,
    late: Collection[tuple[LatencyKind, float]] = (),
) -> tuple[PlatformAlarm, ...]:
    """Return the alarms of a platform, each with no more contributors than CloudWatch lists.

    Those about elastic workers and a front door are left out if it has none, and those about Kubernetes on
    ECS.

    platform: `metadata.name`.
    plan: Its serving plan. An alarm about more series than CloudWatch lists becomes several, each about some
        of the models.
    on_ecs: Whether the platform runs on Amazon ECS.
    late: Latencies and percentiles of its objectives, as `late_latencies` returns them.
    """
    rows = (
        row
        for row in (*alarm_rows(), *late_alarm_rows(late))
        if (plan.is_elastic or not row.elastic)
        and (plan.front_door or not row.door)
        and not (on_ecs and row.kubernetes)
    )
    return tuple(alarm for row in rows for alarm in _alarms(row, platform, plan))


def _alarms(row: AlarmRow, platform: str, plan: ServingPlan) -> Iterator[PlatformAlarm]:
    selector = f'platform="{platform}"'
    groups = _model_groups(row.scope, plan)
    for number, (models, series) in enumerate(groups, start=1):
        only = f',model=~"{"|".join(models)}"' if len(groups) > 1 else ""
        yield PlatformAlarm(
            row=row,
            name=row.name if len(groups) == 1 else f"{row.name}-{number}",
            query=Template(row.query).substitute(
                labels=selector + only, platform=platform, most=MAX_CONTRIBUTORS
            ),
            contributors=series,
        )


def _model_groups(
    scope: Scope | Literal["node", "budget"], plan: ServingPlan
) -> Sequence[tuple[tuple[str, ...], int]]:
    """Return the models of each alarm, and the largest number of its series."""
    if scope in {"node", "budget"}:
        return [((), MAX_CONTRIBUTORS)]
    deployments = [deployment for model in plan.models for deployment in model.deployments]
    if scope in {"platform", "pool"}:
        processes = [process for each in deployments for process in each.processes]
        pools = {process.pool for process in processes if process.pool}
        # Exporters have no role.
        roles = {"", *(process.role for process in processes), *([DOOR_ROLE] if plan.front_door else [])}
        return [((), len(pools if scope == "pool" else roles))]
    series: Counter[str] = Counter()
    for deployment in deployments:
        series[deployment.model] += len(deployment.workers) if scope == "role" else 1
    groups: list[tuple[tuple[str, ...], int]] = [((), 0)]
    for name, count in series.items():
        models, held = groups[-1]
        if models and held + count > MAX_CONTRIBUTORS:
            groups.append(((name,), count))
        else:
            groups[-1] = ((*models, name), held + count)
    return groups
