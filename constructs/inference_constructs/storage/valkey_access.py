"""Permission to connect to a serverless Valkey cache."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam


def grant_connection(grantee: iam.IGrantable, stack: cdk.Stack, cache_name: str, user: str) -> iam.Grant:
    """Allow connecting as a user. ElastiCache checks the action on the cache and on the user.

    https://docs.aws.amazon.com/AmazonElastiCache/latest/dg/auth-iam.html

    grantee: Role of the program.
    stack: A stack in the account and region of the cache.
    cache_name, user: Names of both.
    """
    return iam.Grant.add_to_principal(
        grantee=grantee,
        actions=["elasticache:Connect"],
        resource_arns=[
            stack.format_arn(
                service="elasticache",
                resource=kind,
                resource_name=name,
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            )
            for kind, name in (("serverlesscache", cache_name), ("user", user))
        ],
    )
