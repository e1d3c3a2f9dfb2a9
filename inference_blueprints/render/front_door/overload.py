"""What Envoy does before its memory or its connections run out.

https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/operations/overload_manager/overload_manager
"""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document

_MIB: Final = 1024 * 1024
#: Part of a replica's memory that Envoy's allocator may take. The rest is the policy's, and that of the
#: programs in Lua, which the allocator does not count: as much again while they copy large bodies.
_SHARE: Final = 0.4
#: Connections of callers of one replica. Each stream takes one.
MOST_CONNECTIONS: Final = 20_000
_HEAP: Final = "envoy.resource_monitors.fixed_heap"


def overload_manager(memory_mib: int) -> Document:
    """Return the limits and what happens at them.

    Envoy can also end the streams that hold most memory, but with HTTP/2 only.

    memory_mib: Memory of one replica.
    """
    return {
        "refresh_interval": "0.25s",
        "resource_monitors": [
            parts.extension(
                _HEAP,
                "resource_monitors.fixed_heap.v3.FixedHeapConfig",
                max_heap_size_bytes=int(memory_mib * _MIB * _SHARE),
            ),
            parts.extension(
                "envoy.resource_monitors.global_downstream_max_connections",
                "resource_monitors.downstream_connections.v3.DownstreamConnectionsConfig",
                max_active_downstream_connections=MOST_CONNECTIONS,
            ),
        ],
        "actions": [
            _action("shrink_heap", 0.8),
            _action("disable_http_keepalive", 0.9),
            _action("stop_accepting_requests", 0.95),
        ],
    }


def _action(name: str, threshold: float) -> Document:
    trigger = {"name": _HEAP, "threshold": {"value": threshold}}
    return {"name": f"envoy.overload_actions.{name}", "triggers": [trigger]}
