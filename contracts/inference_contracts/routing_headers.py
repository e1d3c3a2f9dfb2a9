"""Headers of callers that choose a worker, a priority or a queue.

Neither the front door nor the filter of requests passes them on.
Sources: ``lib/llm/src/http/service`` of ai-dynamo 1.6.1, and ``charts/llm-d-model`` for llm-d.
"""

from __future__ import annotations

from typing import Final

#: Beginnings of headers that choose a worker, a priority or a queue.
ROUTING_PREFIXES: Final = (
    *("x-dynamo-", "x-worker-", "x-prefill", "x-dp-", "x-data-parallel-", "x-bypass-", "x-gateway-"),
    *("x-encoder-", "x-kv-"),
)
#: Headers that begin so and choose nothing for others: names of sessions and of the request.
HARMLESS: Final = frozenset(
    {
        *("x-dynamo-session-id", "x-dynamo-session-final", "x-dynamo-parent-session-id"),
        "x-dynamo-request-id",
    }
)
