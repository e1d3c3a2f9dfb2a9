"""How Envoy asks the policy process: once per request, with headers only, over a Unix socket.

``ext_authz`` is stable and robust to untrusted callers and servers (Envoy's ``extensions_metadata.yaml``). It
refuses requests with 503 while the policy does not answer. What the policy decides is kept as metadata too:
the access log reads it there.
"""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document
from inference_blueprints.render.front_door.errors import NO_DECISION
from inference_contracts import door_headers, door_log
from inference_contracts.request_headers import BATCH_HEADERS, SESSION_HEADER

#: The store answers in a millisecond; after a fail-over of a node, in seconds.
_TIMEOUT: Final = "2s"
#: Credentials and names of callers, which the policy reads.
_CALLERS: Final = (
    *("authorization", "x-api-key", door_headers.CALLERS_PROJECT, "x-request-id"),
    *(SESSION_HEADER, *BATCH_HEADERS),
)
#: What later filters and routes need of a decision, and the policy itself when it lists models. The access
#: log reads the rest in the metadata.
_DECISION: Final = (
    *(door_headers.TARGET, door_headers.SERVED, door_headers.MAXIMUM),
    *(door_headers.TEAM, door_headers.PROJECT, door_headers.KEY, door_headers.CALLER),
)
#: Headers of a refusal that reach the caller.
_REFUSAL: Final = ("content-type", "retry-after", "x-should-retry", "www-authenticate", "x-ratelimit-*")


def policy_call() -> Document:
    """Return the filter that asks the policy."""
    own = f"{door_headers.PREFIX}*"
    return parts.extension(
        door_log.DECISION_NAMESPACE,
        "filters.http.ext_authz.v3.ExtAuthz",
        transport_api_version="V3",
        failure_mode_allow=False,
        status_on_error={"code": NO_DECISION},
        clear_route_cache=True,
        allowed_headers=parts.matched(*_CALLERS, own),
        http_service={
            "server_uri": {
                "uri": "http://policy",
                "cluster": door_headers.POLICY_CLUSTER,
                "timeout": _TIMEOUT,
            },
            "path_prefix": door_headers.DECIDE,
            "authorization_response": {
                "allowed_upstream_headers": parts.matched(*_DECISION),
                "allowed_client_headers": parts.matched(*_REFUSAL),
                "allowed_client_headers_on_success": parts.matched(
                    door_headers.RESERVED, door_headers.MAXIMUM
                ),
                "dynamic_metadata_from_headers": parts.matched(own),
            },
        },
    )
