"""The filter that reads a request's body into headers for the policy."""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document
from inference_contracts import door_headers

_READ: Final = (
    (door_headers.MODEL, "%REQUEST_BODY(model)%"),
    (door_headers.STREAM, "%REQUEST_BODY(stream)%"),
    (door_headers.MAX_TOKENS, "%REQUEST_BODY(max_tokens)%"),
    (door_headers.MAX_COMPLETION_TOKENS, "%REQUEST_BODY(max_completion_tokens)%"),
    (door_headers.MAX_OUTPUT_TOKENS, "%REQUEST_BODY(max_output_tokens)%"),
    (door_headers.CHOICES, "%REQUEST_BODY(n)%"),
    (door_headers.BYTES, "%REQ(content-length)%"),
)


def body_filters() -> Document:
    """Return the filter."""
    return parts.extension(
        "door.read",
        "filters.http.transform.v3.TransformConfig",
        request_transformation={
            "headers_mutations": [
                {
                    "append": {
                        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
                        "header": {"key": name, "value": value},
                    }
                }
                for name, value in _READ
            ]
        },
        clear_route_cache=True,
    )
