"""Lambda functions, each with its own role and log group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from inference_constructs.function_calls import repeated


def add_function(
    scope: Construct,
    construct_id: str,
    *,
    code: lambda_.Code,
    handler: str,
    timeout_seconds: int,
    memory_mib: int,
    environment: Mapping[str, str],
    role_path: str,
    layer_arns: Sequence[str] = (),
    vpc: ec2.IVpc | None = None,
    security_groups: Sequence[ec2.ISecurityGroup] | None = None,
    reserved: int | None = None,
    undelivered: sqs.IQueue | None = None,
) -> lambda_.Function:
    """Add a Lambda function in Python. Its role may only write the function's log.

    scope, construct_id: Parent and construct ID. The IDs of the role and the log group begin with the
        construct ID.
    code, handler: Code, and the Python function that Lambda calls.
    timeout_seconds, memory_mib: Limits. Lambda allocates CPU in proportion to memory.
    role_path: IAM path of the role.
    layer_arns: Layers with packages that the code does not contain.
    vpc, security_groups: VPC and security groups of the function, if it runs in private subnets.
    reserved: Calls that may run at the same time, and for which Lambda keeps room.
    undelivered: Queue of events for which all calls failed. Only callers that do not wait for the result need
        it; their calls are repeated.
    """
    role = iam.Role(
        scope,
        f"{construct_id}Role",
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        path=role_path,
    )
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
        dead_letter_queue=undelivered,
        memory_size=memory_mib,
        reserved_concurrent_executions=reserved,
        role=role,
        runtime=lambda_.Runtime.PYTHON_3_14,
        security_groups=security_groups,
        timeout=cdk.Duration.seconds(timeout_seconds),
        vpc=vpc,
        vpc_subnets=ec2.SubnetSelection(subnets=vpc.private_subnets) if vpc else None,
        **(repeated() if undelivered else {}),
    )
    log.grant_write(role)
    return function
