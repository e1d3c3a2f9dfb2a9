"""The Lambda functions of controllers: code, role, and the schedule that calls one each minute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as scheduler_targets
from constructs import Construct

from inference_catalog import parquet_layers
from inference_catalog.log_groups import controller_log_group
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.code_staging import function_code
from inference_constructs.findings import acknowledge, acknowledge_wildcards
from inference_constructs.function_calls import not_repeated, scheduler_role
from inference_constructs.network.function_interfaces import INTERFACE_ACTIONS, let_connect
from inference_constructs.observability.kept_log_group import KeptLogGroup
from inference_constructs.operations.controller_place import ControllerPlace
from inference_contracts import shift_names
from inference_contracts.operations_names import CONTROLLER_CALLS
from inference_contracts.shift_names import ShiftConfiguration
from inference_runtime import runtime_directory

#: What `OperationsTable` calls. Writes are transactions of puts, which need the permission of a put:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/transaction-apis-iam.html
_ITEM_ACTIONS: Final = ("GetItem", "PutItem", "Query")
#: Packages that Lambda does not provide. Powertools needs the second.
_PACKAGES: Final = ("aws_lambda_powertools", "typing_extensions")
#: One vCPU: the comparison of thousands of workers takes a second.
_MEMORY_MIB: Final = 1769


class ControllerFunction(lambda_.Function):
    """A function in the VPC that reads and writes the cell's table, reads the freeze switch and tells people.

    place: What the controllers of the cell share.
    name: What it does, one of `CONTROLLER_CALLS`. Part of the name of its log group.
    role: Its role. Functions of one controller may share it: each has an access entry of the cluster.
    code, handler: Code, and the Python function that Lambda calls.
    environment: Environment variables beside those of the place.
    timeout_seconds: Longest run.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        name: str,
        role: iam.Role,
        code: lambda_.Code,
        handler: str,
        environment: Mapping[str, str],
        timeout_seconds: int,
    ) -> None:
        log = KeptLogGroup(
            scope,
            f"{construct_id}Log",
            name=controller_log_group(place.platform, name),
            retention_days=place.retention_days,
            encryption_key=place.encryption_key,
        )
        log.grant_write(role)
        super().__init__(
            scope,
            construct_id,
            architecture=lambda_.Architecture.ARM_64,
            code=code,
            environment={**place.environment, **environment},
            handler=handler,
            # Beside pyarrow, the layer has numpy.
            layers=[
                lambda_.LayerVersion.from_layer_version_arn(
                    scope, f"{construct_id}Layer0", layer_arn(cdk.Stack.of(scope))
                )
            ],
            log_group=log,
            memory_size=_MEMORY_MIB,
            reserved_concurrent_executions=CONTROLLER_CALLS[name],
            role=role,
            runtime=lambda_.Runtime.PYTHON_3_14,
            security_groups=[place.security_group],
            timeout=cdk.Duration.seconds(timeout_seconds),
            vpc=place.vpc,
            vpc_subnets=ec2.SubnetSelection(subnets=place.vpc.private_subnets),
            # The minute's function reads everything again. What failed is in the alarm on errors.
            **not_repeated(),
        )
        self.node.add_dependency(role)


def layer_arn(stack: cdk.Stack) -> str:
    """Return the ARN of the layer with numpy in the stack's region.

    stack: Stack of a controller.
    Raises ValueError: The stack has no region, or one without the layer.
    """
    layers = parquet_layers()
    if stack.region not in layers:
        got = "no region" if cdk.Token.is_unresolved(stack.region) else stack.region
        raise ValueError(
            f"{stack.node.path}: controllers need a layer of AWS SDK for pandas; got {got}, allowed are "
            f"{', '.join(sorted(layers))}: create the stack with `env=cdk.Environment(region=…)`"
        )
    return layers[stack.region]


def controller_code(controller: str, documents: Mapping[str, str]) -> lambda_.Code:
    """Return the code of a controller: its program, its pure decisions of the same name, and documents.

    controller: Folder of the program in ``runtime``.
    documents: Text by name of a file that the program reads.
    """
    runtime = runtime_directory()
    return function_code(
        runtime / controller, runtime / "operations", packages=_PACKAGES, documents=documents
    )


