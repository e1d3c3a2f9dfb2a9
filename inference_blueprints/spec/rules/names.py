"""Rules on names: they are unique, and the names derived from them are within the limits of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.rules.deployments import each_deployment
from inference_blueprints.spec.rules.duplicate_names import duplicate_names
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import Path, quote
from inference_contracts.errors import Finding

#: Dynamo's operator takes graph and service names of 45 characters together (ai-dynamo/dynamo,
#: `validateServiceNameLength`), and the longest service is called `frontend`. With the hashes of a
#: Deployment's pods that makes 63, the length of a Kubernetes label; Helm's 53 is above it.
MAXIMUM_RELEASE = 45 - len("frontend")


def pools_differ(spec: Spec) -> Iterator[Finding]:
    """Check that pools have different names."""
    yield from duplicate_names(
        "pool", {("spec", "pools", index, "name"): pool.name for index, pool in usable(spec.pools)}
    )


def models_differ(spec: Spec) -> Iterator[Finding]:
    """Check that models have different names."""
    yield from duplicate_names(
        "model", {("spec", "models", index, "name"): model.name for index, model in usable(spec.models)}
    )


def deployments_differ(spec: Spec) -> Iterator[Finding]:
    """Check that the deployments of a model have different names."""
    for index, model in usable(spec.models):
        path = ("spec", "models", index, "deployments")
        names: dict[Path, str] = {
            (*path, place, "name"): item.name for place, item in usable(model.deployments)
        }
        yield from duplicate_names("deployment", names)


def releases_differ(spec: Spec) -> Iterator[Finding]:
    """Check that deployments of different models have different release names."""
    releases: dict[str, str] = {}
    for deployment in each_deployment(spec):
        first = releases.setdefault(deployment.release, deployment.model.name)
        if first != deployment.model.name:
            message = (
                f"has the release name {quote(deployment.release)}, like a deployment of model "
                f"{quote(first)}; "
                "rename one of them"
            )
            yield Finding((*deployment.path, "name"), message)


def releases_are_short(spec: Spec) -> Iterator[Finding]:
    """Check that release names are short enough for Helm, Dynamo and Kubernetes."""
    for deployment in each_deployment(spec):
        length = len(deployment.release)
        if length > MAXIMUM_RELEASE:
            message = (
                f"has the release name {quote(deployment.release)} of {length} characters, at most "
                f"{MAXIMUM_RELEASE} are allowed; shorten this name or the model's"
            )
            yield Finding((*deployment.path, "name"), message)
