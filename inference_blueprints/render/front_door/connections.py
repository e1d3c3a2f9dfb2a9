"""The listener of the front door: from a caller's connection to the cluster that the policy chose."""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document
from inference_blueprints.render.front_door.access_log import access_log
from inference_blueprints.render.front_door.errors import local_replies
from inference_blueprints.render.front_door.places import DoorPlaces
from inference_blueprints.render.front_door.policy_call import policy_call
from inference_blueprints.render.front_door.request_body import (
    identifying_filter,
    reading_filter,
    writing_filter,
)
from inference_blueprints.render.front_door.routes import door_routes
from inference_blueprints.render.front_door.tokens import token_filters
from inference_blueprints.render.front_door.tracing import traced_requests
from inference_blueprints.render.front_door.usage import usage_filter
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_contracts import door_headers

#: Longest time without a byte in an answer: that of the load balancer. An answer that is not streamed may
#: take that long.
IDLE_SECONDS: Final = 3600
#: Longest time without a request on a connection: longer than the load balancer keeps it, which would
#: otherwise send a request into a connection that ends.
_CONNECTION_SECONDS: Final = 3900
#: Time for the head, and for the whole request.
HEAD_SECONDS: Final = 10
REQUEST_SECONDS: Final = 120
_HEADERS_KIB: Final = 32
_HEADERS: Final = 100
_ENVOYS_PREFIX: Final = "x-envoy-"
#: Notes of other tracing systems, as long as all headers may be. Envoy would keep them with each span.
_TRACE_STATE: Final = ("tracestate",)
#: Largest answer that is not streamed: many embeddings at once. Envoy waits for it, to read its usage.
_ANSWER_BYTES: Final = 64 * 1024 * 1024


def door_listener(plan: DoorPlan, places: DoorPlaces) -> Document:
    """Return the listener."""
    tracing = traced_requests(plan, places)
    manager = parts.extension(
        "envoy.filters.network.http_connection_manager",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="door",
        # The load balancer speaks HTTP/1.1 to its targets: what HTTP/2 adds for attackers is not there.
        codec_type="HTTP1",
        server_name="front-door",
        use_remote_address=True,
        xff_num_trusted_hops=places.trusted_hops,
        generate_request_id=True,
        always_set_request_id_in_response=True,
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action="REJECT_REQUEST",
        max_request_headers_kb=_HEADERS_KIB,
        common_http_protocol_options={
            "headers_with_underscores_action": "REJECT_REQUEST",
            "max_headers_count": _HEADERS,
            "idle_timeout": f"{_CONNECTION_SECONDS}s",
        },
        stream_idle_timeout=f"{IDLE_SECONDS}s",
        request_headers_timeout=f"{HEAD_SECONDS}s",
        request_timeout=f"{REQUEST_SECONDS}s",
        early_header_mutation_extensions=[_callers_headers(*(_TRACE_STATE if tracing else ()))],
        local_reply_config=local_replies(),
        route_config={
            "name": "door",
            "virtual_hosts": [
                {
                    "name": "door",
                    "domains": ["*"],
                    "routes": list(door_routes(places, plan.largest_body_bytes)),
                }
            ],
        },
        http_filters=[
            _readiness(),
            *token_filters(plan.key_sets),
            identifying_filter(),
            reading_filter(plan.largest_body_bytes),
            policy_call(),
            writing_filter(),
            usage_filter(),
            parts.extension(
                "envoy.filters.http.router", "filters.http.router.v3.Router", suppress_envoy_headers=True
            ),
        ],
        access_log=[access_log(places.access_log)],
        **({"tracing": tracing} if tracing else {}),
    )
    own = places.certificate
    return parts.listener(
        "door",
        parts.socket(places.address, places.port),
        [manager],
        transport=parts.downstream_tls(own, protocols=("http/1.1",)) if own else None,
        per_connection_buffer_limit_bytes=max(plan.largest_body_bytes, _ANSWER_BYTES),
    )


def _callers_headers(*further: str) -> Document:
    """Remove what only the door may say, and give every request an identifier of its own.

    further: Further headers that are removed.

    A caller who could choose it could settle the reservation of another request. What the caller sent is
    logged. Envoy's own headers change retries and timeouts, also those of callers with private addresses
    (https://www.envoyproxy.io/docs/envoy/v1.40.0/configuration/http/http_filters/router_filter): a retry
    would use a model twice for one reservation.
    """
    callers = {"key": "x-client-request-id", "value": "%REQ(x-request-id)%"}
    return parts.extension(
        "callers",
        "http.early_header_mutation.header_mutation.v3.HeaderMutation",
        mutations=[
            *(
                {"remove_on_match": {"key_matcher": {"prefix": prefix, "ignore_case": True}}}
                for prefix in (door_headers.PREFIX, _ENVOYS_PREFIX)
            ),
            {"append": {"append_action": "ADD_IF_ABSENT", "header": callers}},
            {"remove": "x-request-id"},
            *({"remove": each} for each in further),
        ],
    )


def _readiness() -> Document:
    """Refuse the load balancer's question while Envoy ends. Otherwise the policy answers it."""
    return parts.extension(
        "envoy.filters.http.health_check",
        "filters.http.health_check.v3.HealthCheck",
        pass_through_mode=True,
        headers=[{"name": ":path", "string_match": {"exact": door_headers.READY_PATH}}],
    )