def controller_role(scope: Construct, construct_id: str, place: ControllerPlace) -> iam.Role:
    """Add the role of a controller: table, freeze switch, topic, queries of metrics, and its network.

    place: What the controllers of the cell share.
    """
    role = iam.Role(scope, construct_id, assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
    let_connect(role)
    # Lambda connects the functions with this role. Their own code must not do so.
    role.add_to_policy(
        iam.PolicyStatement(
            effect=iam.Effect.DENY,
            actions=list(INTERFACE_ACTIONS),
            conditions={"ArnLike": {"lambda:SourceFunctionArn": "*"}},
            resources=["*"],
        )
    )
    role.add_to_policy(
        iam.PolicyStatement(
            actions=[f"dynamodb:{name}" for name in _ITEM_ACTIONS],
            conditions={
                "ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [f"{place.platform}#{place.cell}"]}
            },
            resources=[place.table.table_arn],
        )
    )
    place.encryption_key.grant(role, "kms:Decrypt", "kms:GenerateDataKey")
    role.add_to_policy(
        iam.PolicyStatement(actions=["ssm:GetParameter"], resources=[place.frozen.parameter_arn])
    )
    place.alarm_topic.grant_publish(role)
    # Neither action has a resource:
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-PromQL-API-QueryMetrics.html
    asks = iam.PolicyStatement(
        actions=["cloudwatch:GetMetricData", "cloudwatch:ListMetrics"], resources=["*"]
    )
    role.add_to_policy(asks)
    acknowledge_wildcards(role, [asks.to_statement_json()], "CloudWatch's metrics have no ARNs.")
    acknowledge(role, {"IAM5[Action::kms:GenerateDataKey*]": "`grant_publish` lets it use the topic's key."})
    return role


class MinuteSchedule(Construct):
    """An EventBridge schedule. A call that fails is not repeated for long: the next minute does its work.

    place: What the controllers of the cell share.
    function: The controller.
    says: What it does.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        function: lambda_.IFunction,
        says: str,
    ) -> None:
        super().__init__(scope, construct_id)
        role = scheduler_role(self, "Role", function=function, undelivered=place.undelivered)
        scheduler.Schedule(
            self,
            "EveryMinute",
            description=says,
            schedule=scheduler.ScheduleExpression.rate(cdk.Duration.minutes(1)),
            target=scheduler_targets.LambdaInvoke(
                function,
                input=scheduler.ScheduleTargetInput.from_object(
                    {"time": scheduler.ContextAttribute.scheduled_time}
                ),
                max_event_age=cdk.Duration.minutes(1),
                retry_attempts=0,
                dead_letter_queue=place.undelivered,
                # CDK's `LambdaInvoke` target would also allow the function's versions.
                role=role.without_policy_updates(),
            ),
        )


# The capacity shift: a function that moves capacity between real time and batch each minute.

#: Name of the document with the configuration, in the function's code.
SHIFT_DOCUMENT = "shift.json"


class ShiftController(Construct):
    """A function that forecasts demand, and sets floors of workers and quotas of batch.

    Parameters
    ----------
    place
        What the controllers of the cell share.
    shift
        What it moves, and whether it does or only observes.
    batch
        Batch's tables. It may write ceilings, and nothing else.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        place: ControllerPlace,
        shift: ShiftConfiguration,
        batch: BatchStore,
    ) -> None:
        super().__init__(scope, construct_id)
        role = controller_role(self, "Role", place)
        if shift.action == "shift":
            batch.grant_ceilings(role)
        if shift.lent_models:
            # Without it, the shift would not know which jobs are urgent.
            batch.grant_read_deadlines(role, shift.lent_models)
        self.function = ControllerFunction(
            self,
            "Minute",
            place=place,
            name=shift_names.SHIFT_CONTROLLER,
            role=role,
            code=controller_code("capacity_shift", {SHIFT_DOCUMENT: shift.as_json()}),
            handler="capacity_shift.handlers.shift",
            environment={
                shift_names.SHIFT_CONFIGURATION: SHIFT_DOCUMENT,
                shift_names.SHIFT_BATCH_TABLE: batch.table_name,
            },
            # A new process reads two weeks of demand first.
            timeout_seconds=55,
        )
        MinuteSchedule(
            self,
            "Schedule",
            place=place,
            function=self.function,
            says="Forecasts demand and shifts capacity between real time and batch",
        )
        place.cluster.grant_shift(self, role, shift)
