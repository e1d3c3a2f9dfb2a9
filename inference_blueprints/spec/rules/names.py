"""Rules on names: nothing is called alike, and what is made of names stays within Kubernetes' limits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from inference_blueprints.errors import Finding
from inference_blueprints.spec.rules.deployments import each_deployment
from inference_blueprints.spec.rules.duplicate_names import duplicate_names
from inference_blueprints.spec.types import Model, Pool
from inference_blueprints.spec.wording import Path, quote

#: Dynamo's operator takes graph and service names of 45 characters together (ai-dynamo/dynamo,
#: `validateServiceNameLength`), and the longest service is called `frontend`. With the hashes of a
#: Deployment's pods that makes 63, the length of a Kubernetes label; Helm's 53 is above it.
MAXIMUM_RELEASE = 45 - len("frontend")


def pools_differ(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that pools have different names."""
    yield from duplicate_names(
        "pool", {("spec", "pools", index, "name"): pool.name for index, pool in pools.items()}
    )


def models_differ(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that models have different names."""
    yield from duplicate_names(
        "model", {("spec", "models", index, "name"): model.name for index, model in models.items()}
    )


def deployments_differ(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that the deployments of a model have different names."""
    for index, model in models.items():
        path = ("spec", "models", index, "deployments")
        names: dict[Path, str] = {
            (*path, place, "name"): item.name for place, item in enumerate(model.deployments)
        }
        yield from duplicate_names("deployment", names)


def releases_differ(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that no two deployments of different models make the same release name."""
    releases: dict[str, str] = {}
    for deployment in each_deployment(models):
        first = releases.setdefault(deployment.release, deployment.model.name)
        if first != deployment.model.name:
            message = (
                f"makes the release {quote(deployment.release)}, as a deployment of model {quote(first)} "
                "does; rename one of them"
            )
            yield Finding((*deployment.path, "name"), message)


def releases_are_short(models: Mapping[int, Model]) -> Iterator[Finding]:
    """Check that Helm, Dynamo and Kubernetes take the release name with what is appended to it."""
    for deployment in each_deployment(models):
        length = len(deployment.release)
        if length > MAXIMUM_RELEASE:
            message = (
                f"makes the release {quote(deployment.release)} of {length} characters, at most "
                f"{MAXIMUM_RELEASE} are allowed; shorten this name or the model's"
            )
            yield Finding((*deployment.path, "name"), message)
