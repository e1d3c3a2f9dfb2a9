"""A function with a role and a log of its own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from inference_constructs.findings import acknowledge_wildcards


def add_function(
    scope: Construct,
    construct_id: str,
    *,
    code: lambda_.Code,
    handler: str,
    timeout_seconds: int,
    memory_mib: int,
    environment: Mapping[str, str],
    statements: Iterable[iam.PolicyStatement],
    reason: str,
    layer_arns: Sequence[str] = (),
    vpc: ec2.IVpc | None = None,
    security_groups: Sequence[ec2.ISecurityGroup] | None = None,
) -> lambda_.Function:
    """Add a function in Python.

    Parameters
    ----------
    scope, construct_id
        Where, and under which name; role and log have the same with an ending.
    code, handler
        What it runs.
    timeout_seconds, memory_mib
        Its limits; Lambda gives processors with memory.
    environment
        Its variables.
    statements
        What it may do beside writing its log.
    reason
        Why the wildcards among those may stand.
    layer_arns
        Layers with packages that its code does not bring.
    vpc, security_groups
        Where it runs, if that is to be in private subnets.
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
    allowed = [
        iam.PolicyStatement(
            actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[log.log_group_arn]
        ),
        *statements,
    ]
    for statement in allowed:
        role.add_to_policy(statement)
    acknowledge_wildcards(role, [each.to_statement_json() for each in allowed], reason)
    return function
