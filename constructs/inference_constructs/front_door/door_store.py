"""The data of the front door, for stacks other than the one that creates it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from inference_constructs.front_door.door_tables import DoorKeyTable, DoorLedgerTable
from inference_constructs.storage.buckets import DataBucket
from inference_contracts.door_audit import AUDIT_PREFIX
from inference_contracts.door_key_table import CHANGE_INDEX
from inference_contracts.door_names import QUERY_RESULTS_PREFIX, USAGE_ERRORS_PREFIX, USAGE_PREFIX

#: Days for which results of queries are kept.
_RESULT_DAYS: Final = 7
#: Retention of Object Lock.
LockMode = Literal["none", "governance", "compliance"]


class UsageBucket(DataBucket):
    """The bucket of usage records.

    Parameters
    ----------
    encryption_key
        KMS key of every object.
    log_bucket
        Bucket of the access logs.
    retention_days
        Days for which records are kept.
    retain
        Whether the bucket outlives its stack.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        encryption_key: kms.IKey,
        log_bucket: s3.IBucket,
        retention_days: int,
        retain: bool = True,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            encryption_key=encryption_key,
            log_bucket=log_bucket,
            retain=retain,
            expire_days={
                USAGE_PREFIX: retention_days,
                USAGE_ERRORS_PREFIX: retention_days,
                QUERY_RESULTS_PREFIX: _RESULT_DAYS,
            },
            noncurrent_days=1,
        )


