"""The construct that scales a service by published loads."""

from __future__ import annotations

from itertools import pairwise

import aws_cdk as cdk
from aws_cdk.assertions import Template

from inference_constructs.ecs.serving_service import LoadTarget, RoleScaling, TaskFloor
from inference_contracts.scale_metrics import METRIC_DIMENSIONS

DIMENSIONS = dict(
    zip(METRIC_DIMENSIONS, ("chat", "qwen3-8b-main", "worker", "tokens-in-flight"), strict=True)
)


def test_a_policy_follows_each_load_and_actions_keep_the_floors() -> None:
    stack = cdk.Stack(cdk.App(), "Stack")
    floors = [
        TaskFloor(schedule=f"cron(0 {hour} ? * MON *)", time_zone="Europe/Berlin", minimum=minimum)
        for hour, minimum in ((8, 6), (18, 2))
    ]
    RoleScaling(
        stack,
        "Scaling",
        cluster_name="chat",
        service_name="qwen3-8b-main-worker",
        minimum=2,
        maximum=12,
        loads=[
            LoadTarget(name="tokens-in-flight", dimensions=DIMENSIONS, value=9000.0),
            LoadTarget(name="queue-length", dimensions={**DIMENSIONS, "trigger": "queue-length"}, value=1.5),
        ],
        floors=floors,
        scale_in_cooldown_seconds=300,
        scale_out_cooldown_seconds=60,
    )
    template = Template.from_stack(stack)
    [target] = template.find_resources("AWS::ApplicationAutoScaling::ScalableTarget").values()
    properties = target["Properties"]
    assert (properties["MinCapacity"], properties["MaxCapacity"]) == (2, 12)
    assert properties["ResourceId"] == "service/chat/qwen3-8b-main-worker"
    actions = properties["ScheduledActions"]
    assert [(each["Schedule"], each["Timezone"], each["ScalableTargetAction"]) for each in actions] == [
        ("cron(0 8 ? * MON *)", "Europe/Berlin", {"MinCapacity": 6}),
        ("cron(0 18 ? * MON *)", "Europe/Berlin", {"MinCapacity": 2}),
    ]
    policies = template.find_resources("AWS::ApplicationAutoScaling::ScalingPolicy").values()
    tracked = [each["Properties"]["TargetTrackingScalingPolicyConfiguration"] for each in policies]
    assert {each["TargetValue"] for each in tracked} == {9000, 1.5}
    for one, other in pairwise(tracked):
        assert one["CustomizedMetricSpecification"] != other["CustomizedMetricSpecification"]
    for each in tracked:
        assert (each["ScaleInCooldown"], each["ScaleOutCooldown"]) == (300, 60)
        metric = each["CustomizedMetricSpecification"]
        assert (metric["Namespace"], metric["MetricName"]) == ("InferenceBlueprints/Scaling", "Load")
        assert metric["Statistic"] == "Average"
        assert [each["Name"] for each in metric["Dimensions"]] == sorted(METRIC_DIMENSIONS)
