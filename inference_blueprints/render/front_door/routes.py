"""Which paths the front door has, and where they lead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inference_blueprints.render.envoy.parts import Document
from inference_blueprints.render.front_door import request_body
from inference_blueprints.render.front_door.errors import JWT_NAMESPACE, direct
from inference_blueprints.render.front_door.places import BATCH_PATHS, DoorPlaces
from inference_blueprints.render.front_door.usage import ANSWER_FILTER
from inference_contracts import door_headers, door_log

#: Paths that ask a model. Their bodies are one JSON object.
MODEL_PATHS: Final = (
    *("/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages", "/v1/embeddings"),
    "/v1/images/generations",
)
#: Its answers are images in JSON: too large to wait for, and counted by the request.
_IMAGES: Final = "/v1/images/generations"
BATCH_CLUSTER: Final = "batch"
_MODELS: Final = "/v1/models"
_BODY_FILTERS: Final = (request_body.READ, request_body.WRITE)
_DISABLED: Final = {"@type": "type.googleapis.com/envoy.config.route.v3.FilterConfig", "disabled": True}
#: A request is sent again only if no server has begun with it.
_RETRIES: Final = {
    "retry_on": "connect-failure,refused-stream",
    "num_retries": 2,
    "retry_host_predicate": [
        {
            "name": "envoy.retry_host_predicates.previous_hosts",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3"
                ".PreviousHostsPredicate"
            },
        }
    ],
    "host_selection_retry_max_attempts": 3,
}


def door_routes(places: DoorPlaces, largest_body_bytes: int) -> Iterator[Document]:
    """Yield the routes, the first that matches first.

    largest_body_bytes: Largest body. The program that reads bodies refuses larger ones without asking.
    """
    yield {
        "match": {"path": door_headers.READY_PATH, **_method("GET")},
        "route": {"cluster": door_headers.POLICY_CLUSTER},
        **_without(door_log.DECISION_NAMESPACE, JWT_NAMESPACE, *_BODY_FILTERS),
    }
    to_target = {"cluster_header": door_headers.TARGET, "timeout": "0s"}
    large = {
        "name": "content-length",
        "range_match": {"start": request_body.STRANGERS_BYTES + 1, "end": largest_body_bytes + 1},
    }
    for path in MODEL_PATHS:
        route = {
            "route": {**to_target, "retry_policy": _RETRIES},
            # Read when the cluster is chosen, after all filters.
            "request_headers_to_remove": [door_headers.TARGET],
        }
        filters = {ANSWER_FILTER: _DISABLED} if path == _IMAGES else {}
        posted = _method("POST")
        yield {
            "match": {"path": path, "headers": [*posted["headers"], large]},
            **route,
            "typed_per_filter_config": {**filters, request_body.IDENTIFY: request_body.identifying_program()},
        }
        yield {"match": {"path": path, **posted}, **route, "typed_per_filter_config": filters}
    # The policy answers them: their target is its own cluster.
    yield {"match": {"path": _MODELS, **_method("GET")}, "route": to_target}
    yield {"match": {"prefix": f"{_MODELS}/", **_method("GET")}, "route": to_target}
    if places.batch:
        for path in BATCH_PATHS:
            yield {
                "match": {"path_separated_prefix": path},
                "route": {
                    "cluster": BATCH_CLUSTER,
                    "timeout": "60s",
                    "prefix_rewrite": f"{places.batch_prefix}{path}",
                    "host_rewrite_literal": places.batch.server_name or places.batch.host,
                },
                **_without(door_log.DECISION_NAMESPACE, JWT_NAMESPACE, *_BODY_FILTERS),
            }
    nothing = _without(door_log.DECISION_NAMESPACE, JWT_NAMESPACE, *_BODY_FILTERS)
    for path in (*MODEL_PATHS, _MODELS):
        allowed = "GET" if path == _MODELS else "POST"
        answer = direct(405, "method_not_allowed", f"{path} takes {allowed}")
        yield {"match": {"path": path}, **answer, **nothing}
    known = ", ".join((*MODEL_PATHS, _MODELS))
    answer = direct(404, "unknown_url", f"there is nothing at this path; the front door has {known}")
    yield {"match": {"prefix": "/"}, **answer, **nothing}


def _method(name: str) -> Document:
    return {"headers": [{"name": ":method", "string_match": {"exact": name}}]}


def _without(*filters: str) -> Document:
    return {"typed_per_filter_config": dict.fromkeys(filters, _DISABLED)}
