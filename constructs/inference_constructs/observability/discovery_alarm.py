"""The alarm on the tasks of the discovery store of a platform on Amazon ECS."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sns as sns
from constructs import Construct

from inference_constructs.observability.alarm_topic import tell

#: Five minutes: a member that is replaced starts within two.
_MISSING_PERIODS = 5


class DiscoveryAlarm(cloudwatch.Alarm):
    """An alarm that a member of the store does not run: with another one missing, nobody can write.

    Container Insights counts the tasks of each service, and has no value for a service without any.

    Parameters
    ----------
    cluster_name, services
        Names of the cluster and of the members' services.
    runbook
        What to do, as a path or a URL.
    alarm_topic
        Topic that is told of the alarm and of its end. None if nobody is told.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        services: Sequence[str],
        runbook: str,
        alarm_topic: sns.ITopic | None,
    ) -> None:
        names = {f"m{index}": service for index, service in enumerate(services)}
        super().__init__(
            scope,
            construct_id,
            alarm_description=f"A member of the discovery store does not run. Runbook: {runbook}",
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            evaluation_periods=_MISSING_PERIODS,
            metric=cloudwatch.MathExpression(
                expression=" + ".join(f"FILL({name}, 0)" for name in names),
                period=cdk.Duration.minutes(1),
                using_metrics={
                    name: cloudwatch.Metric(
                        namespace="ECS/ContainerInsights",
                        metric_name="RunningTaskCount",
                        dimensions_map={"ClusterName": cluster_name, "ServiceName": service},
                        statistic=cloudwatch.Stats.MINIMUM,
                    )
                    for name, service in names.items()
                },
            ),
            threshold=len(services),
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )
        tell(self, alarm_topic)
