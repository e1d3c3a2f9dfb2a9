"""The cache that holds the newest value of each signal.

It uses CloudFormation's resources directly. The higher-level constructs, ``aws-cdk.aws-elasticache-alpha``,
may change in any release, and would add a package for only four resources.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticache as elasticache
from aws_cdk import aws_kms as kms
from constructs import Construct

_ENGINE: Final = "valkey"
_MAJOR_VERSION: Final = "8"
# The second port serves eventually consistent reads
# (https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/set-up.html).
PORT: Final = 6379
READER_PORT: Final = 6380
_KEPT_SNAPSHOTS: Final = 3
# Maximum number of zones with endpoints: a serverless cache has two or three (CreateServerlessCache,
# SubnetIds).
_MAX_SUBNETS: Final = 3
_LONGEST_NAME: Final = 40 - len("-writer")

# Commands that a cluster client needs to connect (`valkey.cluster.NodesManager`). Lettuce, the client of the
# Java reader, asks for CLUSTER NODES (`io.lettuce.core.cluster.topology`).
_CONNECT: Final = (
    "+cluster|slots +cluster|shards +cluster|nodes +command +hello +ping +readonly +client|setinfo"
)
_READ: Final = "+hget +hgetall +hmget +exists +ttl +expiretime"
#: Permissions of the users as Valkey access lists (https://valkey.io/topics/acl/). No user may list keys.
#: Commands of a script are checked with the permissions of its caller.
READER_ACCESS: Final = f"on ~signal:* -@all {_CONNECT} {_READ}"
_WRITE: Final = "+eval +evalsha +hget +hset +expireat"
WRITER_ACCESS: Final = f"on ~signal:* -@all {_CONNECT} {_WRITE}"


class SignalCache(Construct):
    """A serverless Valkey cache in private subnets, with a user that reads and one that writes all signals.

    Each streaming job has a user of its own besides, which writes the job's signal only.

    All users authenticate with IAM tokens instead of passwords. There is no user ``default``: a user group
    for Valkey does not need one, and accepts none without a password
    (https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/Clusters.RBAC.html).

    Parameters
    ----------
    vpc
        VPC of the endpoints.
    encryption_key
        KMS key of its data and snapshots.
    max_gb
        Maximum size of the data, in GB.
    vpc_cidr
        IPv4 range of the VPC; None for the one that the VPC knows. The whole range may connect: IAM
        authenticates the users.
    retain
        Whether a snapshot is kept when the cache is deleted. The cache itself cannot be kept, because its VPC
        would have to stay too.
    stream_signals
        Name of the signal of each streaming job, by job.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        encryption_key: kms.IKey,
        max_gb: int,
        vpc_cidr: str | None = None,
        retain: bool = True,
        stream_signals: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        super().__init__(scope, construct_id)
        security_group = ec2.SecurityGroup(
            self, "Access", vpc=vpc, allow_all_outbound=False, description="Valkey from the VPC"
        )
        for port in (PORT, READER_PORT):
            security_group.add_ingress_rule(ec2.Peer.ipv4(vpc_cidr or vpc.vpc_cidr_block), ec2.Port.tcp(port))
        # CloudFormation does not generate names for these resources.
        self.cache_name = cdk.Names.unique_resource_name(
            self, max_length=_LONGEST_NAME, separator="-"
        ).lower()
        self.reader = f"{self.cache_name}-reader"
        self.writer = f"{self.cache_name}-writer"
        #: Users by streaming job.
        self.stream_writers: Mapping[str, str] = {
            job: f"{self.cache_name}-{_digest(job)}" for job in stream_signals
        }
        group = elasticache.CfnUserGroup(
            self,
            "Users",
            engine=_ENGINE,
            user_group_id=f"{self.cache_name}-users",
            user_ids=[
                self._add_user("Reader", self.reader, READER_ACCESS),
                self._add_user("Writer", self.writer, WRITER_ACCESS),
                *(
                    self._add_user(f"Stream-{job}", self.stream_writers[job], stream_access(signal))
                    for job, signal in stream_signals.items()
                ),
            ],
        )
        self._cache = elasticache.CfnServerlessCache(
            self,
            "Cache",
            cache_usage_limits=elasticache.CfnServerlessCache.CacheUsageLimitsProperty(
                data_storage=elasticache.CfnServerlessCache.DataStorageProperty(maximum=max_gb, unit="GB")
            ),
            description="Newest values of signals",
            engine=_ENGINE,
            final_snapshot_name=f"{self.cache_name}-{_incarnation(self)}" if retain else None,
            kms_key_id=encryption_key.key_arn,
            major_engine_version=_MAJOR_VERSION,
            security_group_ids=[security_group.security_group_id],
            serverless_cache_name=self.cache_name,
            snapshot_retention_limit=_KEPT_SNAPSHOTS,
            subnet_ids=[subnet.subnet_id for subnet in vpc.private_subnets[:_MAX_SUBNETS]],
            user_group_id=group.ref,
        )

    @property
    def host(self) -> str:
        """Name of the endpoint."""
        return self._cache.attr_endpoint_address

    @property
    def port(self) -> str:
        """Port of the endpoint."""
        return self._cache.attr_endpoint_port

    def _add_user(self, construct_id: str, name: str, access: str) -> str:
        """Add an IAM user, whose ID must be equal to its name, and return the reference to it."""
        user = elasticache.CfnUser(
            self,
            construct_id,
            access_string=access,
            authentication_mode={"Type": "iam"},
            engine=_ENGINE,
            user_id=name,
            user_name=name,
        )
        return user.ref


def stream_access(signal: str) -> str:
    """Return the permissions of a streaming job's user, as a Valkey access list."""
    return f"on ~signal:{signal}:* -@all {_CONNECT} {_WRITE}"


def _digest(job: str) -> str:
    """Return a short name of a job: with the cache's name, it is as long as that of the user that writes."""
    return hashlib.sha256(job.encode()).hexdigest()[: len("writer")]


def _incarnation(scope: Construct) -> str:
    """Return a part of the stack's ID, which differs from that of a deleted stack of the same name."""
    identifier = cdk.Fn.select(2, cdk.Fn.split("/", cdk.Stack.of(scope).stack_id))
    return cdk.Fn.select(0, cdk.Fn.split("-", identifier))
