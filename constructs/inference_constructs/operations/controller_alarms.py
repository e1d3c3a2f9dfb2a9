"""Alarms on the controllers themselves: who watches the watchers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_constructs.observability.alarm_topic import tell
from inference_constructs.operations.controller_place import ControllerPlace
from inference_contracts import health_names, operations_names, shift_names

#: A replacement may drain for 15 minutes and start for 30 (`HealthSettings`). Then it should have ended.
_OLDEST_CASE_SECONDS: Final = 3600
#: The age from which what workers report decides nothing (`HealthSettings.stale_seconds`).
_OLDEST_METRICS_SECONDS: Final = 180
#: Name of the function that runs each minute, by what it writes as `service`.
_EACH_MINUTE: Final = {
    "health-minute": operations_names.HEALTH_SERVICE,
    shift_names.SHIFT_CONTROLLER: operations_names.SHIFT_SERVICE,
}


class ControllerAlarms(Construct):
    """Alarms on errors, throttled calls, missing runs, lost events and replacements that do not end.

    Parameters
    ----------
    place
        What the controllers of the cell share.
    functions
        Their functions by name.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        functions: Mapping[str, lambda_.IFunction],
    ) -> None:
        super().__init__(scope, construct_id)
        self._place = place
        self._alarms: list[cloudwatch.IAlarm] = []
        for name, function in functions.items():
            self._add_function(name, function)
        self._add(
            "events-lost",
            place.undelivered.metric_approximate_number_of_messages_visible(
                period=cdk.Duration.minutes(1), statistic="Maximum"
            ),
            "An event or a call did not reach its controller.",
            runbook=operations_names.EVENTS_LOST_RUNBOOK,
        )

    @property
    def alarms(self) -> Sequence[cloudwatch.IAlarm]:
        """The alarms."""
        return self._alarms

    def _add_function(self, name: str, function: lambda_.IFunction) -> None:
        self._add(
            f"{name}-errors",
            function.metric_errors(period=cdk.Duration.minutes(1), statistic="Sum"),
            f"{name} failed in three of five minutes.",
            runbook=operations_names.CONTROLLER_FAILING_RUNBOOK,
            periods=5,
            of=3,
        )
        self._add(
            f"{name}-throttled",
            function.metric_throttles(period=cdk.Duration.minutes(1), statistic="Sum"),
            f"Calls of {name} were throttled for five minutes.",
            runbook=operations_names.CONTROLLER_FAILING_RUNBOOK,
            periods=5,
        )
        service = _EACH_MINUTE.get(name)
        if service is None:
            return
        self._add(
            f"{name}-stopped",
            self._metric(operations_names.RUNS, service, "Sum"),
            f"{name} did not end a run for five minutes.",
            runbook=operations_names.CONTROLLER_STOPPED_RUNBOOK,
            periods=5,
            below=1,
        )
        if service == operations_names.SHIFT_SERVICE:
            self._add(
                "shift-incomplete",
                self._metric(shift_names.SHIFT_FAILURES, service, "Sum"),
                "The capacity shift could not carry out its decisions for five minutes.",
                runbook=operations_names.SHIFT_INCOMPLETE_RUNBOOK,
                periods=5,
            )
            self._add(
                "shift-unmeasured",
                self._metric(shift_names.SHIFT_UNMEASURED, service, "Maximum"),
                "The demand of a deployment is not known for ten minutes, so batch gets nothing of it.",
                runbook=operations_names.SHIFT_UNMEASURED_RUNBOOK,
                periods=10,
            )
        if service == operations_names.HEALTH_SERVICE:
            self._add(
                "replacement-stuck",
                self._metric(health_names.OLDEST_CASE_SECONDS, service, "Maximum"),
                "A replacement of a node did not end within an hour.",
                runbook=operations_names.REPLACEMENT_STUCK_RUNBOOK,
                above=_OLDEST_CASE_SECONDS,
                periods=5,
            )
            self._add(
                "replacements-held",
                self._metric(health_names.CASES_HELD, service, "Maximum"),
                "Too many nodes of a pool were unhealthy for five minutes, so none of them is replaced.",
                runbook=operations_names.REPLACEMENTS_HELD_RUNBOOK,
                periods=5,
            )
            self._add(
                "health-unmeasured",
                self._metric(health_names.METRICS_AGE_SECONDS, service, "Maximum"),
                "Workers have reported nothing younger than three minutes, so slow ones are not found.",
                runbook=operations_names.HEALTH_UNMEASURED_RUNBOOK,
                above=_OLDEST_METRICS_SECONDS,
                periods=5,
            )

    def _metric(self, name: str, service: str, statistic: str) -> cloudwatch.Metric:
        return self._place.metric(name, service, statistic=statistic)

    def _add(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        says: str,
        *,
        runbook: str,
        periods: int = 1,
        of: int | None = None,
        above: float = 0,
        below: float | None = None,
    ) -> None:
        """Add an alarm for values above or below a threshold. Below one, it is also raised without values."""
        operators, missing = cloudwatch.ComparisonOperator, cloudwatch.TreatMissingData
        alarm = cloudwatch.Alarm(
            self,
            name,
            alarm_description=f"{says} Runbook: {runbook}",
            comparison_operator=operators.GREATER_THAN_THRESHOLD
            if below is None
            else operators.LESS_THAN_THRESHOLD,
            datapoints_to_alarm=of or periods,
            evaluation_periods=periods,
            metric=metric,
            threshold=above if below is None else below,
            treat_missing_data=missing.NOT_BREACHING if below is None else missing.BREACHING,
        )
        tell(alarm, self._place.alarm_topic)
        self._alarms.append(alarm)
