"""The data of a front door: API keys, usage records, the store of its ledger, and a role that uses them."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from inference_constructs.front_door import (
    AuditBucket,
    DoorKeyTable,
    DoorLedgerTable,
    DoorStore,
    LedgerCache,
    UsageBucket,
    UsageStream,
)
from inference_constructs.storage import LogBucket

app = cdk.App()
stack = cdk.Stack(app, "FrontDoor", env=cdk.Environment(account="111122223333", region="us-west-2"))

vpc = ec2.Vpc(stack, "Vpc")
key = kms.Key(stack, "Key", enable_key_rotation=True)
logs = LogBucket(stack, "Logs")
usage = UsageBucket(stack, "Usage", encryption_key=key, log_bucket=logs, retention_days=400)
store = DoorStore.from_resources(
    stack,
    keys=DoorKeyTable(stack, "Keys", encryption_key=key),
    ledger=DoorLedgerTable(stack, "Ledger", encryption_key=key),
    usage=usage,
    audit=AuditBucket(
        stack, "Audit", encryption_key=key, log_bucket=logs, retention_days=400, lock="governance"
    ),
    encryption_key=key,
)
replicas = ec2.SecurityGroup(stack, "Replicas", vpc=vpc, description="Replicas of the front door")
cache = LedgerCache(stack, "Cache", vpc=vpc, encryption_key=key, clients=replicas)
records = UsageStream(stack, "Records", bucket=usage, encryption_key=key)

role = iam.Role(stack, "Role", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
store.grant_read_keys(role)
store.grant_checkpoints(role)
store.grant_use_key(role, "dynamodb")
cache.grant_connect(role)
records.grant_write(role)

app.synth()
