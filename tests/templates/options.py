"""Options of a model: type of its KV cache, quantisation while loading, speculative decoding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

import inference_catalog as catalog

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
    if engine == "vllm" and all(map(_is_whole, section["deployments"])):
        # Few models have layers or a draft that guess, so all of them do.
        drafts = drafts_for(entry)
        if drafts and "huggingFace" in section["weights"]:
            return _from_the_hub(section) | {"speculation": {"eagle": draw(_eagle(drafts))}}
        if "kvCache" not in section:
            # Few draws come here, so most of them do.
            possible += [{"speculation": {"nGram": {"tokens": 2}}}] * 6
            possible = [{"speculation": {"mtp": {"tokens": 1}}}] if model.predicted_layers else possible
    chosen: Document = draw(_as_embedding_model(section | draw(st.sampled_from(possible)), entry))
    return chosen


def drafts_for(entry: str) -> list[str]:
    """Return the drafts of the catalogue that were trained for a model."""
    return [name for name, draft in catalog.drafts().items() if _guesses_for(draft, entry)]


def _eagle(drafts: list[str]) -> st.SearchStrategy[Document]:
    """Return the section of a draft."""
    names = st.sampled_from(drafts)
    return st.fixed_dictionaries({"huggingFace": names, "revision": st.just("main"), "tokens": st.just(2)})


def _from_the_hub(section: Document) -> Document:
    """Return a model whose workers read the weights from the Hub, without KV cache outside of devices."""
    weights = {key: value for key, value in section["weights"].items() if key != "mirror"}
    return {key: value for key, value in section.items() if key != "kvCache"} | {"weights": weights}


def _guesses_for(draft: catalog.Model, entry: str) -> bool:
    """Whether the catalogue's draft was trained for a model of this shape."""
    model = catalog.models()[entry]
    shape = (model.hidden_size, model.vocabulary_size)
    return draft.draft is not None and shape == (draft.draft.target_hidden_size, draft.vocabulary_size)


def _is_whole(deployment: Document) -> bool:
    """Whether each worker does everything, in one stage."""
    stages: int = deployment.get("aggregated", {"pipelineParallelSize": 2}).get("pipelineParallelSize", 1)
    return stages == 1


@st.composite
def _as_embedding_model(draw: Draw, section: Document, entry: str) -> Document:
    """Return a model that computes vectors instead of answers, or the model itself where that cannot be."""
    chooses = draw(st.integers(0, 3)) == 0
    settings = {"media", "kvCache", "speculation", "parsers", "objectives", "realTime"}
    routed: list[Document] = [
        {"stack": {"llmD": {}}},
        {"stack": {"dynamo": {}}, "routing": {"roundRobin": {}}},
    ]
    whole = all(map(_is_undivided, section["deployments"]))
    if not chooses or "vllm" not in section.get("engine", {"vllm": {}}) or not whole:
        return section
    if catalog.model(entry).vision:
        return section
    kept = {key: value for key, value in section.items() if key not in settings | {"frontend", "routing"}}
    workload = {key: section["workload"][key] for key in ("inputTokens", "peakRequestsPerSecond")}
    router: Document = draw(st.sampled_from(routed))
    return kept | {"task": "embed", "workload": workload} | router


def _is_undivided(deployment: Document) -> bool:
    """Whether each worker computes a whole input without ranks."""
    return _is_whole(deployment) and deployment["aggregated"].get("dataParallelSize", 1) == 1
