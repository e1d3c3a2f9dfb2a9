"""GPU health on an ECS cluster: it finds hosts with broken GPUs, drains and replaces them, tells people."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms

from inference_constructs.observability import AlarmQuery, AlarmTopic
from inference_constructs.operations import (
    ControllerAlarms,
    ControllerPlace,
    EcsControlledCluster,
    HealthController,
    OperationsDashboard,
)

app = cdk.App()
stack = cdk.Stack(app, "Operations", env=cdk.Environment(account="111122223333", region="us-west-2"))

place = ControllerPlace(
    stack,
    "Shared",
    platform="search",
    cluster=EcsControlledCluster("search"),
    vpc=ec2.Vpc(stack, "Vpc"),
    encryption_key=kms.Key(stack, "Key", enable_key_rotation=True),
    alarm_topic=AlarmTopic(stack, "People", emails=["on-call@example.com"]).alarm_topic,
)
health = HealthController(
    stack,
    "Health",
    place=place,
    settings={
        "action": "replace",
        "repairedBy": {"l40s": "gpuHealth"},
        "maxUnhealthyPercent": 20,
        "replacementsPerHour": 2,
        "slowGpus": True,
        "accelerators": {"g6e.2xlarge": 1},
    },
    replaces=True,
    queries=[
        AlarmQuery(
            name="gpu-fell-off-the-bus",
            query='max by (node) (DCGM_FI_DEV_XID_ERRORS{cluster="search"}) == 79',
            says="A GPU is not reachable.",
            runbook="https://example.com/runbooks/gpu-fell-off-the-bus",
        )
    ],
)
alarms = ControllerAlarms(stack, "Alarms", place=place, functions=health.functions)
OperationsDashboard(
    stack,
    "Dashboard",
    place=place,
    alarms=[*alarms.alarms, *health.hardware_alarms],
    health=True,
    shift=False,
)

app.synth()
