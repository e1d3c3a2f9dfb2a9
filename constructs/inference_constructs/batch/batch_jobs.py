"""Runs batch jobs: the functions, the state machine that calls them, and its triggers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as scheduler_targets
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from inference_catalog import parquet_layers
from inference_catalog.log_groups import state_machine_log_group
from inference_constructs.batch.add_function import add_function
from inference_constructs.batch.batch_shard_queue import BatchShardQueue
from inference_constructs.batch.batch_store import BatchStore
from inference_constructs.batch.job_functions import OTHER_FUNCTIONS, STATE_FUNCTIONS, JobFunction
from inference_constructs.batch.job_states import JobResources, job_definition
from inference_constructs.batch.team_isolation import TeamInputs
from inference_constructs.code_staging import function_code
from inference_constructs.findings import acknowledge, acknowledge_grants, acknowledge_wildcards
from inference_constructs.function_calls import scheduler_role, undelivered_events
from inference_constructs.signals.signal_access import SignalAccess
from inference_constructs.signals.signal_publisher import SignalPublisher
from inference_contracts import batch_names
from inference_contracts.batch_configuration import Configuration
from inference_contracts.batch_keys import FILES_PREFIX, JOBS_PREFIX
from inference_contracts.batch_limits import SCHEDULE_SECONDS
from inference_runtime import runtime_directory

if TYPE_CHECKING:  # platforms without a front door need not import the services that it uses
    from inference_constructs.front_door.door_store import DoorStore

# Stored with the functions' code, because all environment variables of a function share 4 KB
# (https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html).
_CONFIGURATION = "configuration.json"
#: Import names of the packages that the functions need.
_PACKAGES = ("aws_lambda_powertools", "jinja2", "markupsafe", "multipart", "typing_extensions", "valkey")


@dataclass(frozen=True)
class JobSchedule:
    """A job that is created on a schedule."""

    name: str
    """Name of the schedule."""
    queue: str
    """Queue of the job."""
    team: str
    """The team that owns it."""
    cron: str
    """Times in UTC: the six fields of an EventBridge Scheduler cron expression."""
    manifest: Mapping[str, Any]
    """Manifest of the job, in the format that the functions read."""


@dataclass(frozen=True)
class JobsDoor:
    """The front door, which charges all requests of teams."""

    store: DoorStore
    """Its tables."""
    time_zone: str
    """Time zone of its months."""
    has_keys: bool
    """Whether callers may have API keys."""


class BatchJobs(Construct):
    """Everything that runs batch jobs except the workers.

    Parameters
    ----------
    configuration
        Queues, teams and signals.
    store
        Tables and bucket of batch jobs.
    limited
        Models whose places the capacity shift limits.
    schedules
        Jobs that are created on a schedule.
    signals
        Signal store to which jobs may publish their answers; None without one.
    door
        The front door; None without one.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        configuration: Configuration,
        store: BatchStore,
        limited: Sequence[str] = (),
        schedules: Sequence[JobSchedule] = (),
        signals: SignalAccess | None = None,
        door: JobsDoor | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._stack = cdk.Stack.of(self)
        self._configuration = configuration
        runtime = runtime_directory()
        self._code = function_code(
            runtime / "batch",
            runtime / "signals",
            # Lambda's image promises no time zones.
            packages=(*_PACKAGES, *(["tzdata"] if door else [])),
            documents={_CONFIGURATION: json.dumps(configuration.to_document())},
        )
        self._store = store
        self._bus = events.EventBus.from_event_bus_name(self, "Bus", "default")
        self.undelivered = undelivered_events(self, "UndeliveredEvents")
        self.inputs = TeamInputs(
            self._stack, sorted({prefix for team in configuration.teams for prefix in team.data_prefixes})
        )
        self.shard_queues = {
            model: BatchShardQueue(self, f"Shards-{model}") for model in configuration.models
        }
        environment = {
            batch_names.TABLE: store.table_name,
            batch_names.BUCKET: store.bucket_name,
            batch_names.PROGRESS_TABLE: store.progress_table_name,
            batch_names.PLATFORM: configuration.platform,
            batch_names.CONFIGURATION: _CONFIGURATION,
        }
        layer = parquet_layers().get(self._stack.region)
        self._parquet_layers = (layer,) if layer else ()
        functions = {name: self._function(name, each, environment) for name, each in STATE_FUNCTIONS.items()}
        if signals:
            publisher = SignalPublisher(self, "Signals", code=self._code, signals=signals, store=store)
            functions["publish"] = publisher.function
        self.state_machine = self._add_state_machine(functions)
        environment |= {
            batch_names.STATE_MACHINE_ARN: self.state_machine.state_machine_arn,
            batch_names.ACCOUNT: self._stack.account,
            batch_names.QUEUE_URLS: self._stack.to_json_string(
                {model: queue.queue_url for model, queue in self.shard_queues.items()}
            ),
        }
        others = {name: self._function(name, each, environment) for name, each in OTHER_FUNCTIONS.items()}
        self._let_close(others["schedule"], others["close"])
        if limited:
            others["schedule"].add_environment(batch_names.CEILINGS, ",".join(limited))
        if door:
            self._let_read(door, others)
        self.functions = {**functions, **others}
        self.api, self.authorizer = others["api"], others["authorizer"]
        self._add_triggers(others)
        if schedules:
            self._add_schedules(schedules, others["cron"])

    def _let_close(self, scheduler_function: lambda_.Function, close: lambda_.IFunction) -> None:
        """Let the scheduler close jobs. `Function.grant_invoke` would also allow versions and aliases.

        The scheduler's call is asynchronous, and so are those of the event rules: `close` keeps the two
        repetitions that Lambda makes of such a call, because nothing else repeats it for CLOSE_SECONDS.
        """
        scheduler_function.add_environment(batch_names.CLOSE_FUNCTION, close.function_name)
        iam.Grant.add_to_principal(
            grantee=scheduler_function, actions=["lambda:InvokeFunction"], resource_arns=[close.function_arn]
        )

    @staticmethod
    def _let_read(door: JobsDoor, functions: Mapping[str, lambda_.Function]) -> None:
        """Let functions read what teams have spent at the front door, and the authorizer its keys."""
        for name in ("schedule", "api"):
            functions[name].add_environment(batch_names.DOOR_LEDGER_TABLE, door.store.ledger_table)
            functions[name].add_environment(batch_names.DOOR_TIME_ZONE, door.time_zone)
            door.store.grant_read_spending(functions[name])
        if door.has_keys:
            functions["authorizer"].add_environment(batch_names.DOOR_KEYS_TABLE, door.store.keys_table)
            door.store.grant_get_key(functions["authorizer"])

    def _function(
        self, name: str, properties: JobFunction, environment: Mapping[str, str]
    ) -> lambda_.Function:
        """Add a function with its own role."""
        function = add_function(
            self,
            name.capitalize(),
            code=self._code,
            handler=properties.handler,
            timeout_seconds=properties.timeout_seconds,
            memory_mib=properties.memory_mib,
            environment={**environment, **properties.environment},
            role_path=self._store.role_path,
            layer_arns=self._parquet_layers if properties.reads_parquet else (),
            reserved=properties.reserved,
            undelivered=self.undelivered if properties.takes_events else None,
        )
        acknowledge_grants(
            cast("iam.IRole", function.role),  # add_function gives every function a role
            [*self._grant_data(function, properties), *self._grant_calls(function, properties)],
            "The names of executions and of the objects of jobs and teams are not known at deployment.",
        )
        return function

    def _grant_data(self, function: lambda_.Function, properties: JobFunction) -> Iterator[iam.Grant]:
        """Allow the function's actions on objects and tables."""
        store = self._store
        for pattern, actions in properties.objects.items():
            yield store.grant_objects(function, pattern, *actions)
        if properties.lists:
            yield store.grant_list(function, *properties.lists)
        if properties.reads_manifests:
            patterns = [f"{queue.name}/*" for queue in self._configuration.queues]
            for pattern in patterns:
                yield store.grant_objects(function, pattern, "s3:GetObject", "s3:GetObjectVersion")
            # With this permission S3 answers 404 for a missing manifest, not 403.
            yield store.grant_list(function, *patterns)
        if properties.reads_inputs:
            yield store.grant_objects(function, f"{FILES_PREFIX}*", "s3:GetObject")
            yield store.grant_list(function, f"{FILES_PREFIX}*")
            yield from self.inputs.grant_read(function)
        if properties.records:
            yield store.grant_records(function, *properties.records)
        if properties.progress:
            yield store.grant_progress(function, *properties.progress)
        if properties.objects or properties.records:
            yield store.grant_encrypt_decrypt(function)

    def _grant_calls(self, function: lambda_.Function, properties: JobFunction) -> Iterator[iam.Grant]:
        """Allow the function's calls to Step Functions and EventBridge."""
        for action in properties.states:
            yield self._grant_state_machine(function, action)
        if properties.sends_events:
            yield self._bus.grant_put_events_to(function)

    def _grant_state_machine(self, grantee: iam.IGrantable, action: str) -> iam.Grant:
        """Allow one action on the state machine, its executions or their map runs.

        CDK's own grants do not fit: `grant_task_response` also allows failing and prolonging tasks, and
        `grant_execution` parses an execution's ARN although the machine's name is enough.
        """
        machine = self.state_machine
        resources = {
            "states:StartExecution": machine.state_machine_arn,
            "states:StopExecution": self._part_arn(machine, "execution", ":*"),
            "states:DescribeExecution": self._part_arn(machine, "execution", ":*"),
            "states:ListMapRuns": self._part_arn(machine, "execution", ":*"),
            "states:UpdateMapRun": self._part_arn(machine, "mapRun", "/*"),
            # A task token does not contain its execution.
            "states:SendTaskSuccess": machine.state_machine_arn,
        }
        return iam.Grant.add_to_principal(
            grantee=grantee, actions=[action], resource_arns=[resources[action]]
        )

    def _part_arn(self, machine: sfn.StateMachine, resource: str, ending: str) -> str:
        """Return the ARN pattern of a machine's executions, or of their map runs."""
        return self._stack.format_arn(
            service="states",
            resource=resource,
            resource_name=f"{machine.state_machine_name}{ending}",
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )

    def _add_state_machine(self, functions: Mapping[str, lambda_.IFunction]) -> sfn.StateMachine:
        """Add the state machine. Its maps run their items as child executions."""
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
                    log_group_name=state_machine_log_group(self._configuration.platform, "batch"),
                    removal_policy=cdk.RemovalPolicy.DESTROY,
                    retention=logs.RetentionDays.THREE_MONTHS,
                ),
                level=sfn.LogLevel.ERROR,
            ),
        )
        cast("iam.CfnRole", machine.role.node.default_child).path = self._store.role_path
        grants = [
            # `Function.grant_invoke` would also allow its versions and aliases.
            iam.Grant.add_to_principal(
                grantee=machine,
                actions=["lambda:InvokeFunction"],
                resource_arns=[function.function_arn for function in functions.values()],
            ),
            *(queue.grant_send(machine) for queue in self.shard_queues.values()),
            self._store.grant_objects(machine, f"{JOBS_PREFIX}*", "s3:GetObject"),
            self._store.grant_decrypt(machine),
        ]
        acknowledge_grants(machine, grants, "The names of jobs are not known at deployment.")
        acknowledge(
            machine,
            {
                "IAM5[Resource::*]": "Log delivery has no resource type (AWS Step Functions, Logging).",
                "SF1": "Errors are logged. The execution history contains the other events of each shard.",
                "SF2": "A job takes hours, and the workers do most of its work.",
            },
        )
        # These statements refer to the machine: in the policy of its role they would be a dependency cycle.
        statements = [
            iam.PolicyStatement(actions=["states:StartExecution"], resources=[machine.state_machine_arn]),
            iam.PolicyStatement(
                actions=["states:DescribeExecution", "states:StopExecution"],
                resources=[self._part_arn(machine, "execution", ":*")],
            ),
        ]
        children = iam.ManagedPolicy(self, "ChildrenPolicy", roles=[machine.role], statements=statements)
        acknowledge_wildcards(
            children,
            [each.to_statement_json() for each in statements],
            "The names of child executions are not known at deployment.",
        )
        return machine

    def _add_schedules(self, schedules: Sequence[JobSchedule], function: lambda_.IFunction) -> None:
        """Create jobs on a schedule. A scheduled time that is delivered twice creates only one job."""
        role = scheduler_role(self, "SchedulesRole", function=function, undelivered=self.undelivered)
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
                    dead_letter_queue=self.undelivered,
                    # CDK's `LambdaInvoke` target would also allow the function's versions.
                    role=role.without_policy_updates(),
                ),
            )

    def _add_triggers(self, functions: Mapping[str, lambda_.IFunction]) -> None:
        """Call functions each minute, and when a job changes, an execution ends or a manifest arrives."""
        every = events.Schedule.rate(cdk.Duration.seconds(SCHEDULE_SECONDS))
        events.Rule(self, "EveryMinute", schedule=every, targets=[self._to(functions["schedule"])])
        patterns = {
            "JobChanges": (events.EventPattern(source=[batch_names.EVENT_SOURCE]), "schedule"),
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
                        "object": {
                            "key": [{"prefix": f"{queue.name}/"} for queue in self._configuration.queues]
                        },
                    },
                ),
                "object",
            ),
        }
        for name, (pattern, function) in patterns.items():
            events.Rule(self, name, event_pattern=pattern, targets=[self._to(functions[function])])

    def _to(self, function: lambda_.IFunction) -> targets.LambdaFunction:
        """Return a function as the target of an event rule."""
        return targets.LambdaFunction(
            function,
            retry_attempts=8,
            max_event_age=cdk.Duration.hours(6),
            dead_letter_queue=self.undelivered,
        )
