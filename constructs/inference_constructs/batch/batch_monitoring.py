"""The dashboard and alarms of batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_apigateway as apigateway
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from inference_constructs.batch.batch_metrics import BatchMetrics
from inference_constructs.batch.batch_shard_queue import BatchShardQueue
from inference_contracts import batch_names
from inference_contracts.batch_configuration import Configuration
from inference_contracts.batch_names import ENDS
from inference_contracts.units import SECONDS_PER_HOUR

_WIDTH, _HEIGHT = 12, 6
_RUNBOOK = "docs/batch-runbook.md#dashboard-alarms-and-metrics"
# A job that has waited longer than this percentage of the time until its deadline raises an alarm.
_WAITED_PERCENT = 80
_MISSING_IS_WELL = cloudwatch.TreatMissingData.NOT_BREACHING
_MISSING_IS_BAD = cloudwatch.TreatMissingData.BREACHING


class BatchMonitoring(Construct):
    """A dashboard and alarms. The alarms have no actions: each account decides who is notified.

    Parameters
    ----------
    configuration
        Queues and teams.
    functions
        The functions by name.
    state_machine
        The state machine that runs jobs.
    shard_queues
        The queue of shards of each model.
    api
        The batch API.
    undelivered
        Queue of events that no function took.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        configuration: Configuration,
        functions: Mapping[str, lambda_.IFunction],
        state_machine: sfn.IStateMachine,
        shard_queues: Mapping[str, BatchShardQueue],
        api: apigateway.RestApi,
        undelivered: sqs.IQueue,
    ) -> None:
        super().__init__(scope, construct_id)
        self._metrics = BatchMetrics(configuration.platform)
        self._configuration = configuration
        self._shard_queues = shard_queues
        alarms = [*self._add_alarms(), self._add_alarm_of_events(undelivered)]
        rows: list[list[cloudwatch.IWidget]] = [
            [
                cloudwatch.AlarmStatusWidget(
                    alarms=alarms, title="Alarms", width=2 * _WIDTH, height=_HEIGHT // 2
                )
            ],
            self._jobs(),
            [self._waiting(), self._money()],
            *self._shards(),
            self._workers(),
            self._machinery(functions, state_machine, api),
        ]
        cloudwatch.Dashboard(self, "Dashboard", default_interval=cdk.Duration.days(1), widgets=rows)

    def _add_alarms(self) -> list[cloudwatch.Alarm]:
        """Add alarms for conditions that need an operator."""
        alarms = [
            self._alarm(
                "SchedulerStopped",
                self._metrics.metric_platform(batch_names.SCHEDULER_RUNS),
                "No jobs are started: the function `schedule` does not run, or fails.",
                below=1,
                periods=2,
                missing=_MISSING_IS_BAD,
            ),
            self._alarm(
                "JobsBroken",
                self._metrics.metric_platform(batch_names.JOBS_BROKEN),
                "A job failed with internal_error: the cause is outside the job.",
                above=0,
            ),
        ]
        for queue in self._configuration.queues:
            metric = self._metrics.metric_queue(batch_names.WAITED_PERCENT, queue.name)
            description = f"A job in {queue.name} has waited for over {_WAITED_PERCENT} % of its time."
            alarms.append(
                self._alarm(f"Waiting-{queue.name}", metric, description, above=_WAITED_PERCENT, periods=3)
            )
        for model, shards in self._shard_queues.items():
            hours = self._configuration.shortest_deadline(model)
            age = shards.metric_oldest_shard_age()
            description = f"A shard of {model} is older than its shortest deadline, {hours:g} h."
            alarms.append(self._alarm(f"Shards-{model}", age, description, above=hours * SECONDS_PER_HOUR))
            description = f"Shards of {model} are in the dead-letter queue: no worker completed them."
            alarms.append(self._alarm(f"Dead-{model}", shards.metric_dead_shards(), description, above=0))
        return alarms

    def _add_alarm_of_events(self, undelivered: sqs.IQueue) -> cloudwatch.Alarm:
        metric = undelivered.metric_approximate_number_of_messages_visible(
            period=cdk.Duration.minutes(5), statistic="Maximum"
        )
        description = "An event did not reach its function: a manifest or a schedule may have no job."
        return self._alarm("EventsUndelivered", metric, description, above=0)

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
        """Add an alarm for values above or below a threshold."""
        operators = cloudwatch.ComparisonOperator
        return cloudwatch.Alarm(
            self,
            name,
            alarm_description=f"{description} Runbook: {_RUNBOOK}",
            comparison_operator=(
                operators.LESS_THAN_THRESHOLD if above is None else operators.GREATER_THAN_THRESHOLD
            ),
            evaluation_periods=periods,
            metric=metric,
            threshold=below if above is None else above,
            treat_missing_data=missing,
        )

    def _jobs(self) -> list[cloudwatch.IWidget]:
        """Return graphs of jobs by state."""
        metrics = self._metrics
        names = [queue.name for queue in self._configuration.queues]
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
        """Return a graph of the longest wait, and its share of the time until the deadline."""
        names = [queue.name for queue in self._configuration.queues]
        return _graph(
            "Longest wait, seconds (left) and % of the time until the deadline (right)",
            [self._metrics.metric_queue(batch_names.OLDEST_WAITING_SECONDS, name) for name in names],
            [self._metrics.metric_queue(batch_names.WAITED_PERCENT, name) for name in names],
        )

    def _money(self) -> cloudwatch.IWidget:
        """Return a graph of the cost of ended jobs."""
        return _graph(
            "Cost of ended jobs, USD",
            [self._metrics.metric_team_cost(team.name) for team in self._configuration.teams],
        )

    def _shards(self) -> list[list[cloudwatch.IWidget]]:
        """Return graphs of the shard queues and their dead-letter queues."""
        backlog = [
            metric
            for queue in self._shard_queues.values()
            for metric in (queue.metric_waiting_shards(), queue.metric_shards_in_progress())
        ]
        ages = [queue.metric_oldest_shard_age(label=model) for model, queue in self._shard_queues.items()]
        dead = [queue.metric_dead_shards() for queue in self._shard_queues.values()]
        return [
            [
                _graph("Shards waiting and in progress", backlog, width=8),
                _graph("Age of the oldest shard, seconds", ages, width=8),
                _graph("Shards in the dead-letter queue", dead, width=8),
            ]
        ]

    def _workers(self) -> list[cloudwatch.IWidget]:
        """Return graphs of the workers' requests and errors, and of the tokens of ended jobs."""
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
            _graph("Requests and answers per second", rates, width=6),
            _graph(
                "Requests in flight and their limit, mean per worker",
                mean(batch_names.IN_FLIGHT, batch_names.IN_FLIGHT_LIMIT),
                width=6,
            ),
            _graph(
                "Requests that were refused, unavailable or broken",
                each(batch_names.REFUSED, batch_names.UNAVAILABLE, batch_names.BROKEN),
                width=6,
            ),
            _graph("Tokens of ended jobs", tokens, width=6),
        ]

    def _machinery(
        self,
        functions: Mapping[str, lambda_.IFunction],
        machine: sfn.IStateMachine,
        api: apigateway.RestApi,
    ) -> list[cloudwatch.IWidget]:
        """Return graphs of errors of the functions, the state machine and the API."""
        errors = [each.metric_errors(label=name) for name, each in functions.items()]
        throttles = [each.metric_throttles(label=f"{name} throttled") for name, each in functions.items()]
        return [
            _graph("Function errors (left) and throttled calls (right)", errors, throttles),
            _graph(
                "Unsuccessful executions",
                [machine.metric_failed(), machine.metric_timed_out(), machine.metric_aborted()],
                width=6,
            ),
            _graph(
                "API requests and errors",
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
    """Return a graph whose axes start at zero."""
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
