"""Spans of the front door, in the trace of the caller or in a new one.

The door is the first hop, so it decides for requests without a trace of their own, and what is behind it
follows. Envoy writes `traceparent` anew: of the caller's it keeps the trace and its decision, if it has the
form of the specification (W3C, "Trace Context", 3.2), else it begins a new trace.

https://www.envoyproxy.io/docs/envoy/v1.40.0/api-v3/config/trace/v3/opentelemetry.proto
"""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document
from inference_blueprints.render.front_door.places import DoorPlaces
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_contracts.units import MILLION

TRACES_CLUSTER: Final = "traces"
_SERVICE: Final = "front-door"
#: Longest path in a span. Paths of the API are shorter; a query is cut off with it.
_PATH_LENGTH: Final = 64
_EXPORT_SECONDS: Final = 2


def traced_requests(plan: DoorPlan, places: DoorPlaces) -> Document | None:
    """Return how the listener traces requests. None without traces."""
    if plan.trace_ratio is None or places.traces is None:
        return None
    address = f"http://{places.traces.host}:{places.traces.port}/v1/traces"
    return {
        # A header of the caller that asks for a trace is Envoy's own way, and not the platform's.
        "client_sampling": {"value": 0},
        "max_path_tag_length": _PATH_LENGTH,
        "provider": {
            "name": "envoy.tracers.opentelemetry",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig",
                "http_service": {
                    "http_uri": {
                        "uri": address,
                        "cluster": TRACES_CLUSTER,
                        "timeout": f"{_EXPORT_SECONDS}s",
                    }
                },
                "service_name": _SERVICE,
                "sampler": _sampler(plan.trace_ratio),
            },
        },
    }


def _sampler(ratio: float) -> Document:
    """Return what decides as frontends do: by the caller, else by chance (``parentbased_traceidratio``)."""
    share = parts.extension(
        "envoy.tracers.opentelemetry.samplers.trace_id_ratio_based",
        "tracers.opentelemetry.samplers.v3.TraceIdRatioBasedSamplerConfig",
        sampling_percentage={"numerator": round(ratio * MILLION), "denominator": "MILLION"},
    )
    return parts.extension(
        "envoy.tracers.opentelemetry.samplers.parent_based",
        "tracers.opentelemetry.samplers.v3.ParentBasedSamplerConfig",
        wrapped_sampler=share,
    )


def traces_cluster(plan: DoorPlan, places: DoorPlaces) -> list[Document]:
    """Return the cluster that receives spans. None without traces.

    Spans have no TLS, as those of frontends and workers: the agent that receives them has no certificate.
    """
    if plan.trace_ratio is None or places.traces is None:
        return []
    return [parts.cluster(TRACES_CLUSTER, [parts.socket(places.traces.host, places.traces.port)])]
