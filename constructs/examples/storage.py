"""A bucket for weights, which a build may upload, and a bucket for KV cache, which workers share."""

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from inference_constructs.storage import CacheBucket, DataBucket, LogBucket

app = cdk.App()
stack = cdk.Stack(app, "Storage", env=cdk.Environment(account="111122223333", region="us-west-2"))

key = kms.Key(stack, "Key", enable_key_rotation=True)
weights = DataBucket(stack, "Weights", encryption_key=key, log_bucket=LogBucket(stack, "Logs"))
weights.grant_upload(
    [iam.ArnPrincipal("arn:aws:iam::444455556666:role/training")], key_patterns=["fine-tuned/*"]
)

workers = iam.Role(stack, "Workers", assumed_by=iam.ServicePrincipal("ecs-tasks.amazonaws.com"))
CacheBucket(stack, "KvCache", encryption_key=key, expire_days=7).grant_read_write(workers)

app.synth()
