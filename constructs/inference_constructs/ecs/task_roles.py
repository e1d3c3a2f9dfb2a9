"""The IAM roles of the tasks of one model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import aws_cdk as cdk
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_iam as iam
from constructs import Construct

from inference_constructs.findings import acknowledge_managed_policies, acknowledge_wildcards, managed_policy
from inference_constructs.policy_statements import Statement
from inference_constructs.serving.weights_permissions import use_key

_PULLS = "AmazonEC2ContainerRegistryPullOnly"


class TaskRole(iam.Role):
    """The role of the programs in a task.

    Parameters
    ----------
    cluster_name
        Cluster of the tasks, a plain string.
    statements
        What the programs may do, in addition to tags.
    tag_keys
        Keys of the tags that a task may write to tasks of its cluster. Its own ID is not known before it
        runs.
    reason
        Why the statements have wildcards.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        cluster_name: str,
        statements: Sequence[Statement],
        tag_keys: Sequence[str] = (),
        reason: str,
    ) -> None:
        stack = cdk.Stack.of(scope)
        tags = [_tag_tasks(stack, cluster_name, tag_keys)] if tag_keys else []
        super().__init__(
            scope,
            construct_id,
            assumed_by=_tasks(stack),
            inline_policies=_policies([*statements, *tags]),
        )
        acknowledge_wildcards(self, statements, reason)
        acknowledge_wildcards(self, tags, "A task tags itself, and its ID is known only when it runs.")


class ExecutionRole(iam.Role):
    """The role with which ECS prepares a task: pulls images, reads secrets, writes logs.

    Parameters
    ----------
    secret_arns
        Secrets that containers get as variables.
    log_group_arns
        Log groups of the containers.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        secret_arns: Iterable[str],
        log_group_arns: Sequence[str],
    ) -> None:
        stack = cdk.Stack.of(scope)
        secrets = sorted(set(secret_arns))
        statements: list[Statement] = [
            {
                "Sid": "WriteLogs",
                "Effect": "Allow",
                "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
                "Resource": [f"{arn}:log-stream:*" for arn in log_group_arns],
            }
        ]
        if secrets:
            statements += [
                {
                    "Sid": "ReadSecrets",
                    "Effect": "Allow",
                    "Action": "secretsmanager:GetSecretValue",
                    "Resource": secrets,
                },
                use_key(
                    stack,
                    "DecryptSecrets",
                    "secretsmanager",
                    "kms:Decrypt",
                    {"kms:EncryptionContext:SecretARN": secrets},
                ),
            ]
        super().__init__(
            scope,
            construct_id,
            assumed_by=_tasks(stack),
            inline_policies=_policies(statements),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(_PULLS)],
        )
        acknowledge_wildcards(
            self,
            statements,
            "ECS names log streams after tasks. The owner of a secret chooses its KMS key, which can be used "
            "only through Secrets Manager and only for these secrets.",
        )
        acknowledge_managed_policies(
            self,
            [managed_policy(_PULLS)],
            "AWS maintains this policy with what a pull needs.",
        )


def _tasks(stack: cdk.Stack) -> iam.IPrincipal:
    """Return ECS tasks of this account and region.

    Source: Amazon ECS Developer Guide, "Amazon ECS task IAM role", which recommends both conditions against
    the confused deputy problem.
    """
    return iam.ServicePrincipal(
        "ecs-tasks.amazonaws.com",
        conditions={
            "ArnLike": {"aws:SourceArn": f"arn:{stack.partition}:ecs:{stack.region}:{stack.account}:*"},
            "StringEquals": {"aws:SourceAccount": stack.account},
        },
    )


def _tag_tasks(stack: cdk.Stack, cluster_name: str, keys: Sequence[str]) -> Statement:
    """Return the permission to write these tags to tasks of one cluster."""
    return {
        "Sid": "TagTask",
        "Effect": "Allow",
        "Action": "ecs:TagResource",
        "Resource": f"arn:{stack.partition}:ecs:{stack.region}:{stack.account}:task/{cluster_name}/*",
        "Condition": {"ForAllValues:StringEquals": {"aws:TagKeys": list(keys)}},
    }


def execute_command(stack: cdk.Stack, key_arn: str, log_group: str) -> list[Statement]:
    """Return what the agent of ECS Exec in a task calls: its sessions, the key of these, and their log.

    Amazon ECS Developer Guide, "Amazon ECS task IAM role", permissions for ECS Exec. The first two statements
    have no resource (Service Authorization Reference, Amazon Message Gateway Service, CloudWatch Logs).

    key_arn: KMS key of the sessions.
    log_group: Name of the log group that records them.
    """
    log = f"arn:{stack.partition}:logs:{stack.region}:{stack.account}:log-group:{log_group}:*"
    return [
        {
            "Sid": "OpenSessions",
            "Effect": "Allow",
            "Action": [
                "ssmmessages:CreateControlChannel",
                "ssmmessages:CreateDataChannel",
                "ssmmessages:OpenControlChannel",
                "ssmmessages:OpenDataChannel",
            ],
            "Resource": "*",
        },
        {"Sid": "FindSessionLog", "Effect": "Allow", "Action": "logs:DescribeLogGroups", "Resource": "*"},
        {
            "Sid": "RecordSessions",
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            "Resource": log,
        },
        {"Sid": "DecryptSessions", "Effect": "Allow", "Action": "kms:Decrypt", "Resource": key_arn},
    ]


def _policies(statements: Sequence[Statement]) -> dict[str, iam.PolicyDocument] | None:
    if not statements:
        return None
    document = iam.PolicyDocument(
        statements=[iam.PolicyStatement.from_json(dict(each)) for each in statements]
    )
    return {"Rights": document}


def fargate_task(
    scope: Construct,
    *,
    cpu: int,
    memory_mib: int,
    execution_role: iam.Role,
    task_role: iam.IRole,
    volumes: Sequence[ecs.Volume],
) -> ecs.FargateTaskDefinition:
    """Add the definition ``Task`` of x86-64 tasks whose execution role has all its permissions already.

    scope: Parent.
    cpu: Units of 1/1024 vCPU.
    memory_mib: Memory in MiB.
    execution_role, task_role: Role of the agent that starts the tasks, and role of the tasks.
    """
    return ecs.FargateTaskDefinition(
        scope,
        "Task",
        cpu=cpu,
        memory_limit_mib=memory_mib,
        execution_role=execution_role.without_policy_updates(),
        runtime_platform=ecs.RuntimePlatform(
            cpu_architecture=ecs.CpuArchitecture.X86_64,
            operating_system_family=ecs.OperatingSystemFamily.LINUX,
        ),
        task_role=task_role,
        volumes=list(volumes),
    )
