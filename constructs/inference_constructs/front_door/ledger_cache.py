"""The store of the ledger: a serverless Valkey cache that only the front door reaches.

It has one user, whose permissions are what the scripts of the policy process call. What it holds can be
computed again from the checkpoints in DynamoDB, so no snapshot of it is kept.
"""

from __future__ import annotations

from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_elasticache as elasticache
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from inference_constructs.storage.valkey_access import grant_connection

_ENGINE: Final = "valkey"
_MAJOR_VERSION: Final = "8"
PORT: Final = 6379
#: Maximum number of zones with endpoints (CreateServerlessCache, SubnetIds).
_MAX_SUBNETS: Final = 3
_LONGEST_NAME: Final = 40 - len("-door")
#: Permissions of the user as a Valkey access list (https://valkey.io/topics/acl/): to connect to a cluster,
#: to load scripts, and what scripts call, which Valkey checks with the permissions of their caller. It may
#: neither list nor delete keys, nor read those of others.
DOOR_ACCESS: Final = (
    "on ~door:* -@all +cluster|slots +cluster|shards +cluster|nodes +command +hello +ping +client|setinfo "
    "+script|load +evalsha +time +get +set +expire +sadd +spop "
    "+hget +hmget +hset +hsetnx +hincrby +hdel +hgetall +hscan"
)


class LedgerCache(Construct):
    """A serverless Valkey cache in private subnets, with one IAM user.

    Its size is limited, not its requests: a limit of requests would refuse callers, and the plan states the
    cost. AWS chooses and pays for nothing that is not used (Amazon ElastiCache User Guide, "Deployment
    options").

    Parameters
    ----------
    vpc
        VPC of the endpoints.
    encryption_key
        KMS key of its data.
    clients
        Security group of those that may connect.
    max_gb
        Maximum size of the data, in GB.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc: ec2.IVpc,
        encryption_key: kms.IKey,
        clients: ec2.ISecurityGroup,
        max_gb: int = 1,
    ) -> None:
        super().__init__(scope, construct_id)
        security_group = ec2.SecurityGroup(
            self, "Access", vpc=vpc, allow_all_outbound=False, description="Store of the ledger"
        )
        security_group.add_ingress_rule(clients, ec2.Port.tcp(PORT))
        # CloudFormation does not generate names for these resources.
        self.cache_name = cdk.Names.unique_resource_name(
            self, max_length=_LONGEST_NAME, separator="-"
        ).lower()
        #: The user, whose identifier is equal to its name, as IAM authentication demands.
        self.user = f"{self.cache_name}-door"
        user = elasticache.CfnUser(
            self,
            "User",
            access_string=DOOR_ACCESS,
            authentication_mode={"Type": "iam"},
            engine=_ENGINE,
            user_id=self.user,
            user_name=self.user,
        )
        group = elasticache.CfnUserGroup(
            self,
            "Users",
            engine=_ENGINE,
            user_group_id=f"{self.cache_name}-all",
            user_ids=[user.ref],
        )
        self._cache = elasticache.CfnServerlessCache(
            self,
            "Cache",
            cache_usage_limits=elasticache.CfnServerlessCache.CacheUsageLimitsProperty(
                data_storage=elasticache.CfnServerlessCache.DataStorageProperty(maximum=max_gb, unit="GB")
            ),
            description="Counters of budgets",
            engine=_ENGINE,
            kms_key_id=encryption_key.key_arn,
            major_engine_version=_MAJOR_VERSION,
            security_group_ids=[security_group.security_group_id],
            serverless_cache_name=self.cache_name,
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

    def grant_connect(self, grantee: iam.IGrantable) -> iam.Grant:
        """Allow connecting to the cache as its user.

        Parameters
        ----------
        grantee
            Role of the program.
        """
        return grant_connection(grantee, cdk.Stack.of(self), self.cache_name, self.user)
