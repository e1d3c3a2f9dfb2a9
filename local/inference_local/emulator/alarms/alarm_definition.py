"""The parameters of PutMetricAlarm, as types.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from inference_local.emulator.alarms import math_functions
from inference_local.emulator.alarms.missing_data import TREATMENTS
from inference_local.emulator.alarms.period_statistics import check_statistic

#: Comparison operators, as words of a state reason.
COMPARISONS: Final[Mapping[str, str]] = {
    "GreaterThanThreshold": "greater than",
    "GreaterThanOrEqualToThreshold": "greater than or equal to",
    "LessThanThreshold": "less than",
    "LessThanOrEqualToThreshold": "less than or equal to",
}
_MAX_METRICS: Final = 10
_MINUTE: Final = 60


@dataclass(frozen=True, slots=True)
class MetricStat:
    """A statistic of a metric."""

    namespace: str
    name: str
    dimensions: tuple[tuple[str, str], ...]
    """`namespace`, `name`, `dimensions`: The metric. A metric with other dimensions is another metric."""
    period_seconds: int
    """Length of a period."""
    statistic: str
    """What is computed from the values of a period."""
    unit: str | None
    """Unit of the values that count. None for values of any unit."""


@dataclass(frozen=True, slots=True)
class MetricQuery:
    """A metric, or an expression over metrics. One of the two is not None."""

    id: str
    metric: MetricStat | None
    expression: math_functions.Node | None
    returns_data: bool


@dataclass(frozen=True, slots=True)
class AlarmDefinition:
    """What an alarm watches and when it is raised."""

    queries: tuple[MetricQuery, ...]
    """Metrics and expressions. One returns the data that is compared."""
    comparison: str
    """A key of `COMPARISONS`."""
    threshold: float
    """What data points are compared with."""
    period_seconds: int
    """Length of a period."""
    evaluation_periods: int
    datapoints_to_alarm: int
    """`evaluation_periods`, `datapoints_to_alarm`: N and M of an "M out of N" alarm."""
    says_datapoints_to_alarm: bool
    """Whether M was given, which state reasons show."""
    treatment: str
    """What a missing data point means, one of `TREATMENTS`."""
    ignores_few_samples: bool
    """Whether the state stays while a percentile has too few samples."""

    @property
    def watched(self) -> MetricQuery:
        """The query whose data is compared."""
        return next(query for query in self.queries if query.returns_data)

    @property
    def every_seconds(self) -> int:
        """Seconds between two evaluations.

        Ten for periods below a minute, an hour if all periods together exceed a day, else a minute:
        https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html
        """
        if self.period_seconds < _MINUTE:
            return 10
        return 3600 if self.period_seconds * self.evaluation_periods > 24 * 3600 else _MINUTE


def parse_alarm(record: Mapping[str, Any]) -> AlarmDefinition:
    """Return an alarm from the parameters of PutMetricAlarm.

    Raises ValueError if a parameter is wrong, or right but not emulated. The text names it.
    """
    queries = _queries(record)
    comparison = record.get("ComparisonOperator") or ""
    periods = int(record.get("EvaluationPeriods") or 0)
    to_alarm = int(record.get("DatapointsToAlarm") or periods)
    treatment = record.get("TreatMissingData") or "missing"
    if comparison not in COMPARISONS:
        raise ValueError(f"ComparisonOperator is {comparison!r}; emulated are {', '.join(COMPARISONS)}")
    if record.get("Threshold") is None:
        raise ValueError("Threshold is missing; alarms of anomaly detection are not emulated")
    if not 1 <= to_alarm <= periods:
        raise ValueError(
            f"DatapointsToAlarm is {to_alarm}; it must be from 1 to EvaluationPeriods, {periods}"
        )
    if treatment not in TREATMENTS:
        raise ValueError(f"TreatMissingData is {treatment!r}; allowed are {', '.join(TREATMENTS)}")
    return AlarmDefinition(
        queries=queries,
        comparison=comparison,
        threshold=float(record["Threshold"]),
        period_seconds=_period(record, queries),
        evaluation_periods=periods,
        datapoints_to_alarm=to_alarm,
        says_datapoints_to_alarm=bool(record.get("DatapointsToAlarm")),
        treatment=treatment,
        ignores_few_samples=record.get("EvaluateLowSampleCountPercentile") == "ignore",
    )


def _queries(record: Mapping[str, Any]) -> tuple[MetricQuery, ...]:
    given = record.get("Metrics") or []
    if not given:
        statistic = record.get("ExtendedStatistic") or record.get("Statistic") or "Average"
        metric = _metric({"Metric": record, "Period": record.get("Period"), "Stat": statistic, **record})
        return (MetricQuery("m1", metric, None, returns_data=True),)
    queries = tuple(parse_query(query) for query in given)
    identifiers = [query.id for query in queries]
    if len(set(identifiers)) < len(identifiers):
        raise ValueError(f"Metrics has an Id twice: {', '.join(identifiers)}")
    if sum(query.returns_data for query in queries) != 1:
        raise ValueError("exactly one of Metrics must have ReturnData true")
    if sum(query.metric is not None for query in queries) > _MAX_METRICS:
        raise ValueError(f"Metrics has more than {_MAX_METRICS} metrics")
    return queries


def parse_query(given: Mapping[str, Any]) -> MetricQuery:
    """Return a metric or an expression from a query of PutMetricAlarm or GetMetricData.

    Raises ValueError if it is wrong, or right but not emulated.
    """
    expression = given.get("Expression")
    if bool(expression) == bool(given.get("MetricStat")):
        raise ValueError(f"Metrics: {given.get('Id')!r} must have either MetricStat or Expression")
    returned = str(given.get("ReturnData", True)).lower() == "true"
    if expression:
        return MetricQuery(given["Id"], None, math_functions.parse(expression), returned)
    return MetricQuery(given["Id"], _metric(given["MetricStat"]), None, returned)


def _metric(given: Mapping[str, Any]) -> MetricStat:
    metric = given["Metric"]
    if not metric.get("MetricName") or not metric.get("Namespace"):
        raise ValueError("MetricName and Namespace are missing")
    check_statistic(given["Stat"])
    dimensions = {each["Name"]: each["Value"] for each in metric.get("Dimensions") or []}
    return MetricStat(
        namespace=metric["Namespace"],
        name=metric["MetricName"],
        dimensions=tuple(sorted(dimensions.items())),
        period_seconds=int(given.get("Period") or _MINUTE),
        statistic=given["Stat"],
        unit=given.get("Unit") or None,
    )


def _period(record: Mapping[str, Any], queries: tuple[MetricQuery, ...]) -> int:
    periods = {query.metric.period_seconds for query in queries if query.metric}
    if len(periods) > 1:
        raise ValueError(f"Metrics must have one Period, not {sorted(periods)}")
    given = (int(query["Period"]) for query in record.get("Metrics") or [] if query.get("Period"))
    period = next(iter(periods), None) or next(given, _MINUTE)
    if period not in (10, 20, 30) and (period <= 0 or period % _MINUTE):
        raise ValueError(f"Period is {period}; allowed are 10, 20, 30 and multiples of 60")
    return period
