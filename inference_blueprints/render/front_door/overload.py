"""What Envoy does before its memory or its connections run out.

https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/operations/overload_manager/overload_manager
"""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document

_MIB: Final = 1024 * 1024
#: Part of a replica's memory that Envoy may take. The rest is the policy's, and what Envoy's allocator does
#: not count.
_SHARE: Final = 0.6
#: Connections of callers of one replica. Each stream of HTTP/1.1 takes one; a connection takes about 30 KiB.
MOST_CONNECTIONS: Final = 20_000
_HEAP: Final = "envoy.resource_monitors.fixed_heap"
#: Streams with less than this are not counted: ended first are those that hold most.
_COUNTED_POWER: Final = 20


def overload_manager(memory_mib: int) -> Document:
    """Return the limits and what happens at them.

    memory_mib: Memory of one replica.
    """
    return {
        "refresh_interval": "0.25s",
        "buffer_factory_config": {"minimum_account_to_track_power_of_two": _COUNTED_POWER},
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
            _action("shrink_heap", threshold={"value": 0.8}),
            _action(
                "reset_high_memory_stream", scaled={"scaling_threshold": 0.85, "saturation_threshold": 0.95}
            ),
            _action("disable_http_keepalive", threshold={"value": 0.9}),
            _action("stop_accepting_requests", threshold={"value": 0.95}),
        ],
    }


def _action(name: str, **trigger: Document) -> Document:
    return {"name": f"envoy.overload_actions.{name}", "triggers": [{"name": _HEAP, **trigger}]}
