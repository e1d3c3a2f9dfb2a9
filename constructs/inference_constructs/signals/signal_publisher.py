"""The function that brings the answers of a part of a job's results into the signal store."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_constructs.batch.add_function import add_function
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.signals.signal_access import SignalAccess
from inference_constructs.signals.signal_cache import PORT

_HTTPS: Final = 443
#: What Lambda does in a function's name to put it into a VPC; it names no resources beforehand
#: (https://docs.aws.amazon.com/lambda/latest/dg/configuration-vpc.html).
_INTERFACES: Final = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)


class SignalPublisher(Construct):
    """A function in the VPC that may write signals and their history, and nothing else of either.

    Parameters
    ----------
    code
        What it runs.
    signals
        How the signal store is reached.
    store
        Where jobs and their answers are.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        code: lambda_.Code,
        signals: SignalAccess,
        store: BatchStore,
    ) -> None:
        super().__init__(scope, construct_id)
        security_group = ec2.SecurityGroup(
            self, "Group", vpc=signals.vpc, allow_all_outbound=False, description="From answers to signals"
        )
        security_group.add_egress_rule(ec2.Peer.ipv4(signals.vpc_cidr), ec2.Port.tcp(PORT), "Valkey")
        # S3 is reached by the VPC's endpoint, or by its gateway; either has addresses of the internet.
        security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(_HTTPS), "S3")
        self.function = add_function(
            self,
            "Publish",
            code=code,
            handler="batch.publication.handler.handle",
            timeout_seconds=900,
            memory_mib=1769,  # One processor.
            environment={
                "BATCH_BUCKET": store.bucket_name,
                "SIGNALS_CACHE": signals.cache_name,
                "SIGNALS_HISTORY_BUCKET": signals.history_bucket_name,
                "SIGNALS_HOST": signals.host,
                "SIGNALS_PORT": signals.port,
                "SIGNALS_USER": signals.writer,
            },
            statements=self._statements(signals, store),
            reason="Jobs and network interfaces have names that nobody knows before.",
            vpc=signals.vpc,
            security_groups=[security_group],
        )
        # The function's own code has no business with interfaces: only Lambda itself, in its name.
        iam.ManagedPolicy(
            self,
            "NoInterfaces",
            roles=[self.function.role] if self.function.role else None,
            statements=[
                iam.PolicyStatement(
                    effect=iam.Effect.DENY,
                    actions=list(_INTERFACES),
                    conditions={"ArnEquals": {"lambda:SourceFunctionArn": self.function.function_arn}},
                    resources=["*"],
                )
            ],
        )

    def _statements(self, signals: SignalAccess, store: BatchStore) -> Iterable[iam.PolicyStatement]:
        """Iterate over what the function may do."""
        stack = cdk.Stack.of(self)
        jobs = f"arn:{stack.partition}:s3:::{store.bucket_name}/jobs/*"
        history = f"arn:{stack.partition}:s3:::{signals.history_bucket_name}/signals/*"
        cache, writer = (
            stack.format_arn(
                service="elasticache",
                resource=kind,
                resource_name=name,
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            )
            for kind, name in (("serverlesscache", signals.cache_name), ("user", signals.writer))
        )
        yield iam.PolicyStatement(actions=["elasticache:Connect"], resources=[cache, writer])
        yield iam.PolicyStatement(
            actions=["s3:GetObject"],
            resources=[
                f"{jobs}/request.json",
                f"{jobs}/shards/*.jsonl",
                f"{jobs}/parts/*/output.jsonl",
            ],
        )
        yield iam.PolicyStatement(actions=["s3:PutObject"], resources=[f"{jobs}/published/*.json"])
        yield iam.PolicyStatement(actions=["s3:PutObject", "s3:AbortMultipartUpload"], resources=[history])
        yield iam.PolicyStatement(
            actions=["kms:Decrypt", "kms:GenerateDataKey"], resources=[store.encryption_key.key_arn]
        )
        yield iam.PolicyStatement(actions=list(_INTERFACES), resources=["*"])
