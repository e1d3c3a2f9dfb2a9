"""Price of metrics, logs and traces in a month.

CloudWatch bills OTel metrics by the bytes of their data points
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/metrics-otel-pricing.html). The price of a GB
is in no document that the catalogue could read, so the plan shows series and data points, and no price.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from inference_blueprints.catalog import ServicePrices
from inference_blueprints.catalog.catalogue import shipped
from inference_blueprints.figures import CostItem, ProcessSummary
from inference_blueprints.spec.types import Observability, Spec

_MINUTES_PER_MONTH = 730 * 60
_SECONDS_PER_MONTH = _MINUTES_PER_MONTH * 60
_PROMETHEUS_PODS = 2
_DECIMALS = 2


def telemetry_items(
    spec: Spec, processes: Sequence[ProcessSummary], recorded_series: int, services: ServicePrices
) -> Iterator[CostItem]:
    """Yield the cost of each signal; nothing without observability.

    Parameters
    ----------
    processes
        Figures of the processes, with the replicas that are scraped.
    recorded_series
        Least number of recorded series, which CloudWatch stores.
    services
        Prices of services.
    """
    observability = spec.observability
    if observability is None:
        return
    yield _metrics(spec, processes, recorded_series)
    per_gb = f"{services.usd('log_ingestion'):.2f} USD per GB ingested"
    kept = f"kept {observability.logs.retention_days} days"
    yield CostItem("logs of pods, nodes and control plane", f"{per_gb}, {kept}", None)
    yield from _traces(spec, observability, services)
    yield CostItem("Prometheus", f"{_PROMETHEUS_PODS} pods on the system nodes; no further node", 0.0)


def serving_series(spec: Spec, processes: Sequence[ProcessSummary]) -> tuple[int, tuple[str, ...]]:
    """Return how many series serving pods have after dropping, and the models whose engine is not counted.

    Parameters
    ----------
    processes
        Figures of the processes.
    """
    counted = shipped().serving_metrics.series
    engines = {model.name: model.engine.chosen for model in spec.models}
    dynamo = {model.name for model in spec.models if model.stack.chosen == "dynamo"}
    total = 0
    for model, engine in engines.items():
        own = [each for each in processes if each.model == model]
        workers = sum(each.replicas for each in own if each.pool)
        frontends = sum(each.replicas for each in own if not each.pool)
        if model in dynamo:
            total += frontends * (
                counted["dynamo_frontend"] + workers * counted["dynamo_frontend_per_worker"]
            )
        if engine == "vllm":
            total += workers * counted["vllm_worker"]
    unknown = tuple(name for name, engine in engines.items() if engine != "vllm" or name not in dynamo)
    return total, unknown


def _metrics(spec: Spec, processes: Sequence[ProcessSummary], recorded_series: int) -> CostItem:
    series, unknown = serving_series(spec, processes)
    points = (series + recorded_series) * _MINUTES_PER_MONTH / 1e6
    more = f", and those of {', '.join(unknown)}, not counted" if unknown else ""
    assumption = (
        f"{series:,} series of serving pods{more}; {recorded_series:,} recorded series; "
        f"{points:,.0f} million data points, billed by the GB at a price that is not known; "
        "series of nodes and GPUs come on top"
    )
    return CostItem("metrics in CloudWatch", assumption, None)


def _traces(spec: Spec, observability: Observability, services: ServicePrices) -> Iterator[CostItem]:
    """Yield the most that traces can cost: the peak all month, without the free ones."""
    if observability.traces is None:
        return
    peak = sum(model.workload.peak_requests_per_second for model in spec.models)
    recorded = peak * _SECONDS_PER_MONTH * observability.traces.sample_ratio
    usd = round(recorded * services.usd("trace"), _DECIMALS)
    assumption = f"{recorded / 1e6:,.2f} million in X-Ray, if the peak lasted all month"
    yield CostItem("traces", assumption, usd, is_bound=True)
