"""Adds to planned processes how they scale: triggers with computed targets, floors, and the pace."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from inference_blueprints.serving.engines.serving_engine import OwnServer
from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.scaling.worker_load import (
    Headroom,
    WorkerLoad,
    headroom,
    without_reserve,
    worker_load,
)
from inference_blueprints.serving.types import (
    EngineSettings,
    Process,
    ReplicaFloor,
    Role,
    ScaleTrigger,
    Scaling,
)
from inference_blueprints.spec.sections.pools.shared import shares
from inference_blueprints.spec.types import FIRST_TOKEN, LoadMetric, LoadScaling, tail_objective
from inference_catalog.node_facts import BATCH_PRIORITY_CLASS, REAL_TIME_PRIORITY_CLASS
from inference_contracts.number_text import number
from inference_contracts.records import dataclass

# PromQL expressions for the load of a role, with one number for all its workers.
#
# Dynamo. The series are those of the frontends of ai-dynamo 1.6.1, read from two live frontends with
# ``--router-replica-sync``. Each frontend counts its own requests (``dynamo_frontend_inflight_requests``,
# ``_queued_requests`` until the first token), so their sum is the load. With KV-aware routing, each frontend
# reports the load of every worker as all frontends together cause it (``dynamo_frontend_worker_active_*``),
# so their maximum is the load, and a sum would count it once per frontend. These two series have no entry of
# a worker that left (``lib/llm/src/discovery/worker_monitor.rs``). Their label ``worker_type`` is ``decode``
# also for workers of both phases. The blocks are those of prompts: the router does not count generated tokens
# (``--router-track-output-blocks`` is off).
#
# llm-d and ``direct``. The series are those of the engine's own server, from the workers (`OwnServer`).
# ``vllm:kv_cache_usage_perc`` is the share that running requests hold; cached blocks without a request count
# as free.

#: Window of latencies: long enough for a percentile, short enough to follow a ramp.
_LATENCY_WINDOW = "2m"


@dataclass(frozen=True, slots=True)
class MeasuredWorkers:
    """The workers of a role whose load is measured."""

    resolved: ResolvedWorkers
    role: Role
    """Their role in the plan."""
    settings: EngineSettings
    """Sizes of their engine."""
    request_tokens: float
    """Prompt tokens of a mean request that no other request shares."""

    def of_workers(self) -> str:
        """Return the selector of series that the role's workers report."""
        return f'{{release="{self.resolved.release}",role="{self.role}"}}'

    def of_frontends(self, extra: str = "") -> str:
        """Return the selector of series that the release's frontends report."""
        return f'{{release="{self.resolved.release}",role="frontend"{extra}}}'


def load_query(measured: MeasuredWorkers, signal: LoadMetric) -> str:
    """Return the expression for a load of a role."""
    return _QUERIES[measured.resolved.model.stack.chosen, signal](measured)


def requests_in_flight(measured: MeasuredWorkers) -> str:
    """Return the expression for the requests that a role has accepted and not finished.

    It uses neither the router's count of tokens nor a mean length of prompts. Frontends count a request until
    its last token, and, for prefill workers, until its first. Engines' own servers count their own.
    """
    if measured.resolved.model.stack.dynamo is None:
        workers, server = measured.of_workers(), _server(measured)
        return f"sum({server.running}{workers} + {server.waiting}{workers})"
    if measured.role == "prefill":
        return _dynamo_queue(measured)
    return f"sum(dynamo_frontend_inflight_requests{measured.of_frontends()})"


