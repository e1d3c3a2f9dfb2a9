"""The function that writes the answers of a part of a job's results to the signal store."""

from __future__ import annotations

from typing import Final, cast

from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from inference_constructs.batch.add_function import add_function
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.findings import acknowledge_grants
from inference_constructs.network.function_interfaces import INTERFACE_ACTIONS
from inference_constructs.signals.signal_access import SignalAccess
from inference_constructs.signals.signal_cache import PORT
from inference_contracts import batch_names
from inference_contracts.batch_keys import JobKeys

_HTTPS: Final = 443
_ANY_JOB: Final = JobKeys("*")


class SignalPublisher(Construct):
    """A Lambda function in the VPC that writes signals and their history, and reads neither.

    code: Code of the function.
    signals: Access to the signal store.
    store: Tables and bucket of batch jobs.
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
        # S3 is reached through the VPC's gateway endpoint or a NAT gateway. Both use public IP addresses.
        security_group.add_egress_rule(ec2.Peer.any_ipv4(), ec2.Port.tcp(_HTTPS), "S3")
        self.function = add_function(
            self,
            "Publish",
            code=code,
            handler="batch.publication.handler.handle",
            timeout_seconds=900,
            memory_mib=1769,  # One vCPU.
            environment={
                batch_names.BUCKET: store.bucket_name,
                "SIGNALS_CACHE": signals.cache_name,
                batch_names.SIGNALS_HISTORY_BUCKET: signals.history_bucket_name,
                "SIGNALS_HOST": signals.host,
                "SIGNALS_PORT": signals.port,
                "SIGNALS_USER": signals.writer,
            },
            role_path=store.role_path,
            vpc=signals.vpc,
            security_groups=[security_group],
        )
        acknowledge_grants(
            cast("iam.IRole", self.function.role),  # add_function gives every function a role
            self._grant(signals, store),
            "The names of network interfaces and of the objects of jobs are not known at deployment.",
        )
        # Lambda creates the network interfaces with the function's role. The function's own code must not do
        # so.
        iam.ManagedPolicy(
            self,
            "NoInterfaces",
            roles=[self.function.role] if self.function.role else None,
            statements=[
                iam.PolicyStatement(
                    effect=iam.Effect.DENY,
                    actions=list(INTERFACE_ACTIONS),
                    conditions={"ArnEquals": {"lambda:SourceFunctionArn": self.function.function_arn}},
                    resources=["*"],
                )
            ],
        )

    def _grant(self, signals: SignalAccess, store: BatchStore) -> list[iam.Grant]:
        """Add the function's permissions."""
        function, part = self.function, _ANY_JOB.part("*")
        return [
            signals.grant_write(function),
            *(
                store.grant_objects(function, key, "s3:GetObject")
                for key in (_ANY_JOB.request, part.lines, part.output)
            ),
            store.grant_objects(function, part.published, "s3:PutObject"),
            signals.grant_write_history(function),
            store.grant_encrypt_decrypt(function),
            iam.Grant.add_to_principal(
                grantee=function, actions=list(INTERFACE_ACTIONS), resource_arns=["*"]
            ),
        ]
