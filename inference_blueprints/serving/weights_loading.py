"""Source of a model's weights: the Hugging Face Hub, S3, or the platform's copy of the Hub in S3."""

from __future__ import annotations

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


def streamed_address(weights: spec.Weights) -> str | None:
    """Return the S3 address that workers stream from; None if they download from the Hub.

    Parameters
    ----------
    weights
        The blueprint's section.
    """
    return f"s3://$({_BUCKET})/{_prefix(weights)}/" if weights.mirror else weights.s3


def weights_environment(weights: spec.Weights) -> dict[str, EnvironmentValue]:
    """Return the environment that a worker needs to find and read its weights.

    Parameters
    ----------
    weights
        The blueprint's section.
    """
    if weights.mirror:
        return {_BUCKET: WeightsBucket(), _PREFIX: _prefix(weights)}
    return _token(weights)


def mirror_release(model: spec.Model) -> str | None:
    """Return the Helm release that mirrors a model; None if the model is not mirrored.

    Parameters
    ----------
    model
        The blueprint's section.
    """
    # Contains a dot, which names of models and deployments cannot contain.
    return f"{model.name}.weights" if model.weights.mirror else None


def weights_mirror(model: spec.Model, deployment: DeploymentPlan) -> WeightsMirrorPlan | None:
    """Return the mirror that a model is streamed from; None if it is not mirrored.

    The copy job uses the engine's image: it is pinned already, and it contains boto3 and huggingface_hub for
    streaming from S3 and reading the Hub (requirements of ``ai-dynamo[vllm]``: ``vllm[runai]`` and
    transformers).

    Parameters
    ----------
    model
        The blueprint's section.
    deployment
        One of its deployments.
    """
    release = mirror_release(model)
    if release is None:
        return None
    weights = model.weights
    environment: Mapping[str, EnvironmentValue] = {
        **weights_environment(weights),
        **_token(weights),
        "WEIGHTS_REPOSITORY": weights.hugging_face or "",
        "WEIGHTS_REVISION": weights.revision or "",
    }
    image = deployment.workers[0].image
    return WeightsMirrorPlan(release, image, environment, _prefix(weights))


def _prefix(weights: spec.Weights) -> str:
    """Return the prefix of the copy. Each commit has its own prefix, so a copy never changes."""
    return f"huggingface/{weights.hugging_face}/{weights.revision}"


def _token(weights: spec.Weights) -> dict[str, EnvironmentValue]:
    """Return the Hub's token, if one is needed."""
    return {"HF_TOKEN": SecretValue(weights.token_secret_arn)} if weights.token_secret_arn else {}
