"""Where workers read a model from: the Hugging Face Hub, S3, or the platform's copy of the Hub in S3."""

from __future__ import annotations

from collections.abc import Mapping

from inference_blueprints.serving.types import (
    DeploymentPlan,
    EnvironmentValue,
    SecretValue,
    WeightsBucket,
    WeightsMirror,
)
from inference_blueprints.spec import types as spec

_BUCKET, _PREFIX = "WEIGHTS_BUCKET", "WEIGHTS_PREFIX"


def streamed_address(weights: spec.Weights) -> str | None:
    """Return the S3 address that workers stream from; None where they download from the Hub.

    Parameters
    ----------
    weights
        The blueprint's section.
    """
    return f"s3://$({_BUCKET})/{_prefix(weights)}/" if weights.mirror else weights.s3


def weights_environment(weights: spec.Weights) -> dict[str, EnvironmentValue]:
    """Return what a worker needs to find and read its weights.

    Parameters
    ----------
    weights
        The blueprint's section.
    """
    if weights.mirror:
        return {_BUCKET: WeightsBucket(), _PREFIX: _prefix(weights)}
    return _token(weights)


def mirror_release(model: spec.Model) -> str | None:
    """Return the release that mirrors a model; None where nothing does.

    Parameters
    ----------
    model
        The blueprint's section.
    """
    # With a dot, which no model's or deployment's name has.
    return f"{model.name}.weights" if model.weights.mirror else None


def weights_mirror(model: spec.Model, deployment: DeploymentPlan) -> WeightsMirror | None:
    """Return the copy that a model is streamed from; None where it is not mirrored.

    The engine's image makes it: it is pinned already, and streaming from S3 and reading the Hub put boto3 and
    huggingface_hub into it (requirements of ``ai-dynamo[vllm]``: ``vllm[runai]`` and transformers).

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
    return WeightsMirror(release, image, environment, _prefix(weights))


def _prefix(weights: spec.Weights) -> str:
    """Return where the copy lies: a commit has a place of its own, so none ever changes."""
    return f"huggingface/{weights.hugging_face}/{weights.revision}"


def _token(weights: spec.Weights) -> dict[str, EnvironmentValue]:
    """Return the Hub's token where one is needed."""
    return {"HF_TOKEN": SecretValue(weights.token_secret_arn)} if weights.token_secret_arn else {}
