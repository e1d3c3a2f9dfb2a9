"""Options of a model: type of its KV cache, quantisation while loading, speculative decoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from inference_blueprints import catalog

Document = dict[str, Any]
Draw = Callable[..., Any]


@st.composite
def with_options(draw: Draw, section: Document, entry: str) -> Document:
    """Return a model with some of the options that it supports."""
    [engine] = section.get("engine", {"vllm": {}})
    model = catalog.models()[entry]
    possible: list[Document] = [{}, {"kvCacheType": "auto"}, {"kvCacheType": "fp8"}]
    if engine == "vllm" and model.weight_type == "bf16" and "type" not in section["weights"]:
        possible.append({"quantization": "fp8"})
    if engine == "vllm" and "kvCache" not in section and all(map(_is_whole, section["deployments"])):
        possible.append({"speculation": {"nGram": {"tokens": 2}}})
        possible += [{"speculation": {"mtp": {"tokens": 1}}}] if model.predicted_layers else []
        possible += [
            {"speculation": {"eagle": {"huggingFace": name, "revision": "main", "tokens": 2}}}
            for name, draft in catalog.drafts().items()
            if _guesses_for(draft, entry) and _is_plain(section)
        ]
    return section | draw(st.sampled_from(possible))


def _guesses_for(draft: catalog.Model, entry: str) -> bool:
    """Whether the catalogue's draft was trained for a model of this shape."""
    model = catalog.models()[entry]
    shape = (model.hidden_size, model.vocabulary_size)
    return draft.draft is not None and shape == (draft.draft.target_hidden_size, draft.vocabulary_size)


def _is_plain(section: Document) -> bool:
    """Whether workers read the weights from the Hub, and no deployment has data parallel ranks."""
    weights = section["weights"]
    ranks = [each["aggregated"].get("dataParallelSize", 1) for each in section["deployments"]]
    return "huggingFace" in weights and "mirror" not in weights and max(ranks) == 1


def _is_whole(deployment: Document) -> bool:
    """Whether each worker does everything, in one stage."""
    return deployment.get("aggregated", {"pipelineParallelSize": 2}).get("pipelineParallelSize", 1) == 1
