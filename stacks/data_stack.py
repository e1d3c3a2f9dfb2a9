"""What must survive everything else: the key and the buckets."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.storage.data_bucket import DataBucket
from inference_constructs.storage.job_table import JobTable
from inference_constructs.storage.log_bucket import LogBucket


class DataStack(cdk.Stack):
    """The platform's key, its buckets for weights and logs.

    Parameters
    ----------
    retain
        Whether the data outlives the stack.
    batch
        Whether there are jobs to keep.
    env
        Account and region.
    """

    def __init__(
        self, scope: Construct, construct_id: str, *, retain: bool, batch: bool, env: cdk.Environment
    ) -> None:
        super().__init__(scope, construct_id, env=env, termination_protection=True)
        self.encryption_key = kms.Key(
            self,
            "Key",
            description="Weights and Kubernetes secrets of the inference platform",
            enable_key_rotation=True,
            removal_policy=cdk.RemovalPolicy.RETAIN if retain else cdk.RemovalPolicy.DESTROY,
        )
        self.log_bucket = LogBucket(self, "Logs", retain=retain)
        self.weights_bucket = DataBucket(
            self, "Weights", encryption_key=self.encryption_key, log_bucket=self.log_bucket, retain=retain
        )
        output = cdk.CfnOutput(self, "WeightsBucketName", value=self.weights_bucket.bucket_name)
        # By the output's name: what other stacks allow on the bucket has to be spelled before synthesis.
        self.weights_bucket_name = cdk.Fn.get_stack_output(self.stack_name, output.node.id, region=env.region)
        self.batch = self._add_batch(retain=retain) if batch else None

    def _add_batch(self, *, retain: bool) -> BatchStore:
        """Add where jobs are kept."""
        bucket = DataBucket(
            self,
            "Batch",
            encryption_key=self.encryption_key,
            log_bucket=self.log_bucket,
            retain=retain,
            sends_events=True,
        )
        table = JobTable(self, "Jobs", encryption_key=self.encryption_key, retain=retain)
        bucket_name = cdk.CfnOutput(self, "BatchBucketName", value=bucket.bucket_name)
        table_name = cdk.CfnOutput(self, "JobTableName", value=table.table_name)
        return BatchStore(
            table_name=cdk.Fn.get_stack_output(self.stack_name, table_name.node.id, region=self.region),
            bucket_name=cdk.Fn.get_stack_output(self.stack_name, bucket_name.node.id, region=self.region),
            encryption_key=self.encryption_key,
        )