class AuditBucket(s3.Bucket):
    """The bucket of the record of administration: nobody deletes an object before its time.

    With Object Lock, each new object gets a retention of `retention_days`. In the mode ``governance``, a
    principal with ``s3:BypassGovernanceRetention`` may end it; in ``compliance``, nobody may, not even the
    account's root user. So a locked bucket is never emptied or deleted with its stack. Versions expire a day
    later: lifecycle rules delete no locked version
    (https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html).

    Parameters
    ----------
    encryption_key
        KMS key of every object.
    log_bucket
        Bucket of the access logs.
    retention_days
        Days for which the record is kept.
    lock
        Whether Object Lock protects the objects, and in which mode.
    retain
        Whether the bucket outlives its stack.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        encryption_key: kms.IKey,
        log_bucket: s3.IBucket,
        retention_days: int,
        lock: LockMode = "none",
        retain: bool = True,
    ) -> None:
        kept = retain or lock != "none"
        days = cdk.Duration.days(retention_days)
        retentions = {
            "governance": s3.ObjectLockRetention.governance,
            "compliance": s3.ObjectLockRetention.compliance,
        }
        super().__init__(
            scope,
            construct_id,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            bucket_key_enabled=True,
            encryption=s3.BucketEncryption.KMS,
            encryption_key=encryption_key,
            enforce_ssl=True,
            lifecycle_rules=[
                s3.LifecycleRule(
                    expiration=cdk.Duration.days(retention_days + 1),
                    noncurrent_version_expiration=cdk.Duration.days(retention_days + 1),
                    abort_incomplete_multipart_upload_after=cdk.Duration.days(1),
                )
            ],
            object_lock_enabled=lock != "none" or None,
            object_lock_default_retention=retentions[lock](days) if lock != "none" else None,
            removal_policy=cdk.RemovalPolicy.RETAIN if kept else cdk.RemovalPolicy.DESTROY,
            auto_delete_objects=not kept,
            server_access_logs_bucket=log_bucket,
            server_access_logs_prefix=f"s3/{construct_id.lower()}/",
            versioned=True,
        )


@dataclass(frozen=True)
class DoorStore:
    """The tables and buckets of the front door, by name, for stacks other than the one that creates them.

    Each ``grant_*`` method allows only its actions on its resource. The grants of ``dynamodb.TableV2`` and
    ``s3.Bucket`` would also allow streams, settings of the bucket and the whole key.
    """

    keys_table: str
    ledger_table: str
    usage_bucket: str
    audit_bucket: str
    """`keys_table`, `ledger_table`, `usage_bucket`, `audit_bucket`: Names of the tables of API keys and of
    checkpoints, and of the buckets of usage records and of the record of administration."""
    encryption_key: kms.IKey
    """KMS key of all of them."""

    @classmethod
    def from_resources(
        cls,
        stack: cdk.Stack,
        *,
        keys: DoorKeyTable,
        ledger: DoorLedgerTable,
        usage: UsageBucket,
        audit: AuditBucket,
        encryption_key: kms.IKey,
    ) -> DoorStore:
        """Return the store of these resources. Their names become outputs of their stack.

        Parameters
        ----------
        stack
            Stack that contains the resources.
        keys, ledger
            The tables.
        usage, audit
            The buckets.
        encryption_key
            KMS key of all of them.
        """

        def exported(output: str, name: str) -> str:
            cdk.CfnOutput(stack, output, value=name)
            return cdk.Fn.get_stack_output(stack.stack_name, output, region=stack.region)

        return cls(
            keys_table=exported("DoorKeysTableName", keys.table_name),
            ledger_table=exported("DoorLedgerTableName", ledger.table_name),
            usage_bucket=exported("DoorUsageBucketName", usage.bucket_name),
            audit_bucket=exported("DoorAuditBucketName", audit.bucket_name),
            encryption_key=encryption_key,
        )

    def grant_read_keys(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow reading API keys and what has changed of them. What is stored of a key is its hash.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        """
        arn = self._table_arn(self.keys_table)
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["dynamodb:BatchGetItem", "dynamodb:Query"],
            resource_arns=[arn, f"{arn}/index/{CHANGE_INDEX}"],
        )

    def grant_get_key(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow reading the record of one API key at a time, and decrypting it.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        """
        self.grant_use_key(grantee, "dynamodb")
        return iam.Grant.add_to_principal(
            grantee=grantee, actions=["dynamodb:GetItem"], resource_arns=[self._table_arn(self.keys_table)]
        )

    def grant_administer_keys(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow reading and writing API keys, deleting none, and adding to the record of administration.

        A transaction needs the permissions of its writes
        (https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html).

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        """
        stack, arn = self._stack, self._table_arn(self.keys_table)
        for actions, place in (
            (["dynamodb:Query"], f"{arn}/index/{CHANGE_INDEX}"),
            (["dynamodb:GetItem", "dynamodb:PutItem", "dynamodb:UpdateItem"], arn),
        ):
            iam.Grant.add_to_principal(grantee=grantee, actions=actions, resource_arns=[place])
        self.grant_use_key(grantee, "dynamodb", "s3")
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["s3:PutObject"],
            resource_arns=[f"arn:{stack.partition}:s3:::{self.audit_bucket}/{AUDIT_PREFIX}*"],
        )

    def grant_checkpoints(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow reading and writing checkpoints of the ledger, and deleting none.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        """
        return self._grant_ledger(grantee, "dynamodb:PutItem", "dynamodb:Query")

    def grant_first_checkpoints(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow writing the ledger's checkpoints of teams, without reading or deleting any.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        """
        return self._grant_ledger(grantee, "dynamodb:PutItem")

    def grant_read_spending(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow reading what teams have spent, without the key of the table.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        """
        return self._grant_ledger(grantee, "dynamodb:GetItem")

    def grant_compare(self, grantee: iam.IGrantable) -> tuple[iam.Grant, ...]:
        """Allow reading all checkpoints of the ledger and all usage records, and writing nothing.

        Parameters
        ----------
        grantee
            Principal that gets the permissions.
        """
        stack = self._stack
        bucket = f"arn:{stack.partition}:s3:::{self.usage_bucket}"
        services = [f"{each}.{stack.region}.{stack.url_suffix}" for each in ("dynamodb", "s3")]
        return (
            self._grant_ledger(grantee, "dynamodb:Scan"),
            iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["s3:GetObject"],
                resource_arns=[f"{bucket}/{USAGE_PREFIX}*"],
            ),
            iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["s3:ListBucket"],
                conditions={"StringLike": {"s3:prefix": f"{USAGE_PREFIX}*"}},
                resource_arns=[bucket],
            ),
            iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["kms:Decrypt"],
                conditions={"StringEquals": {"kms:ViaService": services}},
                resource_arns=[self.encryption_key.key_arn],
            ),
        )

    def grant_use_key(self, grantee: iam.IGrantable, *services: str) -> iam.Grant:
        """Allow using the key through these services only.

        DynamoDB calls KMS as the caller: https://docs.aws.amazon.com/kms/latest/developerguide/services-dynamodb.html

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        *services
            Services, such as ``dynamodb``.
        """
        stack = self._stack
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["kms:Decrypt", "kms:GenerateDataKey"],
            conditions={
                "StringEquals": {
                    "kms:ViaService": [f"{each}.{stack.region}.{stack.url_suffix}" for each in services]
                }
            },
            resource_arns=[self.encryption_key.key_arn],
        )

    @property
    def _stack(self) -> cdk.Stack:
        return cdk.Stack.of(self.encryption_key)

    def _grant_ledger(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        return iam.Grant.add_to_principal(
            grantee=grantee, actions=[*actions], resource_arns=[self._table_arn(self.ledger_table)]
        )

    def _table_arn(self, name: str) -> str:
        stack = self._stack
        return f"arn:{stack.partition}:dynamodb:{stack.region}:{stack.account}:table/{name}"
