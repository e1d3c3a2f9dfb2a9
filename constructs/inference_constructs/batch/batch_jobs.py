"""Runs jobs: the functions, the state machine that calls them, and what starts and ends it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as scheduler_targets
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from inference_blueprints.catalog import parquet_layers
from inference_constructs.batch.add_function import add_function
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.batch.function_code import function_code
from inference_constructs.batch.job_functions import OTHER_FUNCTIONS, STATE_FUNCTIONS, JobFunction
from inference_constructs.batch.job_states import JobResources, job_definition
from inference_constructs.batch.shard_queue import ShardQueue
from inference_constructs.findings import acknowledge, acknowledge_wildcards
from inference_constructs.signals.signal_access import SignalAccess
from inference_constructs.signals.signal_publisher import SignalPublisher

#: Of events that this puts on the bus; `batch.bus` of the runtime has the same words.
_SOURCE = "inference-blueprints.batch"
_SCHEDULE_MINUTES = 1
# Beside the functions' code, for a function's variables have 4 KB together
# (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
_CONFIGURATION = "configuration.json"


@dataclass(frozen=True)
class JobSchedule:
    """A job that comes by itself.

    Parameters
    ----------
    name
        Its name.
    queue, team
        Where it waits, and whose it is.
    cron
        When, in UTC: the six fields of EventBridge Scheduler.
    manifest
        What it is to do, as the functions read it.
    """

    name: str
    queue: str
    team: str
    cron: str
    manifest: Mapping[str, Any]


class BatchJobs(Construct):
    """Jobs from their submission to their results, but for the workers.

    Parameters
    ----------
    platform
        `metadata.name`.
    code
        Folders of the packages that the functions run.
    configuration
        Queues and teams, as the functions read them.
    models, queues
        Names of models that have queues, and of the queues.
    data_prefixes
        Prefixes in S3, ``s3://bucket/folder/``, that teams let the platform read.
    schedules
        Jobs that come by themselves.
    store
        Records and objects.
    signals
        Where jobs may publish their answers; None where that is nowhere.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        code: Sequence[Path],
        configuration: Mapping[str, object],
        models: Sequence[str],
        queues: Sequence[str],
        data_prefixes: Sequence[str],
        schedules: Sequence[JobSchedule],
        store: BatchStore,
        signals: SignalAccess | None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._stack = cdk.Stack.of(self)
        self._code = function_code(*code, documents={_CONFIGURATION: json.dumps(configuration)})
        self._store = store
        self._table = dynamodb.Table.from_table_attributes(
            self, "Table", table_name=store.table_name, global_indexes=["byTeam", "byState"]
        )
        self._bucket = s3.Bucket.from_bucket_name(self, "Bucket", store.bucket_name)
        self.inputs = [
            f"arn:{self._stack.partition}:s3:::{each.removeprefix('s3://')}*" for each in data_prefixes
        ]
        self._queue_names = queues
        self.shard_queues = {model: ShardQueue(self, f"Shards-{model}") for model in models}
        environment = {
            "BATCH_TABLE": store.table_name,
            "BATCH_BUCKET": store.bucket_name,
            "BATCH_PROGRESS_TABLE": store.progress_table_name,
            "BATCH_PLATFORM": platform,
        }
        layer = parquet_layers().get(self._stack.region)
        self._parquet_layers = (layer,) if layer else ()
        functions = {name: self._function(name, each, environment) for name, each in STATE_FUNCTIONS.items()}
        if signals:
            publisher = SignalPublisher(self, "Signals", code=self._code, signals=signals, store=store)
            functions["publish"] = publisher.function
        self.state_machine = self._add_state_machine(functions)
        environment |= {
            "BATCH_STATE_MACHINE_ARN": self.state_machine.state_machine_arn,
            "BATCH_CONFIGURATION": _CONFIGURATION,
            "BATCH_QUEUE_URLS": self._stack.to_json_string(
                {model: queue.queue_url for model, queue in self.shard_queues.items()}
            ),
        }
        others = {name: self._function(name, each, environment) for name, each in OTHER_FUNCTIONS.items()}
        self.functions = {**functions, **others}
        self.api, self.authorizer = others["api"], others["authorizer"]
        self._add_triggers(others)
        if schedules:
            self._add_schedules(schedules, others["cron"])

    def _function(
        self, name: str, properties: JobFunction, environment: Mapping[str, str]
    ) -> lambda_.Function:
        """Add a function with a role of its own."""
        return add_function(
            self,
            name.capitalize(),
            code=self._code,
            handler=properties.handler,
            timeout_seconds=properties.timeout_seconds,
            memory_mib=properties.memory_mib,
            environment={**environment, **properties.environment},
            statements=self._statements(properties),
            reason="Objects of jobs and of teams have names that nobody knows before; so have executions.",
            layer_arns=self._parquet_layers if properties.reads_parquet else (),
        )

    def _statements(self, properties: JobFunction) -> Iterable[iam.PolicyStatement]:
        """Iterate over what a function may do."""
        bucket = self._bucket.bucket_arn
        for pattern, actions in properties.objects.items():
            yield iam.PolicyStatement(actions=list(actions), resources=[f"{bucket}/{pattern}"])
        if properties.lists:
            yield iam.PolicyStatement(
                actions=["s3:ListBucket"],
                conditions={"StringLike": {"s3:prefix": list(properties.lists)}},
                resources=[bucket],
            )
        if properties.reads_manifests:
            yield iam.PolicyStatement(
                actions=["s3:GetObject", "s3:GetObjectVersion"],
                resources=[f"{bucket}/{queue}/*" for queue in self._queue_names],
            )
            # Without it S3 says that a manifest that is gone may not be read.
            yield iam.PolicyStatement(
                actions=["s3:ListBucket"],
                conditions={"StringLike": {"s3:prefix": [f"{queue}/*" for queue in self._queue_names]}},
                resources=[bucket],
            )
        if properties.reads_inputs:
            inputs = [f"{bucket}/files/*", *self.inputs]
            yield iam.PolicyStatement(actions=["s3:GetObject"], resources=inputs)
        if properties.records:
            table = self._table.table_arn
            yield iam.PolicyStatement(
                actions=list(properties.records),
                resources=[table, f"{table}/index/byTeam", f"{table}/index/byState"],
            )
        if properties.progress:
            yield iam.PolicyStatement(
                actions=list(properties.progress), resources=[self._store.progress_table_arn(self._stack)]
            )
        if properties.objects or properties.records:
            yield iam.PolicyStatement(
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=[self._store.encryption_key.key_arn],
            )
        if properties.states:
            yield from self._state_statements(properties)
        if properties.tells:
            bus = self._stack.format_arn(service="events", resource="event-bus", resource_name="default")
            yield iam.PolicyStatement(actions=["events:PutEvents"], resources=[bus])

    def _state_statements(self, properties: JobFunction) -> Iterable[iam.PolicyStatement]:
        """Iterate over what a function may do with the state machine and its executions."""
        machine = self.state_machine
        resources = {
            "states:StartExecution": machine.state_machine_arn,
            "states:StopExecution": self._part_arn(machine, "execution", ":*"),
            "states:ListMapRuns": self._part_arn(machine, "execution", ":*"),
            "states:UpdateMapRun": self._part_arn(machine, "mapRun", "/*"),
            # A task's token is not of an execution that could be named.
            "states:SendTaskSuccess": machine.state_machine_arn,
        }
        for action in properties.states:
            yield iam.PolicyStatement(actions=[action], resources=[resources[action]])

    def _part_arn(self, machine: sfn.StateMachine, resource: str, ending: str) -> str:
        """Return ARNs of executions of a machine, or of what they have."""
        return self._stack.format_arn(
            service="states",
            resource=resource,
            resource_name=f"{machine.state_machine_name}{ending}",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )

    def _add_state_machine(self, functions: Mapping[str, lambda_.IFunction]) -> sfn.StateMachine:
        """Add the state machine, whose children are executions of its own."""
        definition = job_definition(
            JobResources(
                functions={name: each.function_arn for name, each in functions.items()},
                bucket_name=self._store.bucket_name,
            )
        )
        machine = sfn.StateMachine(
            self,
            "StateMachine",
            definition_body=sfn.DefinitionBody.from_string(self._stack.to_json_string(definition)),
            logs=sfn.LogOptions(
                destination=logs.LogGroup(
                    self,
                    "StateMachineLog",
                    removal_policy=cdk.RemovalPolicy.DESTROY,
                    retention=logs.RetentionDays.THREE_MONTHS,
                ),
                level=sfn.LogLevel.ERROR,
            ),
        )
        statements = [
            iam.PolicyStatement(
                actions=["lambda:InvokeFunction"],
                resources=[function.function_arn for function in functions.values()],
            ),
            iam.PolicyStatement(
                actions=["sqs:SendMessage"], resources=[each.queue_arn for each in self.shard_queues.values()]
            ),
            iam.PolicyStatement(actions=["s3:GetObject"], resources=[f"{self._bucket.bucket_arn}/jobs/*"]),
            iam.PolicyStatement(actions=["kms:Decrypt"], resources=[self._store.encryption_key.key_arn]),
        ]
        for statement in statements:
            machine.add_to_role_policy(statement)
        acknowledge_wildcards(
            machine,
            [each.to_statement_json() for each in statements],
            "Jobs have names that nobody knows before.",
        )
        acknowledge(
            machine,
            {
                "IAM5[Resource::*]": "Delivery of logs is of no resource (AWS Step Functions, Logging).",
                "SF1": "What went wrong is logged; a history has the rest, of tens of thousands of shards.",
                "SF2": "A job takes hours, and its work is the workers'.",
            },
        )
        # Of the machine itself, which a policy of its own role cannot name without a circle.
        rights = [
            iam.PolicyStatement(actions=["states:StartExecution"], resources=[machine.state_machine_arn]),
            iam.PolicyStatement(
                actions=["states:DescribeExecution", "states:StopExecution"],
                resources=[self._part_arn(machine, "execution", ":*")],
            ),
        ]
        children = iam.ManagedPolicy(self, "ChildrenPolicy", roles=[machine.role], statements=rights)
        acknowledge_wildcards(
            children,
            [each.to_statement_json() for each in rights],
            "The machine's own children have names that nobody knows before.",
        )
        return machine

    def _add_schedules(self, schedules: Sequence[JobSchedule], function: lambda_.IFunction) -> None:
        """Let times make jobs; one time of a schedule makes one, however often it is delivered."""
        role = iam.Role(self, "SchedulesRole", assumed_by=iam.ServicePrincipal("scheduler.amazonaws.com"))
        role.add_to_policy(
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn])
        )
        for schedule in schedules:
            given = {
                "schedule": scheduler.ContextAttribute.schedule_arn,
                "time": scheduler.ContextAttribute.scheduled_time,
                "queue": schedule.queue,
                "team": schedule.team,
                "manifest": schedule.manifest,
            }
            scheduler.Schedule(
                self,
                f"Schedule-{schedule.name}",
                description=f"Batch job {schedule.name}",
                schedule=scheduler.ScheduleExpression.expression(
                    f"cron({schedule.cron})", cdk.TimeZone.ETC_UTC
                ),
                target=scheduler_targets.LambdaInvoke(
                    function,
                    input=scheduler.ScheduleTargetInput.from_object(given),
                    max_event_age=cdk.Duration.hours(6),
                    retry_attempts=8,
                    # Its own right is narrower than the one that the target would add.
                    role=role.without_policy_updates(),
                ),
            )

    def _add_triggers(self, functions: Mapping[str, lambda_.IFunction]) -> None:
        """Let time, jobs, ends of executions and manifests call their functions."""
        every = events.Schedule.rate(cdk.Duration.minutes(_SCHEDULE_MINUTES))
        events.Rule(self, "EveryMinute", schedule=every, targets=[_to(functions["schedule"])])
        patterns = {
            "JobChanges": (events.EventPattern(source=[_SOURCE]), "schedule"),
            "ExecutionEnds": (
                events.EventPattern(
                    source=["aws.states"],
                    detail_type=["Step Functions Execution Status Change"],
                    detail={
                        "stateMachineArn": [self.state_machine.state_machine_arn],
                        "status": ["ABORTED", "FAILED", "TIMED_OUT"],
                    },
                ),
                "close",
            ),
            "Manifests": (
                events.EventPattern(
                    source=["aws.s3"],
                    detail_type=["Object Created"],
                    detail={
                        "bucket": {"name": [self._store.bucket_name]},
                        "object": {"key": [{"prefix": f"{queue}/"} for queue in self._queue_names]},
                    },
                ),
                "object",
            ),
        }
        for name, (pattern, function) in patterns.items():
            events.Rule(self, name, event_pattern=pattern, targets=[_to(functions[function])])


def _to(function: lambda_.IFunction) -> targets.LambdaFunction:
    """Return a function as the target of a rule."""
    return targets.LambdaFunction(function, retry_attempts=8, max_event_age=cdk.Duration.hours(6))
