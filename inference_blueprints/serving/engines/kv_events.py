"""Events that a worker publishes about its KV cache, for Dynamo's router."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import EnginePort

_PORT = 20080
#: Settings of the publisher. Engines bind to every address if the host is "*". Dynamo's publisher in the same
#: pod connects over loopback.
KV_EVENTS: Mapping[str, str] = MappingProxyType(
    {"publisher": "zmq", "topic": "kv-events", "endpoint": f"tcp://*:{_PORT}"}
)


def publisher_settings(name: str, port: int) -> dict[str, str | bool]:
    """Return the settings of a worker that publishes its cache events.

    name: Name under which subscribers find them.
    port: Port of the publisher.
    """
    return {
        "enable_kv_cache_events": True,
        "publisher": "zmq",
        "endpoint": f"tcp://*:{port}",
        "topic": name,
    }


def event_ports(resolved: ResolvedWorkers) -> tuple[EnginePort, ...]:
    """Return the ports of the publishers, one per data parallel rank (vLLM: ``offset_endpoint_port``)."""
    if not resolved.publishes_kv_events:
        return ()
    ranks = resolved.data_parallel_size
    return (EnginePort("kv-events", _PORT, argument="kv-events-config", count=ranks),)
