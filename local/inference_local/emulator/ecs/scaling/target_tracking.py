"""Target tracking policies: their alarms, and the capacity that keeps a metric at its target.

Source: Application Auto Scaling User Guide, "How target tracking scaling works"
(https://docs.aws.amazon.com/autoscaling/application/userguide/target-tracking-scaling-policy-overview.html):
the service creates the alarms, computes the adjustment from metric and target, and rounds so that there is
never too little capacity. The number of data points is that of the alarms that AWS creates
(https://repost.aws/questions/QUVoLPVCU5QamquwCMrFMOzw/aws-ecs-uses-fargate-service-auto-scaling-which-is-not-working-properly).
AWS does not document how far below the target capacity is removed, nor how much at once: ours are 90%, and in
proportion to the metric.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

Shape = Mapping[str, Any]

HIGH: Final = "AlarmHigh"
LOW: Final = "AlarmLow"
_PERIOD_SECONDS: Final = 60
_POINTS: Final = {HIGH: 3, LOW: 15}
_LOW_SHARE: Final = 0.9


def tracking_alarms(resource: str, identifier: str, policy_arn: str, settings: Shape) -> list[dict[str, Any]]:
    """Return the alarms of a policy, as requests of PutMetricAlarm.

    resource: The scaled resource, such as ``service/cluster/name``.
    identifier: Last part of the alarms' names.
    policy_arn: ARN of the policy, the alarms' action.
    settings: ``TargetTrackingScalingPolicyConfiguration``.
    Raises ValueError if the policy follows something else than one metric.
    """
    metric = settings.get("CustomizedMetricSpecification") or {}
    if "MetricName" not in metric:
        raise ValueError("the stand-in follows a CustomizedMetricSpecification with one metric only")
    target = float(settings["TargetValue"])
    kinds = {
        HIGH: ("GreaterThanThreshold", target),
        **({} if settings.get("DisableScaleIn") else {LOW: ("LessThanThreshold", _LOW_SHARE * target)}),
    }
    return [
        {
            "AlarmName": f"TargetTracking-{resource}-{kind}-{identifier}",
            "Namespace": metric["Namespace"],
            "MetricName": metric["MetricName"],
            "Dimensions": list(metric.get("Dimensions") or ()),
            "Statistic": metric["Statistic"],
            "Period": _PERIOD_SECONDS,
            "EvaluationPeriods": _POINTS[kind],
            "ComparisonOperator": comparison,
            "Threshold": threshold,
            "AlarmActions": [policy_arn],
            **({"Unit": metric["Unit"]} if metric.get("Unit") else {}),
        }
        for kind, (comparison, threshold) in kinds.items()
    ]


def tracked_capacity(capacity: int, value: float, target: float) -> int:
    """Return the capacity that keeps a metric at its target.

    capacity: Capacity under which the metric was measured.
    value: Newest data point of the metric.
    target: Target of the policy.
    """
    return math.ceil(capacity * value / target)
