"""The listener of the front door: from a caller's connection to the cluster that the policy chose."""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document
from inference_blueprints.render.front_door.access_log import access_log
from inference_blueprints.render.front_door.places import DoorPlaces
from inference_blueprints.render.front_door.policy_call import policy_call
from inference_blueprints.render.front_door.request_body import body_filters
from inference_blueprints.render.front_door.usage import usage_filters
from inference_blueprints.serving.types.front_door import DoorPlan
from inference_contracts import door_headers

#: Longest time without a byte in a request or an answer. A model may think that long before its first token.
_IDLE_SECONDS: Final = 600
#: Time for the head, and for the whole request.
_HEAD_SECONDS: Final = 10
_REQUEST_SECONDS: Final = 120


def door_listener(plan: DoorPlan, places: DoorPlaces) -> Document:
    """Return the listener."""
    manager = parts.extension(
        "envoy.filters.network.http_connection_manager",
        "filters.network.http_connection_manager.v3.HttpConnectionManager",
        stat_prefix="door",
        generate_request_id=True,
        always_set_request_id_in_response=True,
        normalize_path=True,
        merge_slashes=True,
        path_with_escaped_slashes_action="REJECT_REQUEST",
        common_http_protocol_options={"headers_with_underscores_action": "REJECT_REQUEST"},
        stream_idle_timeout=f"{_IDLE_SECONDS}s",
        request_headers_timeout=f"{_HEAD_SECONDS}s",
        request_timeout=f"{_REQUEST_SECONDS}s",
        early_header_mutation_extensions=[
            parts.extension(
                "callers",
                "http.early_header_mutation.header_mutation.v3.HeaderMutation",
                mutations=[{"remove_on_match": {"key_matcher": {"prefix": door_headers.PREFIX}}}],
            )
        ],
        route_config={
            "name": "door",
            "virtual_hosts": [
                {
                    "name": "door",
                    "domains": ["*"],
                    "routes": [
                        {
                            "match": {"prefix": "/v1/"},
                            "route": {"cluster_header": door_headers.TARGET, "timeout": "0s"},
                        }
                    ],
                }
            ],
        },
        http_filters=[
            body_filters(),
            policy_call(),
            *usage_filters(),
            parts.extension(
                "envoy.filters.http.router", "filters.http.router.v3.Router", suppress_envoy_headers=True
            ),
        ],
        access_log=[access_log(places.access_log)],
    )
    own = places.certificate
    secured = parts.downstream_tls(own, protocols=("h2", "http/1.1")) if own else None
    return parts.listener(
        "door",
        parts.socket(places.address, places.port),
        [manager],
        transport=secured,
        per_connection_buffer_limit_bytes=plan.largest_body_bytes,
    )
