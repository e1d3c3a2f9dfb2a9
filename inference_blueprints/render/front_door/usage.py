"""The filter that reads the usage of whole answers. The program write_body.lua reads that of streams.

``json_to_metadata`` is alpha, and robust to untrusted callers (Envoy's ``extensions_metadata.yaml``). Its
counterpart for streams, ``sse_to_metadata``, is marked as work in progress: Envoy's security team does not
support it.
"""

from __future__ import annotations

from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document
from inference_contracts import door_log

#: Name of the filter.
ANSWER_FILTER: Final = "envoy.filters.http.json_to_metadata"
#: Where answers have numbers of tokens: chat, completions and embeddings, then responses and messages.
_FIELDS: Final = (
    (("usage", "prompt_tokens"), door_log.INPUT_TOKENS),
    (("usage", "completion_tokens"), door_log.OUTPUT_TOKENS),
    (("usage", "prompt_tokens_details", "cached_tokens"), door_log.CACHED_TOKENS),
    (("usage", "input_tokens"), door_log.INPUT_TOKENS),
    (("usage", "output_tokens"), door_log.OUTPUT_TOKENS),
)


def usage_filter() -> Document:
    """Return the filter, which writes the usage of an answer to the metadata of its request."""
    return parts.extension(
        ANSWER_FILTER,
        "filters.http.json_to_metadata.v3.JsonToMetadata",
        response_rules={"rules": [_rule(path, name) for path, name in _FIELDS]},
    )


def _rule(path: tuple[str, ...], name: str) -> Document:
    return {
        "selectors": [{"key": key} for key in path],
        "on_present": {"metadata_namespace": door_log.USAGE_NAMESPACE, "key": name, "type": "NUMBER"},
    }