def _dynamo_tokens(measured: MeasuredWorkers) -> str:
    """Prompt tokens of running and waiting requests.

    Without KV-aware routing the router does not count them: requests in flight times their mean length.
    """
    if measured.resolved.model.routing.chosen != "kvAware":
        return f"{measured.request_tokens:.0f} * {requests_in_flight(measured)}"
    kind = "prefill" if measured.role == "prefill" else "decode"
    series = measured.of_frontends(f',worker_type="{kind}"')
    waiting = f"sum(dynamo_frontend_router_queue_pending_isl_tokens{series})"
    if measured.role == "prefill":
        held = f"sum(max by (worker_id, dp_rank) (dynamo_frontend_worker_active_prefill_tokens{series}))"
    else:
        blocks = f"sum(max by (worker_id, dp_rank) (dynamo_frontend_worker_active_decode_blocks{series}))"
        held = f"{measured.settings.block_size} * {blocks}"
    return f"{held} + ({waiting} or vector(0))"


def _dynamo_queue(measured: MeasuredWorkers) -> str:
    return f"sum(dynamo_frontend_queued_requests{measured.of_frontends()})"


def _latency(series: str, measured: MeasuredWorkers) -> str:
    """Percentile in milliseconds; 0 without requests, for which Prometheus has no percentile."""
    objective = tail_objective(measured.resolved.model.objectives.stated, FIRST_TOKEN)
    quantile = (90.0 if objective is None else objective.percentile) / 100.0
    buckets = f"sum by (le) (rate({series}[{_LATENCY_WINDOW}]))"
    return f"1000 * ((histogram_quantile({quantile:g}, {buckets}) >= 0) or 0 * sum({series}))"


def _dynamo_latency(measured: MeasuredWorkers) -> str:
    return _latency(f"dynamo_frontend_time_to_first_token_seconds_bucket{measured.of_frontends()}", measured)


def counts_kv_cache(resolved: ResolvedWorkers) -> bool:
    """Return whether tokens in flight are those in the KV cache, with generated ones and shared prefixes."""
    return resolved.model.stack.dynamo is None and engine_of(resolved).cache_use is not None


def _server(measured: MeasuredWorkers) -> OwnServer:
    server = engine_of(measured.resolved).own_server
    if server is None:
        raise ValueError(f"the engine '{measured.settings.engine}' has no server of its own")
    return server


def _cache_use(measured: MeasuredWorkers) -> str:
    return f"sum({engine_of(measured.resolved).cache_use}{measured.of_workers()})"


def _server_tokens(measured: MeasuredWorkers) -> str:
    """Tokens in the KV cache of running requests, and prompt tokens of waiting ones.

    If the server does not report its cache: requests in flight times the mean length of their prompts.
    """
    if not counts_kv_cache(measured.resolved):
        return f"{measured.request_tokens:.0f} * {requests_in_flight(measured)}"
    settings = measured.settings
    held = f"{settings.kv_blocks * settings.block_size} * {_cache_use(measured)}"
    return f"{held} + {measured.request_tokens:.0f} * {_server_queue(measured)}"


def _server_queue(measured: MeasuredWorkers) -> str:
    return f"sum({_server(measured).waiting}{measured.of_workers()})"


def _server_latency(measured: MeasuredWorkers) -> str:
    return _latency(f"{_server(measured).latency}_bucket{measured.of_workers()}", measured)


_OF_SERVERS: Mapping[LoadMetric, Callable[[MeasuredWorkers], str]] = MappingProxyType(
    {
        "tokensInFlight": _server_tokens,
        "queueLength": _server_queue,
        "kvCacheUse": _cache_use,
        "timeToFirstToken": _server_latency,
    }
)
_QUERIES: Mapping[tuple[str, LoadMetric], Callable[[MeasuredWorkers], str]] = MappingProxyType(
    {
        ("dynamo", "tokensInFlight"): _dynamo_tokens,
        ("dynamo", "queueLength"): _dynamo_queue,
        ("dynamo", "kvCacheUse"): _cache_use,
        ("dynamo", "timeToFirstToken"): _dynamo_latency,
        **{(stack, signal): query for stack in ("llmD", "direct") for signal, query in _OF_SERVERS.items()},
    }
)


