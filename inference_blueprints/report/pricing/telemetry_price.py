"""Price of metrics, logs, traces, alarms, dashboards, the canary and the controllers in a month."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.render.eks.prometheus_size import PrometheusSize, ScrapedPods, scraped_series
from inference_blueprints.report.figures import CostItem, ProcessSummary
from inference_blueprints.report.pricing.ecs_price import metrics_task_item
from inference_blueprints.serving.traffic import model_traffic
from inference_blueprints.spec.derived import controllers_of
from inference_blueprints.spec.types import Observability, Spec
from inference_catalog import ServicePrices
from inference_contracts import batch_names, canary_names
from inference_contracts.batch_names import ENDS
from inference_contracts.metric_labels import GPU_SERIES
from inference_contracts.records import dataclass
from inference_contracts.units import GB, HOURS_PER_MONTH, MIB_PER_GIB, MINUTES_PER_MONTH

# Price of the metrics, alarms and the dashboard of batch in a month.
#
# A metric is billed for the hours in which it gets a value
# (https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch_billing.html). Metrics of jobs
# get one when a job ends. So they cost most if in every hour a job of every team ends in every queue.

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


_RUNS_PER_MONTH = 730 * 60


def operations_items(spec: Spec, services: ServicePrices) -> Iterator[CostItem]:
    """Yield the cost of GPU health and the capacity shift; nothing without them.

    Prices of AWS Lambda, Amazon DynamoDB and of alarms are not in the catalogue, so they are left out. Its
    series are part of "metrics in CloudWatch".

    spec: The blueprint's section.
    """
    controllers = controllers_of(spec)
    if not controllers:
        return
    for each in controllers:
        yield CostItem(
            each.title,
            f"{_RUNS_PER_MONTH:,} runs of a function with 1,769 MiB, its table and its alarms, at prices "
            "that are not known",
            None,
        )
    alarms = spec.observability.alarms if spec.observability else None
    if alarms is None or alarms.topic_arn is None:
        yield CostItem("key of the topic of operations", "1 KMS key", services.usd("kms_key"))


_SECONDS_PER_MONTH = MINUTES_PER_MONTH * 60
_PROMETHEUS_PODS = 2
#: Memory of a server that fits beside controllers and routers on a system node.
_FREE_GIB = 4.0
# Where processes run that no pool has: on the system nodes, or as tasks of ECS.
_WITHOUT_POOL = (None, "Fargate")
#: Bytes of a data point as OTLP serializes it: its name (30), up to ten labels (25 each), six attributes of
#: the resource (30 each), time and value (18). What AWS counts:
#: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/metrics-otel-pricing.html
_POINT_BYTES = 480
_CANARY_METRICS = (canary_names.ANSWERED, canary_names.MILLISECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoringSize:
    """What monitors a platform."""

    recorded_series: int
    """Least number of recorded series, which CloudWatch stores."""
    promql_alarms: int
    """Alarms on PromQL."""
    samples_per_minute: int
    """Samples that their evaluations scan in a minute."""
    dashboards: int
    """CloudWatch dashboards."""


def telemetry_items(
    spec: Spec, processes: Sequence[ProcessSummary], size: MonitoringSize, services: ServicePrices
) -> Iterator[CostItem]:
    """Yield the cost of each signal; nothing without observability.

    processes: Figures of the processes, with the replicas that are scraped.
    size: What monitors the platform.
    """
    observability = spec.observability
    if observability is None:
        return
    on_ecs = spec.cluster.ecs is not None
    yield from _metrics(spec, processes, size.recorded_series, services)
    per_gb = f"{services.usd('log_ingestion'):.2f} USD per GB ingested"
    kept = f"kept {observability.logs.retention_days} days"
    writers = "tasks and hosts" if on_ecs else "pods, nodes and the control plane"
    unknown = f"how much {writers} write is not known"
    yield CostItem(f"logs of {writers.replace('the ', '')}", f"{per_gb}, {kept}; {unknown}", None)
    yield from _traces(spec, observability, services)
    yield _promql_alarms(size, services)
    usd = round(size.dashboards * services.usd("dashboard"), _DECIMALS)
    yield CostItem("dashboards", f"{size.dashboards}, without the free ones of the account", usd)
    yield from _canary(spec, observability, services)
    if on_ecs:
        yield metrics_task_item(HOURS_PER_MONTH)
    else:
        yield _prometheus(processes)


def process_series(processes: Sequence[ProcessSummary]) -> int:
    """Return how many series Prometheus has of processes at their largest numbers.

    processes: Figures of the processes.
    """
    by_deployment: dict[tuple[str, str], list[ProcessSummary]] = {}
    for each in processes:
        by_deployment.setdefault((each.model, each.deployment), []).append(each)
    return scraped_series(
        ScrapedPods(
            workers=sum(each.replicas for each in own if each.pool not in _WITHOUT_POOL),
            frontends=sum(each.replicas for each in own if each.pool in _WITHOUT_POOL),
            accelerators=sum(each.replicas * each.accelerators for each in own),
        )
        for own in by_deployment.values()
    )


def _prometheus(processes: Sequence[ProcessSummary]) -> CostItem:
    """Return the cost of the servers, which are free while they fit beside the rest of the system nodes."""
    size = PrometheusSize(process_series(processes))
    gib = size.memory_mib / MIB_PER_GIB
    said = f"{_PROMETHEUS_PODS} pods of {gib:g} GiB for up to {size.series:,} series, on the system nodes"
    if gib <= _FREE_GIB:
        return CostItem("Prometheus", f"{said}; no further node", 0.0)
    return CostItem("Prometheus", f"{said}, of which there may be up to {_PROMETHEUS_PODS} more", None)


def _promql_alarms(size: MonitoringSize, services: ServicePrices) -> CostItem:
    samples = size.samples_per_minute * MINUTES_PER_MONTH
    alarm, sample = services.usd("metric_alarm"), services.usd("promql_sample")
    assumption = (
        f"{size.promql_alarms} alarms at {alarm:.2f} USD, and {samples / 1e6:,.1f} million samples that they "
        f"scan at {sample * 1e6:.2f} USD per million"
    )
    usd = round(size.promql_alarms * alarm + samples * sample, _DECIMALS)
    return CostItem("PromQL alarms", assumption, usd)


def _metrics(
    spec: Spec, processes: Sequence[ProcessSummary], recorded_series: int, services: ServicePrices
) -> Iterator[CostItem]:
    """Yield the cost of what agents send: recorded series, and those of GPUs that something asks for."""
    gpus = 0
    for pool in spec.pools:
        if any(each.accelerator and each.accelerator.manufacturer == "nvidia" for each in pool.types):
            used = sum(each.replicas * each.accelerators for each in processes if each.pool == pool.name)
            # Models that share a pool by the hour never have their largest numbers of workers together.
            has = pool.nodes.max * max(each.device_count for each in pool.types)
            gpus += used if pool.shared is None else min(used, has)
    points = (recorded_series + gpus * len(GPU_SERIES)) * MINUTES_PER_MONTH
    per_gb = services.usd("otel_metrics")
    assumption = (
        f"{recorded_series:,} recorded series, and {len(GPU_SERIES)} of each of {gpus:,} GPUs: "
        f"{points / 1e6:,.0f} million data points of about {_POINT_BYTES} bytes, at {per_gb:.2f} USD per GB"
    )
    usd = round(points * _POINT_BYTES / GB * per_gb, _DECIMALS)
    yield CostItem("metrics in CloudWatch", assumption, usd)
    if not spec.cluster.ecs:
        yield CostItem(
            "Container Insights",
            f"its metrics of nodes and pods, at {per_gb:.2f} USD per GB; how much it sends is not known",
            None,
        )


def _traces(spec: Spec, observability: Observability, services: ServicePrices) -> Iterator[CostItem]:
    """Yield the most that traces can cost: the peak all month, without the free ones."""
    if observability.traces is None:
        return
    peak = sum(model_traffic(spec, model).requests_per_second for model in spec.models)
    recorded = peak * _SECONDS_PER_MONTH * observability.traces.sample_ratio
    usd = round(recorded * services.usd("trace"), _DECIMALS)
    assumption = f"{recorded / 1e6:,.2f} million in X-Ray, if the peak lasted all month"
    yield CostItem("traces", assumption, usd, is_bound=True)


def _canary(spec: Spec, observability: Observability, services: ServicePrices) -> Iterator[CostItem]:
    """Yield the most that the canary can cost: no model answers, and each question waits to its end."""
    if observability.canary is None:
        return
    models = sum(not model.may_have_no_worker for model in spec.models)
    rounds = MINUTES_PER_MONTH / observability.canary.every_minutes
    seconds = models * canary_names.ANSWER_SECONDS
    # Lambda's price list calls a GiB a GB.
    used = rounds * seconds * canary_names.MEMORY_MIB / MIB_PER_GIB
    function = rounds * services.usd("function_arm_request") + used * services.usd("function_arm_duration")
    assumption = f"{rounds:,.0f} calls, {seconds:,} s each if no model answers"
    yield CostItem("canary", assumption, round(function, _DECIMALS), is_bound=True)
    metrics = models * len(_CANARY_METRICS)
    usd = round(metrics * services.usd("custom_metric") + models * services.usd("metric_alarm"), _DECIMALS)
    yield CostItem("metrics and alarms of the canary", f"{metrics} metrics, {models} alarms", usd)
