"""Batch jobs for one model: tables and bucket in a stack of their own; functions, API, image of workers."""

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms

from inference_constructs.batch import BatchJobs, BatchRestApi, BatchStore, WorkerImage
from inference_constructs.storage import BatchJobTable, BatchProgressTable, DataBucket, LogBucket
from inference_contracts.batch_configuration import BatchTeam, Capacity, Configuration, Queue

app = cdk.App()
env = cdk.Environment(account="111122223333", region="us-west-2")

data = cdk.Stack(app, "BatchData", env=env, termination_protection=True)
key = kms.Key(data, "Key", enable_key_rotation=True)
store = BatchStore.from_resources(
    data,
    jobs=BatchJobTable(data, "Jobs", encryption_key=key),
    progress=BatchProgressTable(data, "Progress", encryption_key=key),
    bucket=DataBucket(
        data, "Batch", encryption_key=key, log_bucket=LogBucket(data, "Logs"), sends_events=True
    ),
    encryption_key=key,
    role_path="/search/batch/",
)

stack = cdk.Stack(app, "Batch", env=env)
jobs = BatchJobs(
    stack,
    "Jobs",
    configuration=Configuration(
        platform="search",
        queues=(
            Queue(
                name="nightly",
                model="qwen3-8b",
                priority=50,
                deadline_hours=24,
                capacity=Capacity(
                    input_tokens_per_second=20_000,
                    output_tokens_per_second=2_000,
                    usd_per_million_input_tokens=0.10,
                    usd_per_million_output_tokens=0.40,
                ),
            ),
        ),
        teams=(BatchTeam("ads", ("arn:aws:iam::444455556666:role/ads",), monthly_budget_usd=500),),
    ),
    store=store,
)
BatchRestApi(stack, "Api", handler=jobs.api, authorizer=jobs.authorizer, vpc=ec2.Vpc(stack, "Vpc"))
# Workers read the queue jobs.shard_queues["qwen3-8b"]: WorkerDeployment runs them on EKS, WorkerService of
# `inference_constructs.ecs` on AWS Fargate.
image = WorkerImage(stack, "WorkerImage", encryption_key=key)
cdk.CfnOutput(stack, "WorkerImageUri", value=image.uri)

app.synth()
