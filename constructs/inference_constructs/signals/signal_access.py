"""Access to the signal store from other stacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms

from inference_constructs.signals.signal_cache import SignalCache
from inference_constructs.storage.valkey_access import grant_connection
from inference_contracts.signal_rows import HISTORY_PREFIX


@dataclass(frozen=True)
class SignalAccess:
    """Access of programs to the signal store: to its cache and to the history of its values.

    Examples
    --------
    >>> signals.grant_read(service_role)  # doctest: +SKIP
    """

    host: str
    port: str
    """`host`, `port`: Endpoint of the cache."""
    cache_name: str
    """Name of the cache."""
    reader: str
    writer: str
    """`reader`, `writer`: Names of the cache's users."""
    history_bucket_name: str
    """Name of the bucket of the history."""
    encryption_key: kms.IKey
    """KMS key of the history. Cache and history are in the key's account and region."""
    vpc: ec2.IVpc
    """VPC of the cache."""
    vpc_cidr: str
    """IPv4 range of the VPC."""
    stream_writers: Mapping[str, str] = field(default_factory=dict)
    """Names of the users of streaming jobs, by job."""

    @classmethod
    def from_cache(
        cls,
        cache: SignalCache,
        *,
        history_bucket_name: str,
        encryption_key: kms.IKey,
        vpc: ec2.IVpc,
        vpc_cidr: str | None = None,
    ) -> SignalAccess:
        """Return the access to a cache and its history.

        Parameters
        ----------
        cache
            The cache.
        history_bucket_name
            Name of the bucket of the history.
        encryption_key
            KMS key of the history.
        vpc
            VPC of the cache.
        vpc_cidr
            IPv4 range of the VPC; None for the one that the VPC knows.
        """
        return cls(
            host=cache.host,
            port=cache.port,
            cache_name=cache.cache_name,
            reader=cache.reader,
            writer=cache.writer,
            history_bucket_name=history_bucket_name,
            encryption_key=encryption_key,
            vpc=vpc,
            vpc_cidr=vpc_cidr or vpc.vpc_cidr_block,
            stream_writers=cache.stream_writers,
        )

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow connecting to the cache as the user that reads.

        Parameters
        ----------
        grantee
            Role of the program that reads.
        """
        return self._grant_connect(grantee, self.reader)

    def grant_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow connecting to the cache as the user that writes.

        Parameters
        ----------
        grantee
            Role of the program that writes.
        """
        return self._grant_connect(grantee, self.writer)

    def stream_writer(self, job: str) -> str:
        """Return the name of the user of a streaming job.

        Parameters
        ----------
        job
            Name of the job.
        """
        return self.stream_writers[job]

    def grant_stream(self, grantee: iam.IGrantable, job: str) -> iam.Grant:
        """Allow connecting to the cache as the user of a streaming job, who writes the job's signal only.

        Parameters
        ----------
        grantee
            Role of the program that writes.
        job
            Name of the job.
        """
        return self._grant_connect(grantee, self.stream_writer(job))

    def grant_write_history(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow adding rows to the history. This does not include permissions for the history's key.

        Parameters
        ----------
        grantee
            Role of the program that writes.
        """
        partition = cdk.Stack.of(self.encryption_key).partition
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["s3:PutObject", "s3:AbortMultipartUpload"],
            resource_arns=[f"arn:{partition}:s3:::{self.history_bucket_name}/{HISTORY_PREFIX}*"],
        )

    def _grant_connect(self, grantee: iam.IGrantable, user: str) -> iam.Grant:
        """Allow connecting as a user."""
        return grant_connection(grantee, cdk.Stack.of(self.encryption_key), self.cache_name, user)
