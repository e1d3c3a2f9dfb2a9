"""Source of a model's weights: the Hugging Face Hub, S3, or the platform's copy of the Hub in S3."""

from __future__ import annotations

import re
from collections.abc import Mapping

from inference_blueprints.serving.types import (
    DeploymentPlan,
    EnvironmentValue,
    SecretValue,
    WeightsBucket,
    WeightsMirrorPlan,
)
from inference_blueprints.spec import types as spec

_BUCKET, _PREFIX = "WEIGHTS_BUCKET", "WEIGHTS_PREFIX"

#: Engines whose images read weights from S3, by the blueprint's key. SGLang's and TensorRT-LLM's lack the
#: streamer's S3 client (requirements of ``sglang[diffusion]``).
STREAMING_ENGINES = ("vllm",)


def can_stream(model: spec.Model) -> bool:
    """Return whether workers can stream the weights from S3 into their accelerators and store none on disk.

    model: The blueprint's section.
    """
    return model.weights.in_s3 and model.engine.chosen in STREAMING_ENGINES


def never_change(model: spec.Model) -> bool:
    """Return whether the files are those of a commit, so that a copy of them stays right."""
    weights = model.weights
    # `str` raises for an invalid value; `re` would raise a TypeError.
    pinned = weights.revision is not None and bool(re.fullmatch("[0-9a-f]{40}", str(weights.revision)))
    return bool(weights.hugging_face) and pinned


def s3_address(weights: spec.Weights) -> str | None:
    """Return the S3 address of the weights; None if they are on the Hub only.

    weights: The blueprint's section.
    """
    return f"s3://$({_BUCKET})/{_prefix(weights)}/" if weights.mirror else weights.s3


def weights_environment(weights: spec.Weights) -> dict[str, EnvironmentValue]:
    """Return the environment that a worker needs to find and read its weights."""
    if weights.mirror:
        return {_BUCKET: WeightsBucket(), _PREFIX: _prefix(weights)}
    return _token(weights)


def weights_source(weights: spec.Weights) -> dict[str, EnvironmentValue]:
    """Return the variables that name the repository and its commit."""
    return {
        "WEIGHTS_REPOSITORY": weights.hugging_face or "",
        "WEIGHTS_REVISION": weights.revision or "",
    }


def mirror_release(model: spec.Model) -> str | None:
    """Return the Helm release that mirrors a model; None if the model is not mirrored."""
    # Contains a dot, which names of models and deployments cannot contain.
    return f"{model.name}.weights" if model.weights.mirror else None


def weights_mirror(
    model: spec.Model, deployment: DeploymentPlan, streaming_image: str
) -> WeightsMirrorPlan | None:
    """Return the mirror that a model is read from; None if it is not mirrored.

    The copy job uses vLLM's image: it is pinned already, and it contains boto3 and huggingface_hub for
    streaming from S3 and reading the Hub (requirements of ``ai-dynamo[vllm]``: ``vllm[runai]`` and
    transformers).

    deployment: One of its deployments.
    streaming_image: vLLM's image, if the deployment runs another engine.
    """
    release = mirror_release(model)
    if release is None:
        return None
    weights = model.weights
    environment: Mapping[str, EnvironmentValue] = {
        **weights_environment(weights),
        **_token(weights),
        **weights_source(weights),
    }
    image = deployment.workers[0].image if can_stream(model) else streaming_image
    return WeightsMirrorPlan(release, image, environment, _prefix(weights))


def _prefix(weights: spec.Weights) -> str:
    """Return the prefix of the copy. Each commit has its own prefix, so a copy never changes."""
    return f"huggingface/{weights.hugging_face}/{weights.revision}"


def _token(weights: spec.Weights) -> dict[str, EnvironmentValue]:
    """Return the Hub's token, if one is needed."""
    return {"HF_TOKEN": SecretValue(weights.token_secret_arn)} if weights.token_secret_arn else {}
