"""The dashboard and the alarms of batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from inference_blueprints.contracts import batch_names
from inference_blueprints.contracts.batch_states import ENDS
from inference_constructs.batch.batch_metrics import BatchMetrics
from inference_constructs.batch.batch_shard_queue import BatchShardQueue

_WIDTH, _HEIGHT = 12, 6
_HOUR_SECONDS = 3600
# Part of its time that a job may wait away before somebody looks.
_WAITED_PERCENT = 80
_MISSING_IS_WELL = cloudwatch.TreatMissingData.NOT_BREACHING
_MISSING_IS_BAD = cloudwatch.TreatMissingData.BREACHING


@dataclass(frozen=True)
class MonitoredQueue:
    """A queue of jobs.

    Parameters
    ----------
    name, model
        Its name, and which model answers it.
    deadline_hours
        Until when its jobs must be finished.
    """

    name: str
    model: str
    deadline_hours: float


class BatchMonitoring(Construct):
    """A dashboard and alarms. The alarms have no actions: whom they tell is the account's business.

    Parameters
    ----------
    platform
        `metadata.name`.
    queues
        The queues.
    teams
        Names of teams.
    functions
        The functions by name.
    state_machine
        Runs the jobs.
    shard_queues
        Shards that wait for workers, by model.
    api
        The API.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        platform: str,
        queues: Sequence[MonitoredQueue],
        teams: Sequence[str],
        functions: Mapping[str, lambda_.IFunction],
        state_machine: sfn.IStateMachine,
        shard_queues: Mapping[str, BatchShardQueue],
        api: apigateway.RestApi,
    ) -> None:
        super().__init__(scope, construct_id)
        self._metrics = BatchMetrics(platform)
        self._queues = queues
        self._shard_queues = shard_queues
        alarms = self._add_alarms()
        rows: list[list[cloudwatch.IWidget]] = [
            [
                cloudwatch.AlarmStatusWidget(
                    alarms=alarms, title="Alarms", width=2 * _WIDTH, height=_HEIGHT // 2
                )
            ],
            self._jobs(),
            [self._waiting(), self._money(teams)],
            *self._shards(),
            self._workers(),
            self._machinery(functions, state_machine, api),
        ]
        cloudwatch.Dashboard(self, "Dashboard", default_interval=cdk.Duration.days(1), widgets=rows)

    def _add_alarms(self) -> list[cloudwatch.Alarm]:
        """Add what somebody has to look at."""
        alarms = [
            self._alarm(
                "SchedulerStopped",
                self._metrics.metric_platform(batch_names.SCHEDULER_RUNS),
                "No job is let in: the function `schedule` does not run, or fails.",
                below=1,
                periods=2,
                missing=_MISSING_IS_BAD,
            ),
            self._alarm(
                "JobsBroken",
                self._metrics.metric_platform(batch_names.JOBS_BROKEN),
                "A job failed with internal_error: something outside it broke.",
                above=0,
            ),
        ]
        for queue in self._queues:
            metric = self._metrics.metric_queue(batch_names.WAITED_PERCENT, queue.name)
            description = f"A job of {queue.name} has waited {_WAITED_PERCENT} % of its time away."
            alarms.append(
                self._alarm(f"Waiting-{queue.name}", metric, description, above=_WAITED_PERCENT, periods=3)
            )
        for model, shards in self._shard_queues.items():
            hours = min(queue.deadline_hours for queue in self._queues if queue.model == model)
            age = shards.metric_oldest_shard_age()
            description = f"A shard of {model} is older than the {hours:g} h that its job may have."
            alarms.append(self._alarm(f"Shards-{model}", age, description, above=hours * _HOUR_SECONDS))
            description = f"Shards of {model} ended every worker that took them."
            alarms.append(self._alarm(f"Dead-{model}", shards.metric_dead_shards(), description, above=0))
        return alarms

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        description: str,
        *,
        above: float | None = None,
        below: int = 0,
        periods: int = 1,
        missing: cloudwatch.TreatMissingData = _MISSING_IS_WELL,
    ) -> cloudwatch.Alarm:
        """Add an alarm on figures above a threshold, or below one."""
        operators = cloudwatch.ComparisonOperator
        return cloudwatch.Alarm(
            self,
            name,
            alarm_description=description,
            comparison_operator=(
                operators.LESS_THAN_THRESHOLD if above is None else operators.GREATER_THAN_THRESHOLD
            ),
            evaluation_periods=periods,
            metric=metric,
            threshold=below if above is None else above,
            treat_missing_data=missing,
        )

    def _jobs(self) -> list[cloudwatch.IWidget]:
        """Return jobs by what they do, and by how they ended."""
        metrics = self._metrics
        names = [queue.name for queue in self._queues]
        return [
            *(
                _graph(f"Jobs {title}", [metrics.metric_queue(metric, name) for name in names], width=6)
                for title, metric in (
                    ("waiting", batch_names.JOBS_WAITING),
                    ("running", batch_names.JOBS_RUNNING),
                )
            ),
            _graph(
                "Jobs ending",
                [metrics.metric_queue(batch_names.JOBS_ENDING, name) for name in names],
                width=6,
            ),
            _graph("Jobs ended", [metrics.metric_jobs_ended(state) for state in ENDS], width=6),
        ]

    def _waiting(self) -> cloudwatch.IWidget:
        """Return how long the oldest job waits, against its deadline."""
        names = [queue.name for queue in self._queues]
        return _graph(
            "Longest wait: seconds, and percent of the job's time",
            [self._metrics.metric_queue(batch_names.OLDEST_WAITING_SECONDS, name) for name in names],
            [self._metrics.metric_queue(batch_names.WAITED_PERCENT, name) for name in names],
        )

    def _money(self, teams: Sequence[str]) -> cloudwatch.IWidget:
        """Return what ended, in dollars."""
        return _graph(
            "Cost of jobs that ended, USD", [self._metrics.metric_team_cost(team) for team in teams]
        )

    def _shards(self) -> list[list[cloudwatch.IWidget]]:
        """Return what waits for workers, and what was put aside."""
        backlog = [
            metric
            for queue in self._shard_queues.values()
            for metric in (queue.metric_waiting_shards(), queue.metric_shards_in_progress())
        ]
        ages = [queue.metric_oldest_shard_age(label=model) for model, queue in self._shard_queues.items()]
        dead = [queue.metric_dead_shards() for queue in self._shard_queues.values()]
        return [
            [
                _graph("Shards that wait and that are in work", backlog, width=8),
                _graph("Oldest shard, seconds", ages, width=8),
                _graph("Shards put aside", dead, width=8),
            ]
        ]

    def _workers(self) -> list[cloudwatch.IWidget]:
        """Return what workers send, have in flight and are refused, and the tokens of jobs that ended."""
        metrics = self._metrics
        models = list(self._shard_queues)

        def each(*names: str) -> list[cloudwatch.IMetric]:
            return [metrics.metric_workers(name, model) for model in models for name in names]

        def mean(*names: str) -> list[cloudwatch.IMetric]:
            return [metrics.metric_workers(name, model, "Average") for model in models for name in names]

        rates = [
            metrics.metric_workers_per_second(name, model)
            for model in models
            for name in (batch_names.REQUESTS, batch_names.ROWS)
        ]
        tokens = [
            metrics.metric_model(name, m)
            for m in models
            for name in (batch_names.INPUT_TOKENS, batch_names.OUTPUT_TOKENS)
        ]
        return [
            _graph("Requests and answers a second", rates, width=6),
            _graph(
                "In flight and its limit, a worker",
                mean(batch_names.IN_FLIGHT, batch_names.IN_FLIGHT_LIMIT),
                width=6,
            ),
            _graph(
                "Refused, not reached, broken",
                each(batch_names.REFUSED, batch_names.UNAVAILABLE, batch_names.BROKEN),
                width=6,
            ),
            _graph("Tokens of jobs that ended", tokens, width=6),
        ]

    def _machinery(
        self,
        functions: Mapping[str, lambda_.IFunction],
        machine: sfn.IStateMachine,
        api: apigateway.RestApi,
    ) -> list[cloudwatch.IWidget]:
        """Return what fails of the platform itself."""
        errors = [each.metric_errors(label=name) for name, each in functions.items()]
        throttles = [each.metric_throttles(label=f"{name} throttled") for name, each in functions.items()]
        return [
            _graph("Functions' errors, and calls that were throttled", errors, throttles),
            _graph(
                "Executions that did not succeed",
                [machine.metric_failed(), machine.metric_timed_out(), machine.metric_aborted()],
                width=6,
            ),
            _graph(
                "API",
                [api.metric_count(), api.metric_client_error(), api.metric_server_error()],
                width=6,
            ),
        ]


def _graph(
    title: str,
    left: Sequence[cloudwatch.IMetric],
    right: Sequence[cloudwatch.IMetric] = (),
    *,
    width: int = _WIDTH,
) -> cloudwatch.IWidget:
    """Return a graph that begins at zero."""
    axis = cloudwatch.YAxisProps(min=0)
    return cloudwatch.GraphWidget(
        title=title,
        left=list(left),
        right=list(right),
        left_y_axis=axis,
        right_y_axis=axis,
        width=width,
        height=_HEIGHT,
    )
