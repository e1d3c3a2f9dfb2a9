"""The Kubernetes Job that copies a model from the Hugging Face Hub to a bucket, and its permissions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_eks_v2 as eks
from constructs import Construct

from inference_catalog.charts import Chart
from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.findings import acknowledge_wildcards
from inference_constructs.helm.release import HelmRelease
from inference_constructs.serving.weights_permissions import read_secret, read_weights, write_weights


class WeightsMirrorJob(Construct):
    """A Kubernetes Job that copies a model below one prefix. The deployment does not wait for it.

    A Job runs on existing nodes, has no time limit, needs no image of its own, and resumes an interrupted
    copy. A Lambda function would end after 15 minutes, before a large model is copied.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    cluster
        Cluster that runs the Job.
    chart, release, values
        Chart, name of the release and of its service account, and values.
    s3_prefix
        ``s3://bucket/prefix`` of the files and the manifest; the bucket may be a reference.
    secret_arn
        Secret with the token of a gated model.
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
        s3_prefix: str,
        secret_arn: str | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        stack = cdk.Stack.of(self)
        statements = [
            *read_weights(stack, s3_prefix, has_manifest=True),
            *write_weights(stack, s3_prefix),
            *(read_secret(stack, secret_arn) if secret_arn else []),
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
            identity,
            statements,
            "A model is many objects below one prefix. KMS keys can be used only through S3 and Secrets "
            "Manager, and only for these objects.",
        )
        HelmRelease(
            self, "Job", cluster=cluster, chart=chart, release=release, values=values
        ).node.add_dependency(identity)