_POLLING_SECONDS = 15
_NAMES: dict[LoadMetric, str] = {
    "tokensInFlight": "tokens-in-flight",
    "queueLength": "queue-length",
    "kvCacheUse": "kv-cache-use",
    "timeToFirstToken": "time-to-first-token",
}
#: A fuller cache preempts requests.
_MAX_CACHE_USE = 0.9


def elastic_processes(
    processes: Sequence[Process], roles: tuple[ResolvedWorkers, ...]
) -> tuple[Process, ...]:
    """Return the processes of a deployment, with the scaling of those that are elastic.

    On a pool that models share by the hour, they also get their share of it, and a class for preemption.

    processes: All planned processes of the deployment.
    roles: The workers of all its roles, in the order of their processes.
    """
    workers = [process for process in processes if process.is_worker]
    images = tuple(process.image for process in workers)
    scaled = {
        process.name: replace(
            process, scaling=_scaling(resolved, process, headroom(roles, images, _POLLING_SECONDS))
        )
        for process, resolved in zip(workers, roles, strict=True)
        if resolved.workers.scaled_by is not None and not resolved.workers.is_lent
    }
    if any(resolved.pool.shared is not None for resolved in roles):
        of_roles = shares(roles[0].blueprint.spec)
        for process, resolved in zip(workers, roles, strict=True):
            if resolved.path in of_roles:
                own = scaled.get(process.name, process)
                scaled[process.name] = _shared(own, resolved, of_roles[resolved.path])
    return tuple(scaled.get(process.name, process) for process in processes)


def _shared(process: Process, resolved: ResolvedWorkers, share: int) -> Process:
    """Return a process of a pool that models share by the hour.

    share: Replicas that it has if real time asks for all that it may have.
    """
    return replace(
        process,
        share=share,
        priority_class=BATCH_PRIORITY_CLASS if resolved.workers.is_lent else REAL_TIME_PRIORITY_CLASS,
        lent_most=resolved.workers.maximum if resolved.workers.is_lent else None,
        scaling=replace(process.scaling, ceiling=share) if process.scaling else None,
    )


def _scaling(resolved: ResolvedWorkers, process: Process, reserve: Headroom) -> Scaling:
    scaled_by = resolved.workers.scaled_by
    load = (scaled_by.load if scaled_by else None) or LoadScaling()
    measured = _measured(resolved, process)
    return Scaling(
        least=resolved.workers.minimum,
        most=resolved.workers.maximum,
        triggers=(
            *(_trigger(measured, load, signal, reserve) for signal in _signals(resolved, load, process)),
            _guard(measured, load),
        ),
        floors=tuple(
            ReplicaFloor(start=each.start, end=each.end, time_zone=each.time_zone, replicas=each.replicas)
            for each in load.floors
        ),
        polling_seconds=_POLLING_SECONDS,
        down_stabilization_seconds=load.scale_down_after_seconds,
    )


def _signals(resolved: ResolvedWorkers, load: LoadScaling, process: Process) -> tuple[LoadMetric, ...]:
    """Return the loads that a role scales by: waiting requests if it makes images, which have no tokens.

    Otherwise by default tokens in flight. Workers that do both phases also scale by waiting requests: a burst
    of prompts delays first tokens before it holds many tokens.
    """
    if load.metric:
        return (load.metric,)
    if resolved.model.makes_images:
        return ("queueLength",)
    return ("tokensInFlight", "queueLength") if process.role == "worker" else ("tokensInFlight",)


def _measured(resolved: ResolvedWorkers, process: Process) -> MeasuredWorkers:
    if process.engine is None:
        raise ValueError(f"{process.name}: a worker has no engine")
    workload = resolved.traffic.means
    unshared = workload.input_tokens * (1.0 - workload.shared_prefix_ratio)
    return MeasuredWorkers(resolved, process.role, process.engine, unshared)


