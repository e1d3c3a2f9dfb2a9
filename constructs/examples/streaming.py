"""A Kafka cluster with a topic, a service that writes events to it, and alarms on the job that reads them."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from inference_constructs.observability import AlarmTopic
from inference_constructs.streaming import ExpressCluster, StreamAlarms, StreamMetrics

app = cdk.App()
stack = cdk.Stack(app, "Streaming", env=cdk.Environment(account="111122223333", region="us-west-2"))

kafka = ExpressCluster(
    stack,
    "Kafka",
    name="search",
    vpc=ec2.Vpc(stack, "Vpc", availability_zones=["us-west-2a", "us-west-2b", "us-west-2c"]),
    brokers=3,
    instance_type="express.m7g.large",
    encryption_key=kms.Key(stack, "Key", enable_key_rotation=True),
).cluster
kafka.add_topic(stack, "Clicks", topic="clicks", partitions=12, retention_hours=24)

shop = iam.Role(stack, "Shop", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
kafka.grant_write(shop, "clicks", idempotent=True)

StreamAlarms(
    stack,
    "Alarms",
    metrics=StreamMetrics("search-intent", "intent", kafka.name, "clicks"),
    people=AlarmTopic(stack, "People", emails=["on-call@example.com"]).alarm_topic,
)

app.synth()
