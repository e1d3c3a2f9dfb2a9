"""PromQL expressions for the load of a role, with one number for all its workers.

Dynamo. The series are those of the frontends of ai-dynamo 1.6.1, read from two live frontends with
``--router-replica-sync``. Each frontend counts its own requests (``dynamo_frontend_inflight_requests``,
``_queued_requests`` until the first token), so their sum is the load. With KV-aware routing, each frontend
reports the load of every worker as all frontends together cause it (``dynamo_frontend_worker_active_*``), so
their maximum is the load, and a sum would count it once per frontend. These two series have no entry of a
worker that left (``lib/llm/src/discovery/worker_monitor.rs``). Their label ``worker_type`` is ``decode`` also
for workers of both phases. The blocks are those of prompts: the router does not count generated tokens
(``--router-track-output-blocks`` is off).

llm-d and ``direct``. The series are those of the engine's own server, from the workers (`OwnServer`).
``vllm:kv_cache_usage_perc`` is the share that running requests hold; cached blocks without a request count as
free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from inference_blueprints.serving.engines.own_server import OwnServer
from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EngineSettings, Role
from inference_blueprints.spec.types import LoadMetric

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


def _latency(series: str) -> str:
    """90th percentile in milliseconds; 0 without requests, for which Prometheus has no percentile."""
    buckets = f"sum by (le) (rate({series}[{_LATENCY_WINDOW}]))"
    return f"1000 * ((histogram_quantile(0.9, {buckets}) >= 0) or 0 * sum({series}))"


def _dynamo_latency(measured: MeasuredWorkers) -> str:
    return _latency(f"dynamo_frontend_time_to_first_token_seconds_bucket{measured.of_frontends()}")


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
    return _latency(f"{_server(measured).latency}_bucket{measured.of_workers()}")


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
