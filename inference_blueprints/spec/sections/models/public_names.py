"""Rules on public names: each leads to one model, and what runs the model serves two names."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import rule
from inference_blueprints.spec.types import Model, Spec
from inference_blueprints.spec.wording import quote
from inference_contracts.errors import Finding

_REMOVE = "remove 'publicName'"


@rule
def model_names_differ(spec: Spec) -> Iterator[Finding]:
    """Check that a public name is the name of no other model, and not that of its own."""
    taken = {model.name: model.name for _, model in usable(spec.models)}
    for index, model in usable(spec.models):
        public = model.public_name
        if public is None:
            continue
        if public in taken:
            message = (
                f"got {quote(public)}, which is a name of model {quote(taken[public])} already; a name leads "
                "to one model, so choose another or remove it"
            )
            yield Finding(("spec", "models", index, "publicName"), message)
        taken.setdefault(public, model.name)


@rule
def door_has_the_public_names(spec: Spec) -> Iterator[Finding]:
    """Check that names in requests are stated once: with a front door, in its section."""
    for index, model in usable(spec.models):
        if spec.front_door and model.public_name is not None:
            message = (
                f"got {quote(model.public_name)}, but callers of a front door have the names of "
                f"'frontDoor.models'; remove it, and state {{name: {model.public_name}, to: [{{model: "
                f"{model.name}}}]}} there"
            )
            yield Finding(("spec", "models", index, "publicName"), message)


@rule
def two_names_are_served(spec: Spec) -> Iterator[Finding]:
    """Check that engine and stack serve a second name."""
    for index, model in usable(spec.models):
        if model.public_name is None:
            continue
        if reason := _one_name(model):
            message = f"got {quote(model.public_name)}, but {reason}"
            yield Finding(("spec", "models", index, "publicName"), message)


def _one_name(model: Model) -> str | None:
    """Return why a model has one name only, and what to do; None if it can have two.

    TensorRT-LLM: ``register_model`` in ``dynamo/trtllm/workers/llm_worker.py`` of ai-dynamo 1.6.1 has no
    ``model_aliases``. SGLang: ``available_models`` in ``sglang/srt/entrypoints/http_server.py`` of 0.5.21.
    vLLM-Omni: ``generate_images`` in ``vllm_omni/entrypoints/openai/api_server.py`` of 0.30.0 compares with
    the first name. llm-d: ``ComputeBlockKeysFromTokens`` of its index hashes the name in the request with the
    tokens, and events of workers (``_kv_events`` in ``serving/stacks/llm_d.py``) carry one name.
    """
    if model.engine.tensorrt_llm:
        return f"Dynamo's worker of TensorRT-LLM registers one name; {_REMOVE}, or use vLLM or SGLang"
    if model.engine.vllm_omni:
        return f"vLLM-Omni refuses requests for images with a second name; {_REMOVE}"
    if model.engine.sglang and model.stack.direct:
        return f"SGLang's own server has one name; {_REMOVE}, or set 'stack: {{dynamo: {{}}}}'"
    if model.stack.llm_d and model.stack.llm_d.prefix_scorer == "precise":
        return (
            "llm-d's precise scorer finds caches by one name only, so requests with the other would miss "
            f"them; {_REMOVE}, or set 'prefixScorer: approximate'"
        )
    return None
