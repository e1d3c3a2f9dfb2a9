"""Alarms and dashboards of a platform."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from inference_blueprints.render.monitoring.alarm_table import (
    CANARY_RUNBOOK,
    DIFFER_RUNBOOK,
    DISCOVERY_RUNBOOK,
    EVALUATION_SECONDS,
    RECORDS_RUNBOOK,
    platform_alarms,
)
from inference_blueprints.render.monitoring.dashboard_table import (
    DOOR_DASHBOARD,
    DashboardRow,
    dashboard_rows,
)
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Alarms, Canary, LatencyKind
from inference_constructs.observability import (
    AlarmQuery,
    CanaryAlarms,
    DiscoveryAlarm,
    MetricDashboard,
    MetricPanel,
    NamedMetric,
    PromqlAlarms,
    QueryPanel,
)
from stacks.shared_parts import people_topic


class MonitoringStack(cdk.Stack):
    """One PromQL alarm per row of the alarm table, who is told, and one dashboard per row of the dashboards.

    platform: `metadata.name`.
    on_ecs: Whether the platform runs on Amazon ECS.
    canary: What asks every model. None if nothing does.
    late: Latencies and percentiles of the blueprint's objectives of which the late share is recorded.
    alarms: Who is told of an alarm. None if nobody is.
    usage_stream: Name of the stream of the front door's usage records. None without a front door.
    discovery_services: Names of the services of the discovery store on ECS. Empty without one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        plan: ServingPlan,
        on_ecs: bool,
        late: frozenset[tuple[LatencyKind, float]],
        canary: Canary | None,
        alarms: Alarms | None,
        usage_stream: str | None = None,
        discovery_services: Sequence[str] = (),
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        rows = platform_alarms(platform, plan, on_ecs=on_ecs, late=late)
        self._platform = platform
        alarm_topic = people_topic(self, alarms) if alarms else None
        added = PromqlAlarms(
            self,
            "Alarms",
            queries=[
                AlarmQuery(
                    name=alarm.name,
                    query=alarm.query,
                    says=alarm.row.says,
                    runbook=alarm.row.runbook,
                    pending_seconds=alarm.row.pending_seconds,
                    recovery_seconds=alarm.row.recovery_seconds,
                    evaluation_seconds=EVALUATION_SECONDS,
                )
                for alarm in rows
            ],
            alarm_topic=alarm_topic,
        )
        dashboards = dashboard_rows(on_ecs=on_ecs, late=late, door=plan.front_door is not None)
        shown: dict[str, list[cloudwatch.IAlarm]] = {row.name: [] for row in dashboards}
        for alarm in rows:
            shown[alarm.row.dashboard].append(added.alarms[alarm.name])
        if canary is not None:
            asked = CanaryAlarms(
                self,
                "Canary",
                platform=platform,
                models=[model.name for model in plan.models],
                every_minutes=canary.every_minutes,
                runbook=CANARY_RUNBOOK,
                alarm_topic=alarm_topic,
            )
            shown["model"] += asked.alarms
        if usage_stream:
            from inference_constructs.front_door import UsageAlarms  # few platforms have a front door

            usage = UsageAlarms(
                self,
                "Usage",
                platform=platform,
                stream_name=usage_stream,
                differ_runbook=DIFFER_RUNBOOK,
                late_runbook=RECORDS_RUNBOOK,
                alarm_topic=alarm_topic,
            )
            shown[DOOR_DASHBOARD] += usage.alarms
        if discovery_services:
            missing = DiscoveryAlarm(
                self,
                "DiscoveryMembersMissing",
                cluster_name=platform,
                services=discovery_services,
                runbook=DISCOVERY_RUNBOOK,
                alarm_topic=alarm_topic,
            )
            shown["platform"].append(missing)
        for row in dashboards:
            self._add_dashboard(row, shown[row.name])

    def _add_dashboard(self, row: DashboardRow, alarms: Sequence[cloudwatch.IAlarm]) -> None:
        selector = f'platform="{self._platform}"'
        series = [QueryPanel(title=panel.title, queries=panel.queries(selector)) for panel in row.panels]
        insights = [
            QueryPanel(
                title=insight.title, queries=[Template(insight.query).substitute(cluster=self._platform)]
            )
            for insight in row.insights
        ]
        MetricDashboard(
            self,
            "".join(word.capitalize() for word in row.name.split("-")),
            text=f"# {row.name}\n{row.says}",
            alarms=alarms,
            queries=[*series, *insights],
            metrics=[
                MetricPanel(
                    title=graph.title,
                    metrics=[
                        NamedMetric(
                            namespace=graph.namespace,
                            name=name,
                            dimensions={
                                key: Template(value).substitute(cluster=self._platform)
                                for key, value in graph.dimensions.items()
                            },
                            statistic=graph.statistic,
                        )
                        for name in graph.names
                    ],
                )
                for graph in row.cloudwatch
            ],
        )
