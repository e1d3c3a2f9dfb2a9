"""Filters that read the usage which engines report, in whole answers and in streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from inference_blueprints.render.envoy import parts
from inference_blueprints.render.envoy.parts import Document
from inference_contracts import door_log

#: Name of the filter that reads answers which are not streamed.
ANSWER_FILTER: Final = "envoy.filters.http.json_to_metadata"
#: Largest event of a stream that is read. Envoy's default of 8 KiB loses the usage in long events.
_LARGEST_EVENT_BYTES: Final = 1024 * 1024
#: Where answers have numbers of tokens: chat, completions and embeddings; responses and messages; the last
#: event of a stream of responses; the first of a stream of messages.
_FIELDS: Final = (
    (("usage", "prompt_tokens"), door_log.INPUT_TOKENS),
    (("usage", "completion_tokens"), door_log.OUTPUT_TOKENS),
    (("usage", "prompt_tokens_details", "cached_tokens"), door_log.CACHED_TOKENS),
    (("usage", "input_tokens"), door_log.INPUT_TOKENS),
    (("usage", "output_tokens"), door_log.OUTPUT_TOKENS),
    (("response", "usage", "input_tokens"), door_log.INPUT_TOKENS),
    (("response", "usage", "output_tokens"), door_log.OUTPUT_TOKENS),
    (("message", "usage", "input_tokens"), door_log.INPUT_TOKENS),
)


def usage_filters() -> list[Document]:
    """Return the filters that write the usage of an answer to the metadata of its request."""
    return [
        parts.extension(
            ANSWER_FILTER,
            "filters.http.json_to_metadata.v3.JsonToMetadata",
            response_rules={"rules": list(_rules())},
        ),
        parts.extension(
            "envoy.filters.http.sse_to_metadata",
            "filters.http.sse_to_metadata.v3.SseToMetadata",
            response_rules={
                "max_event_size": _LARGEST_EVENT_BYTES,
                "content_parser": parts.extension(
                    "envoy.content_parsers.json",
                    "content_parsers.json.v3.JsonContentParser",
                    rules=[{"rule": each} for each in _rules()],
                ),
            },
        ),
    ]


def _rules() -> Iterator[Document]:
    for path, name in _FIELDS:
        yield {
            "selectors": [{"key": key} for key in path],
            "on_present": {"metadata_namespace": door_log.USAGE_NAMESPACE, "key": name, "type": "NUMBER"},
        }