def _trigger(
    measured: MeasuredWorkers, load: LoadScaling, signal: LoadMetric, reserve: Headroom
) -> ScaleTrigger:
    target, why = load.target, "Set in the blueprint."
    if target is None:
        target, why = _target(measured, signal, worker_load(measured.resolved), reserve)
    return ScaleTrigger(
        name=_NAMES[signal],
        query=load_query(measured, signal),
        target=target,
        metric_type="Value" if signal == "timeToFirstToken" else "AverageValue",
        why=why,
    )


def _guard(measured: MeasuredWorkers, load: LoadScaling) -> ScaleTrigger:
    """Return the trigger that keeps as many workers as the requests in flight fill.

    The trigger that needs most workers decides, so another load that is measured too small takes none of
    them. It has no reserve, so it decides only then. A user's own target may fill workers beyond what the
    plan thinks of their objectives; then the KV cache is the limit.
    """
    carried = worker_load(measured.resolved)
    requests, reason = carried.requests, carried.reason
    if load.target is not None:
        requests, reason = carried.held, "as its KV cache holds (the blueprint sets the target of its load)"
    target = _rounded(without_reserve(requests))
    why = (
        "A guard, which decides only if the other loads are measured too small: not fewer workers than the "
        f"requests in flight fill. A full worker has {number(requests, 4)} requests, {reason}, and the "
        f"autoscaler acts from 10% above the target: {number(target, 6)} per worker."
    )
    return ScaleTrigger(
        name="requests-in-flight",
        query=requests_in_flight(measured),
        target=target,
        metric_type="AverageValue",
        why=why,
    )


def _target(
    measured: MeasuredWorkers, signal: LoadMetric, load: WorkerLoad, reserve: Headroom
) -> tuple[float, str]:
    """Return the target of a load, and the sentences that explain it."""
    if signal == "timeToFirstToken":
        objective = tail_objective(measured.resolved.model.objectives.stated, FIRST_TOKEN)
        limit = 0.0 if objective is None else objective.limit_ms
        target = _rounded(reserve.target(limit))
        return target, f"The objective is {limit:g} ms. {reserve.reason}: {target:g} ms."
    if signal == "queueLength":
        target = _rounded(reserve.target(load.waiting))
        return target, f"{_capital(load.waiting_reason)}. {reserve.reason}: {number(target, 6)} per worker."
    held = _held_tokens(measured, load)
    carried = f"A worker carries {number(load.requests, 4)} requests, {load.reason}"
    if signal == "kvCacheUse":
        capacity = measured.settings.kv_blocks * measured.settings.block_size
        capacity *= measured.settings.data_parallel_size
        share = min(_MAX_CACHE_USE, held / capacity)
        target = _rounded(reserve.target(share))
        return target, f"{carried}: {share:.0%} of its KV cache. {reserve.reason}: {target:.0%}."
    target = _rounded(reserve.target(held))
    return target, f"{carried}: {held:,.0f} tokens. {reserve.reason}: {target:,.0f} tokens per worker."


def _held_tokens(measured: MeasuredWorkers, load: WorkerLoad) -> float:
    """Return the tokens of the requests that a worker carries, as the query counts them.

    Dynamo's router counts prompts, an engine's cache also the generated half of a mean answer. A shared
    prefix is held once.
    """
    workload = measured.resolved.traffic.means
    of_cache = counts_kv_cache(measured.resolved)
    counts_shared = measured.role != "prefill" and measured.resolved.model.routing.chosen == "kvAware"
    generated = workload.output_tokens / 2.0 if of_cache and measured.role != "prefill" else 0.0
    shared = workload.input_tokens - measured.request_tokens if counts_shared or of_cache else 0.0
    return load.requests * (measured.request_tokens + generated) + shared


def _rounded(value: float) -> float:
    """Round down to two digits, or to a whole number above 100."""
    digits = 0 if value >= 100 else 2  # noqa: PLR2004 -- said above
    step = 10**digits
    return float(max(1, int(value * step)) / step)


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]
