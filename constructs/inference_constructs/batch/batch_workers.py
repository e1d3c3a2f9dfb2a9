"""The workers of one model's batch queues, on EKS."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from inference_blueprints.catalog.charts import Chart
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.batch.shard_queue import ShardQueue
from inference_constructs.eks.pod_identity import PodIdentity, Statement
from inference_constructs.findings import acknowledge_wildcards
from inference_constructs.helm.release import HelmRelease


class BatchWorkers(Construct):
    """A release of the workers, and what its pods may do.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    cluster
        Where they run.
    chart, release, values
        Their chart, its release, which is its service account's name too, and its values.
    queue
        The model's shards.
    store
        Records and objects.
    state_machine_arn
        What is told of shards.
    data_prefixes
        ARNs of what teams let the platform read, each with a star at its end.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        cluster: eks.ICluster,
        chart: Chart,
        release: str,
        values: Mapping[str, Any],
        queue: ShardQueue,
        store: BatchStore,
        state_machine_arn: str,
        data_prefixes: list[str],
    ) -> None:
        super().__init__(scope, construct_id)
        bucket = f"arn:{cdk.Stack.of(self).partition}:s3:::{store.bucket_name}"
        statements: list[Statement] = [
            _allow(
                ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"], queue.queue_arn
            ),
            # A task's token is not of an execution that could be named.
            _allow(
                ["states:SendTaskSuccess", "states:SendTaskFailure", "states:SendTaskHeartbeat"],
                state_machine_arn,
            ),
            _allow(["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"], f"{bucket}/jobs/*"),
            {
                **_allow(["s3:ListBucket"], bucket),
                "Condition": {"StringLike": {"s3:prefix": "jobs/*"}},
            },
            _allow(["kms:Decrypt", "kms:GenerateDataKey"], store.encryption_key.key_arn),
            *([_allow(["s3:GetObject"], *data_prefixes)] if data_prefixes else []),
        ]
        identity = PodIdentity(
            self,
            "Identity",
            cluster_name=cluster_name,
            namespace=chart.namespace,
            service_accounts=[release],
            statements=statements,
        )
        acknowledge_wildcards(
            identity, statements, "Objects of jobs and of teams have names that nobody knows before."
        )
        HelmRelease(
            self, "Release", cluster=cluster, chart=chart, release=release, values=values
        ).node.add_dependency(identity)


def _allow(actions: list[str], *resources: str) -> Statement:
    """Return a statement that allows actions."""
    return {"Effect": "Allow", "Action": actions, "Resource": list(resources)}
