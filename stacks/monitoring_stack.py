"""Alarms and dashboards of a platform."""

from __future__ import annotations

from collections.abc import Sequence
from string import Template

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_blueprints.monitoring.alarm_table import EVALUATION_SECONDS, platform_alarms
from inference_blueprints.monitoring.dashboard_table import DashboardRow, dashboard_rows
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Alarms
from inference_constructs.observability.alarm_topic import AlarmTopic
from inference_constructs.observability.metric_dashboard import MetricDashboard, MetricPanel, NamedMetric
from inference_constructs.observability.promql_alarms import AlarmQuery, PromqlAlarms


class MonitoringStack(cdk.Stack):
    """One PromQL alarm per row of the alarm table, who is told, and one dashboard per row of the dashboards.

    Parameters
    ----------
    platform
        `metadata.name`.
    plan
        The serving plan.
    alarms
        Who is told of an alarm. None if nobody is.
    env
        Account and region.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        plan: ServingPlan,
        alarms: Alarms | None,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        rows = platform_alarms(platform, plan)
        self._platform = platform
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
            topic=self._topic(alarms),
        )
        shown = {alarm.name: alarm.row.dashboard for alarm in rows}
        for row in dashboard_rows():
            here = [alarm for name, alarm in added.alarms.items() if shown[name] == row.name]
            self._add_dashboard(row, here)

    def _topic(self, alarms: Alarms | None) -> sns.ITopic | None:
        if alarms is None:
            return None
        if alarms.topic_arn is not None:
            return sns.Topic.from_topic_arn(self, "Topic", alarms.topic_arn)
        return AlarmTopic(self, "People", emails=alarms.emails or []).topic

    def _add_dashboard(self, row: DashboardRow, alarms: Sequence[cloudwatch.IAlarm]) -> None:
        lines = [
            f"# {row.name}",
            row.says,
            "PromQL for Query Studio and Grafana:",
            "",
            "| Graph | PromQL |",
            "|---|---|",
        ]
        for panel in row.panels:
            queries = " · ".join(f"`{query}`" for query in panel.queries(f'platform="{self._platform}"'))
            lines.append(f"| {panel.title} | {queries} |")
        MetricDashboard(
            self,
            row.name.capitalize(),
            text="\n".join(lines),
            alarms=alarms,
            panels=[
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
