"""The front door: replicas of Envoy and the policy process, their store, their records and their route.

What it needs of the models are host names, so it is deployed before them, and their listener's rules lead to
it. The tables of keys and of the ledger, and the buckets of records, are in the Data stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_blueprints.render.front_door.replica import DoorReferences, watched_document
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_constructs.front_door import (
    CarriedSpending,
    DoorImage,
    DoorKeyApi,
    DoorStore,
    DoorTargets,
    LedgerCache,
    LedgerReconciliation,
    UsageStream,
    UsageTables,
    WatchedObject,
)
from inference_constructs.network import Gateway
from inference_contracts import door_key_table, door_names
from inference_contracts.door_key_acts import KeyRules
from stacks.door_compute import DoorAccess, DoorCompute, DoorParts

if TYPE_CHECKING:
    from inference_constructs.batch import BatchStore


class FrontDoorStack(cdk.Stack):
    """The stack of the front door.

    door: Its plan.
    compute: Runs the replicas.
    store: Its tables and buckets.
    jobs: Tables of batch. None without batch.
    certificate_arn: ARN of the secret with the certificate that it shows to the load balancer and to models.
    gateway: The models' load balancer.
    priority: Priority of its rule on the listener.
    takes_old_names: Whether the host names of models lead to it.
    key_rules: What API keys may be, if teams administer their own. None if no team has a principal.
    vpc, vpc_cidr: VPC of the store of the ledger and of the API of keys, and its IPv4 range.
    encryption_key: KMS key of everything that is stored.
    log_bucket: Bucket for access logs.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        door: DoorPlan,
        compute: DoorCompute,
        store: DoorStore,
        jobs: BatchStore | None,
        certificate_arn: str,
        gateway: Gateway,
        priority: int,
        takes_old_names: bool,
        key_rules: KeyRules | None,
        vpc: ec2.IVpc,
        vpc_cidr: str,
        encryption_key: kms.IKey,
        log_bucket: s3.IBucket,
        env: cdk.Environment,
    ) -> None:
        super().__init__(scope, construct_id, env=env)
        targets = DoorTargets(self, "Route", host_name=door.host_name, gateway=gateway, priority=priority)
        ledger = LedgerCache(
            self, "Ledger", vpc=vpc, encryption_key=encryption_key, clients=compute.admit(self)
        )
        usage = UsageStream(
            self,
            "Usage",
            bucket=s3.Bucket.from_bucket_name(self, "UsageBucket", store.usage_bucket),
            encryption_key=encryption_key,
        )
        UsageTables(
            self,
            "UsageTables",
            platform=door.configuration.platform,
            bucket_name=store.usage_bucket,
            time_zone=door.configuration.time_zone,
            encryption_key=encryption_key,
        )
        watched = WatchedObject(
            self,
            "Watched",
            document=watched_document(door, compute.places()),
            encryption_key=encryption_key,
            log_bucket=log_bucket,
        )

        earlier: list[Construct] = [targets.rule, ledger, usage, watched]
        if jobs:
            earlier.append(
                CarriedSpending(
                    self,
                    "CarriedSpending",
                    jobs=jobs,
                    store=store,
                    teams=[team.name for team in door.configuration.teams],
                    time_zone=door.configuration.time_zone,
                )
            )

        def grant(grantee: iam.IGrantable) -> Sequence[iam.Grant]:
            return [
                store.grant_read_keys(grantee),
                store.grant_checkpoints(grantee),
                store.grant_use_key(grantee, "dynamodb"),
                ledger.grant_connect(grantee),
                usage.grant_write(grantee),
                watched.grant_read(grantee),
                iam.Grant.add_to_principal(
                    grantee=grantee,
                    actions=["secretsmanager:GetSecretValue"],
                    resource_arns=[certificate_arn],
                ),
                *([self._grant_batch_parameter(grantee, door)] if door.has_batch else []),
            ]

        compute.add_replicas(
            self,
            DoorParts(
                image=DoorImage(self, "Image", encryption_key=encryption_key),
                targets=targets,
                references=DoorReferences(
                    configuration=watched.address,
                    keys_table=store.keys_table,
                    ledger_table=store.ledger_table,
                    store_host=ledger.host,
                    store_cache=ledger.cache_name,
                    store_user=ledger.user,
                    usage_stream=usage.stream_name,
                    certificate_secret=certificate_arn,
                    region=self.region,
                ),
                grant=grant,
                earlier=earlier,
            ),
        )
        LedgerReconciliation(
            self,
            "Reconciliation",
            platform=door.configuration.platform,
            store=store,
            time_zone=door.configuration.time_zone,
        )
        #: What the stacks of models need to know.
        self.access = DoorAccess(
            target_group_arn=targets.target_group_arn if takes_old_names else None,
            registries=compute.registries(self),
        )
        if key_rules:
            api = DoorKeyApi(self, "Keys", store=store, rules=key_rules, vpc=vpc, vpc_cidr=vpc_cidr)
            cdk.CfnOutput(self, door_key_table.API_OUTPUT, value=api.url)
        for name, value in {
            door_names.ADDRESS_OUTPUT: f"https://{door.host_name}/v1",
            door_names.CACHE_OUTPUT: ledger.cache_name,
            door_names.LEDGER_TABLE_OUTPUT: store.ledger_table,
            door_names.USAGE_BUCKET_OUTPUT: store.usage_bucket,
            door_names.USAGE_STREAM_OUTPUT: usage.stream_name,
            door_key_table.AUDIT_BUCKET_OUTPUT: store.audit_bucket,
            door_key_table.TABLE_OUTPUT: store.keys_table,
        }.items():
            cdk.CfnOutput(self, name, value=value)

    def _grant_batch_parameter(self, grantee: iam.IGrantable, door: DoorPlan) -> iam.Grant:
        """Allow reading the host name of the batch API, which the stack Batch writes."""
        name = door_names.batch_parameter(door.configuration.platform)
        arn = self.format_arn(service="ssm", resource="parameter", resource_name=name.removeprefix("/"))
        return iam.Grant.add_to_principal(grantee=grantee, actions=["ssm:GetParameter"], resource_arns=[arn])
