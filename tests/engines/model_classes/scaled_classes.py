"""Small models with random weights, one for each class, and what the catalogue counts of their cache."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import inference_catalog as catalog
from inference_catalog.cache_rules import CacheUse, pool_block_bytes, request_bytes
from inference_catalog.catalogue import model_entry
from inference_catalog.configurations.describe import describe
from inference_local.serving.vllm_cpu.scaled_models import write_scaled_model

_CLASSES = json.loads(Path(__file__).with_name("classes.json").read_text(encoding="utf-8"))
#: The tokenizer and the chat format of every model here.
LIKE = "Qwen/Qwen3-8B"
_FACTS = {"answer_format": None, "gated": False, "licence": "MIT", "source": "a test: none"}
_TOKENS = ("bos_token_id", "eos_token_id", "pad_token_id", "vocab_size")
#: Bytes of a value of the second tensor of a state, with the type below. A state of one tensor keeps its
#: own.
_STATE_BYTES = 4
#: Without it, the type depends on the processor: with AVX-512 BF16, vLLM takes this one whatever the
#: checkpoint says (``check_and_update_config`` in ``vllm/platforms/cpu.py`` of 0.31.0).
STATE_TYPE = ("--mamba-ssm-cache-dtype", "float32")


@dataclass(frozen=True, slots=True)
class ScaledClass:
    """A small model of a class."""

    configuration: Mapping[str, Any]
    """Fields of ``config.json``, without those of the tokenizer."""
    task: str = "chat"
    """What is asked of it: ``chat``, ``embed`` or ``rerank``."""
    arguments: tuple[str, ...] = ()
    """Further arguments of its engine."""
    error: str = ""
    """A part of the error with which it does not start or does not answer; empty if it answers."""
    reports: bool = False
    """Whether it reports its capacity before it fails."""
    why: str = ""
    """What the error means, for the page."""

    def write(self, directory: Path) -> dict[str, Any]:
        """Write configuration and tokenizer into a folder, and return the configuration."""
        write_scaled_model(catalog.model(LIKE), directory, tensor_parallel_size=1)
        file = directory / "config.json"
        tokens = {name: json.loads(file.read_text())[name] for name in _TOKENS} | {"dtype": "bfloat16"}
        own = dict(self.configuration)
        if "text_config" in own:
            own |= {"dtype": "bfloat16", "text_config": {**own["text_config"], **tokens}}
        else:
            own |= tokens
        file.write_text(json.dumps(own), encoding="utf-8")
        return own


def _group(name: str) -> dict[str, ScaledClass]:
    return {
        key: ScaledClass(**{**value, "arguments": tuple(value.get("arguments", ()))})
        for key, value in _CLASSES[name].items()
    }


ANSWERS: Mapping[str, ScaledClass] = _group("answers")
REFUSED: Mapping[str, ScaledClass] = _group("refused")


def counted_tokens(configuration: Mapping[str, Any], memory: int, longest: int, use: CacheUse) -> int:
    """Return how many tokens of longest requests are counted for a cache; 0 for a model without one.

    The number is the one that vLLM logs: whole blocks of the pool, divided by the blocks of a longest request
    (``get_kv_cache_capacity`` in ``vllm/v1/core/kv_cache_utils.py`` of 0.31.0).

    configuration: Content of ``config.json``.
    memory: Bytes of the cache.
    longest: Tokens of the longest request.
    use: How the engine is started.
    """
    model = model_entry("a class", describe(configuration) | _FACTS, Path("config.json"))
    layers = tuple(
        replace(each, states=(*each.states[:-1], replace(each.states[-1], bytes_per_value=_STATE_BYTES)))
        if len(each.states) > 1
        else each
        for each in model.cached_layers
    )
    if not layers:
        return 0
    model = replace(model, cached_layers=layers)
    block = pool_block_bytes(model, use)
    return int(memory // block * block / request_bytes(model, use, longest) * longest)
