"""Lambda functions with a role and a log of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct


def add_function(
    scope: Construct,
    construct_id: str,
    *,
    code: lambda_.Code,
    handler: str,
    timeout_seconds: int,
    memory_mib: int,
    environment: Mapping[str, str],
    layer_arns: Sequence[str] = (),
    vpc: ec2.IVpc | None = None,
    security_groups: Sequence[ec2.ISecurityGroup] | None = None,
) -> lambda_.Function:
    """Add a Lambda function in Python, with a role that may write the function's log and nothing else.

    Parameters
    ----------
    scope, construct_id
        Parent and construct ID; the IDs of role and log begin with it.
    code, handler
        Its code, and the function in it that Lambda calls.
    timeout_seconds, memory_mib
        Its limits; Lambda gives processors with memory.
    environment
        Its environment variables.
    layer_arns
        Layers with packages that its code does not bring.
    vpc, security_groups
        VPC and security groups of the function, if it runs in private subnets.
    """
    role = iam.Role(scope, f"{construct_id}Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    log = logs.LogGroup(
        scope,
        f"{construct_id}Log",
        removal_policy=cdk.RemovalPolicy.DESTROY,
        retention=logs.RetentionDays.THREE_MONTHS,
    )
    function = lambda_.Function(
        scope,
        construct_id,
        architecture=lambda_.Architecture.ARM_64,
        code=code,
        environment=dict(environment),
        handler=handler,
        layers=[
            lambda_.LayerVersion.from_layer_version_arn(scope, f"{construct_id}Layer{place}", arn)
            for place, arn in enumerate(layer_arns)
        ],
        log_group=log,
        memory_size=memory_mib,
        role=role,
        runtime=lambda_.Runtime.PYTHON_3_14,
        security_groups=security_groups,
        timeout=cdk.Duration.seconds(timeout_seconds),
        vpc=vpc,
        vpc_subnets=ec2.SubnetSelection(subnets=vpc.private_subnets) if vpc else None,
    )
    log.grant_write(role)
    return function
