"""The CloudWatch observability add-on: metrics, logs and traces of the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_catalog.log_groups import container_log_group
from inference_constructs.eks.cluster_add_ons import AddOn, ClusterAddOns
from inference_constructs.eks.pod_identity import PodIdentity
from inference_constructs.findings import acknowledge_wildcards
from inference_constructs.observability.kept_log_group import KeptLogGroup
from inference_constructs.observability.trace_permission import send_traces
from inference_constructs.policy_statements import Statement

#: Namespace and service account of the agent; Fluent Bit runs under the same account
#: (templates/linux/fluent-bit-daemonset.yaml of the chart).
_NAMESPACE = "amazon-cloudwatch"
_SERVICE_ACCOUNT = "cloudwatch-agent"
#: Logs that the add-on's Fluent Bit sends: containers, the node's daemons, and the node itself.
LOGS = ("application", "dataplane", "host")


class ContainerInsights(Construct):
    """OTel Container Insights of one cluster, with its log groups and permissions.

    The add-on creates no log group: those here exist first, with retention and a key. So its role lacks
    ``logs:CreateLogGroup``, and everything else that the managed policy CloudWatchAgentServerPolicy grants
    beyond what this configuration calls: SSM parameters, and events of any other log group.

    Parameters
    ----------
    cluster_name
        Name of the cluster, a plain string.
    configuration
        Configuration values of the add-on.
    version
        Version of the add-on. For None, EKS chooses it.
    retention_days
        Days for which logs are kept.
    encryption_key
        KMS key of the logs.
    traces
        Whether pods send traces to the agent.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        configuration: Mapping[str, Any],
        version: str | None,
        retention_days: int,
        encryption_key: kms.IKey,
        traces: bool,
    ) -> None:
        super().__init__(scope, construct_id)
        names = [container_log_group(cluster_name, each) for each in LOGS]
        groups = [
            KeptLogGroup(
                self,
                each.title(),
                name=name,
                retention_days=retention_days,
                encryption_key=encryption_key,
            )
            for each, name in zip(LOGS, names, strict=True)
        ]
        statements = _statements(cdk.Stack.of(self), names, traces=traces)
        identity = PodIdentity(
            self,
            "Agent",
            cluster_name=cluster_name,
            namespace=_NAMESPACE,
            service_accounts=[_SERVICE_ACCOUNT],
            statements=statements,
        )
        acknowledge_wildcards(
            identity,
            statements,
            "These actions have no resource, except log streams, whose names begin with a node's name.",
        )
        add_on = AddOn("CloudWatch", "amazon-cloudwatch-observability", configuration)
        ClusterAddOns(
            self,
            "AddOn",
            cluster_name=cluster_name,
            add_ons=[add_on],
            versions={add_on.name: version},
            after=[identity, *groups],
        )


def _statements(stack: cdk.Stack, groups: Sequence[str], *, traces: bool) -> list[Statement]:
    """Return what agent and Fluent Bit call.

    Sources: the actions of the OTLP endpoint of CloudWatch metrics
    (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-OTLPEndpoint.html), and of EC2
    (EBS volumes and tags, in CloudWatchAgentServerPolicy).
    """
    prefix = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:"
    statements: list[Statement] = [
        {
            "Effect": "Allow",
            "Action": ["cloudwatch:PutMetricData", "ec2:DescribeTags", "ec2:DescribeVolumes"],
            "Resource": ["*"],
        },
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            "Resource": [f"{prefix}{name}:*" for name in groups],
        },
    ]
    if traces:
        statements.append(send_traces())
    return statements
