"""What streaming jobs keep in the bucket of the signals' history: program, configuration, history."""

from __future__ import annotations

from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from inference_constructs.findings import acknowledge_grants
from inference_contracts.dead_letters import REDRIVEN_PREFIX
from inference_contracts.streaming_job import (
    JOB_DOCUMENTS_PREFIX,
    JOB_PROGRAMS_PREFIX,
    STREAMING_HISTORY_PREFIX,
    streaming_history,
)


@dataclass(frozen=True)
class StreamingStore:
    """The bucket of the signals' history, for references from other stacks."""

    bucket_name: str
    """Name of the bucket."""
    encryption_key: kms.IKey
    """KMS key of its objects, in the account and region of the bucket."""

    @property
    def bucket_arn(self) -> str:
        """ARN of the bucket."""
        return f"arn:{cdk.Stack.of(self.encryption_key).partition}:s3:::{self.bucket_name}"

    def history(self, job: str) -> str:
        """Return the address below which a job's history is written.

        Parameters
        ----------
        job
            Name of the job.
        """
        return streaming_history(self.bucket_name, job)

    def grant_program(self, role: iam.IRole) -> None:
        """Allow reading the jobs' program.

        Parameters
        ----------
        role
            Role of the reader.
        """
        self._grant(role, ["s3:GetObject", "s3:GetObjectVersion"], f"{JOB_PROGRAMS_PREFIX}*")

    def grant_publish_program(self, role: iam.IRole) -> None:
        """Allow writing the jobs' program, and looking whether it is there.

        Parameters
        ----------
        role
            Role of the build.
        """
        self._grant(role, ["s3:GetObject", "s3:PutObject"], f"{JOB_PROGRAMS_PREFIX}*")
        self._grant_key(role, "kms:Decrypt", "kms:GenerateDataKey")

    def grant_document(self, role: iam.IRole, job: str) -> None:
        """Allow reading the configuration of a job.

        Parameters
        ----------
        role
            Role of the reader.
        job
            Name of the job.
        """
        self._grant(role, ["s3:GetObject"], f"{JOB_DOCUMENTS_PREFIX}{job}/*")
        self._grant_key(role, "kms:Decrypt")

    def grant_write_document(self, role: iam.IRole) -> None:
        """Allow writing configurations of jobs.

        Parameters
        ----------
        role
            Role of the writer.
        """
        self._grant(role, ["s3:PutObject"], f"{JOB_DOCUMENTS_PREFIX}*")
        self._grant_key(role, "kms:Decrypt", "kms:GenerateDataKey")

    def grant_history(self, role: iam.IRole, job: str) -> None:
        """Allow writing the history of a job, as Flink's S3 file system does.

        It keeps the end of an unfinished file as an object of its own, which it reads and deletes after a
        restart (https://nightlies.apache.org/flink/flink-docs-stable/docs/connectors/datastream/filesystem/).

        Parameters
        ----------
        role
            Role of the job.
        job
            Name of the job.
        """
        self._grant(
            role,
            [
                "s3:AbortMultipartUpload",
                "s3:DeleteObject",
                "s3:GetObject",
                "s3:ListMultipartUploadParts",
                "s3:PutObject",
            ],
            f"{STREAMING_HISTORY_PREFIX}{job}/*",
        )
        iam.Grant.add_to_principal(
            grantee=role,
            actions=["s3:ListBucket"],
            conditions={"StringLike": {"s3:prefix": f"{STREAMING_HISTORY_PREFIX}{job}/*"}},
            resource_arns=[self.bucket_arn],
        )
        self._grant_key(role, "kms:Decrypt", "kms:GenerateDataKey")

    def grant_redriven(self, role: iam.IRole, job: str) -> None:
        """Allow adding redriven answers to the history of a job, and nothing else there.

        Parameters
        ----------
        role
            Role of the redrive.
        job
            Name of the job.
        """
        keys = f"{STREAMING_HISTORY_PREFIX}{job}/date=*/hour=*/{REDRIVEN_PREFIX}*"
        self._grant(role, ["s3:PutObject"], keys)
        self._grant_key(role, "kms:GenerateDataKey")

    def _grant(self, role: iam.IRole, actions: list[str], keys: str) -> None:
        grant = iam.Grant.add_to_principal(
            grantee=role, actions=actions, resource_arns=[f"{self.bucket_arn}/{keys}"]
        )
        acknowledge_grants(role, [grant], "The names of the objects are not known at deployment.")

    def _grant_key(self, role: iam.IRole, *actions: str) -> None:
        """Allow using the key through S3 only."""
        stack = cdk.Stack.of(self.encryption_key)
        iam.Grant.add_to_principal(
            grantee=role,
            actions=list(actions),
            conditions={"StringEquals": {"kms:ViaService": f"s3.{stack.region}.amazonaws.com"}},
            resource_arns=[self.encryption_key.key_arn],
        )
