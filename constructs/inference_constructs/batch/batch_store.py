"""Access to the tables and the bucket of batch jobs from other stacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3

from inference_constructs.storage.tables import INDEXES, BatchJobTable, BatchProgressTable
from inference_contracts.batch_keys import JOBS_PREFIX, jobs_of_model
from inference_contracts.batch_names import ADMISSION_PREFIX, SPENDING_PREFIX, STATE_INDEX
from inference_contracts.shift_names import CEILING_PREFIX, ceiling_identifier, deadlines_identifier


@dataclass(frozen=True)
class BatchStore:
    """The tables and the bucket of batch jobs, by name, for stacks other than the one that creates them.

    Each ``grant_*`` method allows only its actions on its resource. The grants of ``dynamodb.Table`` and
    ``s3.Bucket`` would also allow every index and the settings of the bucket.

    Examples
    --------
    >>> store = BatchStore.from_resources(  # doctest: +SKIP
    ...     data_stack, jobs=jobs, progress=progress, bucket=bucket, encryption_key=key, role_path="/jobs/"
    ... )
    >>> store.grant_objects(role, "jobs/*", "s3:GetObject")  # doctest: +SKIP
    >>> store.grant_decrypt(role)  # doctest: +SKIP
    """

    table_name: str
    """Name of the table of jobs, files and uploads."""
    progress_table_name: str
    """Name of the table of each job's progress."""
    bucket_name: str
    """Name of the bucket of inputs and results."""
    encryption_key: kms.IKey
    """KMS key of the tables and the bucket. They are in the key's account and region."""
    role_path: str
    """IAM path that a role must have to use the objects of jobs: the policy of the bucket denies all
    others."""

    @classmethod
    def from_resources(
        cls,
        stack: cdk.Stack,
        *,
        jobs: BatchJobTable,
        progress: BatchProgressTable,
        bucket: s3.IBucket,
        encryption_key: kms.IKey,
        role_path: str,
    ) -> BatchStore:
        """Return the store of these resources. Their names become outputs of their stack.

        Parameters
        ----------
        stack
            Stack that contains the resources.
        jobs, progress
            The tables.
        bucket
            The bucket.
        encryption_key
            KMS key of the tables and the bucket.
        role_path
            IAM path of the roles that use the bucket.
        """

        def exported(output: str, name: str) -> str:
            cdk.CfnOutput(stack, output, value=name)
            return cdk.Fn.get_stack_output(stack.stack_name, output, region=stack.region)

        progress_table_name = exported("ProgressTableName", progress.table_name)
        bucket_name = exported("BatchBucketName", bucket.bucket_name)
        return cls(
            table_name=exported("JobTableName", jobs.table_name),
            progress_table_name=progress_table_name,
            bucket_name=bucket_name,
            encryption_key=encryption_key,
            role_path=role_path,
        )

    @property
    def bucket_arn(self) -> str:
        """ARN of the bucket."""
        return f"arn:{self._stack.partition}:s3:::{self.bucket_name}"

    def grant_objects(self, grantee: iam.IGrantable, key_pattern: str, *actions: str) -> iam.Grant:
        """Allow actions on objects of the bucket.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        key_pattern
            Pattern of the objects' keys, such as ``jobs/*``.
        *actions
            S3 actions on objects, such as ``s3:GetObject``.
        """
        return iam.Grant.add_to_principal(
            grantee=grantee, actions=list(actions), resource_arns=[f"{self.bucket_arn}/{key_pattern}"]
        )

    def grant_list(self, grantee: iam.IGrantable, *key_patterns: str) -> iam.Grant:
        """Allow listing keys that match a pattern. Without it, S3 answers 403 for a missing object.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        *key_patterns
            Patterns of the keys, such as ``jobs/*``.
        """
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["s3:ListBucket"],
            conditions={"StringLike": {"s3:prefix": list(key_patterns)}},
            resource_arns=[self.bucket_arn],
        )

    def grant_ceilings(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow writing ceilings of batch to the table of records, and no other item.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        """
        return self._grant_items(grantee, "dynamodb:PutItem", "StringLike", f"{CEILING_PREFIX}*")

    def grant_read_ceiling(self, grantee: iam.IGrantable, model: str) -> iam.Grant:
        """Allow reading the ceiling of a model in the table of records, and no other item.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        model
            Name of the model.
        """
        return self._grant_items(grantee, "dynamodb:GetItem", "StringEquals", ceiling_identifier(model))

    def grant_read_deadlines(self, grantee: iam.IGrantable, models: Sequence[str]) -> iam.Grant:
        """Allow reading what the deadlines of models need in the table of records, and no other item.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        models
            Names of the models.
        """
        keys = map(deadlines_identifier, models)
        return self._grant_items(grantee, "dynamodb:GetItem", "StringEquals", *keys)

    def grant_read_spending(self, grantee: iam.IGrantable) -> None:
        """Allow reading what teams have spent, which jobs have not ended, and what these may cost.

        Of the table, it allows the items of sums and of admissions only; of the indexes, that by state.

        Parameters
        ----------
        grantee
            Principal that gets the permissions.
        """
        keys = f"{SPENDING_PREFIX}*", f"{ADMISSION_PREFIX}*"
        self._grant_items(grantee, "dynamodb:GetItem", "StringLike", *keys)
        iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["dynamodb:Query"],
            resource_arns=[f"{self._table_arn(self.table_name)}/index/{STATE_INDEX}"],
        )

    def grant_records(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        """Allow actions on the table of jobs, files and uploads, and on its indexes.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        *actions
            DynamoDB actions, such as ``dynamodb:GetItem``.
        """
        table = self._table_arn(self.table_name)
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=list(actions),
            resource_arns=[table, *(f"{table}/index/{index}" for index in INDEXES)],
        )

    def grant_progress(self, grantee: iam.IGrantable, *actions: str) -> iam.Grant:
        """Allow actions on the table of each job's progress.

        Parameters
        ----------
        grantee
            Principal that gets the permission.
        *actions
            DynamoDB actions, such as ``dynamodb:PutItem``.
        """
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=list(actions),
            resource_arns=[self._table_arn(self.progress_table_name)],
        )

    def grant_work(self, grantee: iam.IGrantable, model: str) -> list[iam.Grant]:
        """Allow reading and writing the jobs of a model, and writing their progress.

        Parameters
        ----------
        grantee
            Principal that gets the permissions.
        model
            Name of the model.
        """
        jobs = jobs_of_model(model)
        keys = [f"{JOBS_PREFIX}{each}/*" for each in jobs]
        return [
            iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"],
                resource_arns=[f"{self.bucket_arn}/{each}" for each in keys],
            ),
            self.grant_list(grantee, *keys),
            iam.Grant.add_to_principal(
                grantee=grantee,
                actions=["dynamodb:PutItem"],
                conditions={"ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(jobs)}},
                resource_arns=[self._table_arn(self.progress_table_name)],
            ),
        ]

    def grant_decrypt(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow decrypting with the key, which every reader needs.

        Parameters
        ----------
        grantee
            Principal that reads.
        """
        return self.encryption_key.grant_decrypt(grantee)

    def grant_encrypt_decrypt(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow the key's actions that reading and writing need: ``kms:Decrypt`` and ``kms:GenerateDataKey``.

        Parameters
        ----------
        grantee
            Principal that reads and writes.
        """
        return self.encryption_key.grant(grantee, "kms:Decrypt", "kms:GenerateDataKey")

    @property
    def _stack(self) -> cdk.Stack:
        return cdk.Stack.of(self.encryption_key)

    def _grant_items(
        self, grantee: iam.IGrantable, action: str, operator: str, *identifiers: str
    ) -> iam.Grant:
        """Allow an action on items of the table of records whose identifiers are these, or match them.

        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
        """
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=[action],
            conditions={f"ForAllValues:{operator}": {"dynamodb:LeadingKeys": [*identifiers]}},
            resource_arns=[self._table_arn(self.table_name)],
        )

    def _table_arn(self, name: str) -> str:
        return self._stack.format_arn(service="dynamodb", resource="table", resource_name=name)
