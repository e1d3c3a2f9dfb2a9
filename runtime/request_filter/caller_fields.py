"""Fields and headers of callers that choose a worker or a priority, and paths that callers may ask for.

Headers: ``lib/llm/src/http/service`` of ai-dynamo 1.6.1, where ``nvext`` of a body says the same, and
``charts/llm-d-model`` for llm-d. Fields: ``ChatCompletionRequest`` of vLLM 0.31.0
(``entrypoints/openai/chat_completion/protocol.py``) and of SGLang 0.5.21
(``srt/entrypoints/openai/protocol.py``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from inference_contracts.routing_headers import HARMLESS, ROUTING_PREFIXES
from request_filter.http_head import Header

#: Fields that choose a worker, a priority, a place in a cache or a program of the engine.
ROUTING_FIELDS: Final = frozenset(
    {
        *("nvext", "priority", "request_id", "rid", "kv_transfer_params", "ec_transfer_params"),
        *("vllm_xargs", "extra_args", "custom_params", "custom_logit_processor", "logits_processors"),
        *("session_params", "lora_path", "chat_template", "bootstrap_host", "bootstrap_port"),
        *("bootstrap_room", "data_parallel_rank", "routed_dp_rank", "disagg_prefill_dp_rank"),
        "bad_words_token_ids",
    }
)
#: First parts of the paths of the API, below ``/v1/``. Engines have further ones, for their operator.
_API: Final = frozenset(
    {
        *("chat", "completions", "embeddings", "models", "responses", "messages", "images", "audio"),
        *("videos", "rerank", "score", "pooling", "classify", "moderations"),
    }
)
#: Pages of the program for its platform. The load balancer forwards none of them.
_PAGES: Final = frozenset({"/health", "/live", "/metrics", "/ping", "/version"})
#: Paths whose bodies may be forms with files.
_FORMS: Final = ("/v1/audio/", "/v1/images/", "/v1/videos")


def is_page(method: str, path: str) -> bool:
    """Return whether a request asks for a page of the program, which has nothing to check."""
    return method in {"GET", "HEAD"} and path in _PAGES


def is_api(path: str) -> bool:
    """Return whether a path is one of the API, written as its readers write it."""
    if "%" in path or "\\" in path:
        return False
    _, *parts = path.split("/")
    if {"", ".", ".."} & set(parts):
        return False
    version, first, *_ = (*parts, "")
    return version == "v1" and first in _API


def takes_forms(path: str) -> bool:
    """Return whether a body may be a form with files."""
    return path.startswith(_FORMS)


def kept_headers(
    headers: Iterable[Header], allowed: frozenset[str], exact: Mapping[str, str]
) -> tuple[list[Header], list[str]]:
    """Return the headers that are passed on, and the names of the others.

    headers: Headers with names in lower case.
    allowed: Names that are passed on although they choose something.
    exact: Names that are passed on with exactly this value.
    """
    kept, removed = [], []
    for name, value in headers:
        plain = not name.startswith(ROUTING_PREFIXES) or name in HARMLESS or name in allowed
        if plain or exact.get(name) == value:
            kept.append((name, value))
        else:
            removed.append(name)
    return kept, removed


def removed_fields(body: Mapping[str, Any], allowed: frozenset[str]) -> list[str]:
    """Return the fields of a body that are not passed on."""
    return sorted((ROUTING_FIELDS & body.keys()) - allowed)
