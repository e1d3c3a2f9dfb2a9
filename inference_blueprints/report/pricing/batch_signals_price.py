"""Price of the metrics, alarms and the dashboard of batch in a month.

A metric is billed for the hours in which it gets a value
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_billing.html). Metrics of jobs get
one when a job ends. So they cost most if in every hour a job of every team ends in every queue.
"""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.figures import CostItem
from inference_blueprints.spec.types import Spec
from inference_catalog import ServicePrices
from inference_contracts import batch_names
from inference_contracts.batch_states import ENDS

#: `SchedulerStopped`, `JobsBroken` and `EventsUndelivered`.
_PLATFORM_ALARMS = 3
#: `Waiting-<queue>`.
_ALARMS_PER_QUEUE = 1
#: `Shards-<model>` and `Dead-<model>`.
_ALARMS_PER_MODEL = 2
_DECIMALS = 2


def batch_signal_items(spec: Spec, services: ServicePrices) -> Iterator[CostItem]:
    """Yield the cost of batch's own signals; nothing without batch.

    spec: The blueprint's section.
    """
    if spec.batch is None:
        return
    metrics, alarms = batch_metrics_at_most(spec), batch_alarms(spec)
    usd = (
        metrics * services.usd("custom_metric")
        + alarms * services.usd("metric_alarm")
        + services.usd("dashboard")
    )
    yield CostItem(
        "metrics and alarms of batch",
        f"{metrics:,} metrics if jobs of every team end in every queue each hour; {alarms} alarms, "
        "1 dashboard",
        round(usd, _DECIMALS),
        is_bound=True,
    )


def batch_metrics_at_most(spec: Spec) -> int:
    """Return how many custom metrics batch writes at most: names times values of their dimensions."""
    if spec.batch is None:
        return 0
    queues, teams = len(spec.batch.queues), len(spec.teams)
    models = len({queue.model for queue in spec.batch.queues})
    by_job = teams + models + teams * models + teams * queues
    return (
        len(batch_names.QUEUE_METRICS) * queues
        + len(batch_names.PLATFORM_METRICS)
        + len(ENDS)
        + len(batch_names.JOB_METRICS) * by_job
        + len(batch_names.WORKER_METRICS) * models
    )


def batch_alarms(spec: Spec) -> int:
    """Return the number of batch's alarms."""
    if spec.batch is None:
        return 0
    models = len({queue.model for queue in spec.batch.queues})
    return _PLATFORM_ALARMS + _ALARMS_PER_QUEUE * len(spec.batch.queues) + _ALARMS_PER_MODEL * models
