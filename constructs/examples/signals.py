"""A store of signals: a cache for reads at request time, the history of all values, and who may read."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from inference_constructs.signals import SignalAccess, SignalCache, SignalHistory
from inference_constructs.storage import LogBucket

app = cdk.App()
stack = cdk.Stack(app, "Signals", env=cdk.Environment(account="111122223333", region="us-west-2"))

vpc = ec2.Vpc(stack, "Vpc")
key = kms.Key(stack, "Key", enable_key_rotation=True)
history = SignalHistory(
    stack,
    "History",
    platform="search",
    signals=["intent"],
    keep_days=90,
    encryption_key=key,
    log_bucket=LogBucket(stack, "Logs"),
)
cache = SignalCache(stack, "Cache", vpc=vpc, encryption_key=key, max_gb=10)
signals = SignalAccess.from_cache(
    cache, history_bucket_name=history.bucket.bucket_name, encryption_key=key, vpc=vpc
)

service = iam.Role(stack, "Service", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
signals.grant_read(service)

app.synth()
