"""Rules on names: they are unique, and the names derived from them are within the limits of Kubernetes."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.spec.deployments import each_deployment
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.rule import duplicate_names, rule
from inference_blueprints.spec.types import Spec, Workload
from inference_blueprints.spec.wording import Path, quote
from inference_contracts.errors import Finding

#: Dynamo's operator takes graph and service names of 45 characters together (ai-dynamo/dynamo,
#: `validateServiceNameLength`), and the longest service is called `frontend`. With the hashes of a
#: Deployment's pods that makes 63, the length of a Kubernetes label; Helm's 53 is above it.
MAXIMUM_RELEASE = 45 - len("frontend")


@rule
def pools_differ(spec: Spec) -> Iterator[Finding]:
    """Check that pools have different names."""
    yield from duplicate_names(
        "pool", {("spec", "pools", index, "name"): pool.name for index, pool in usable(spec.pools)}
    )


@rule
def models_differ(spec: Spec) -> Iterator[Finding]:
    """Check that models have different names."""
    yield from duplicate_names(
        "model", {("spec", "models", index, "name"): model.name for index, model in usable(spec.models)}
    )


@rule
def deployments_differ(spec: Spec) -> Iterator[Finding]:
    """Check that the deployments of a model have different names."""
    for index, model in usable(spec.models):
        path = ("spec", "models", index, "deployments")
        names: dict[Path, str] = {
            (*path, place, "name"): item.name for place, item in usable(model.deployments)
        }
        yield from duplicate_names("deployment", names)


@rule
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


@rule
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


#: Each deployment is a target group of the only load balancer, whose quota cannot be raised
#: (https://docs.aws.amazon.com/elasticloadbalancing/latest/application/load-balancer-limits.html).
MAXIMUM_DEPLOYMENTS = 100


@rule
def deployments_fit_the_load_balancer(spec: Spec) -> Iterator[Finding]:
    """Check that the load balancer has target groups for all deployments."""
    count = sum(1 for _ in each_deployment(spec))
    if count > MAXIMUM_DEPLOYMENTS:
        message = (
            f"got {count} deployments in all, the models' load balancer supports {MAXIMUM_DEPLOYMENTS}; "
            "create a second platform for some of the models"
        )
        yield Finding(("spec", "models"), message)


@rule
def one_topology(spec: Spec) -> Iterator[Finding]:
    """Check that a deployment is either aggregated or disaggregated."""
    for placed in each_deployment(spec):
        given = [
            quote(key)
            for key in ("aggregated", "disaggregated")
            if getattr(placed.deployment, key) is not None
        ]
        if len(given) != 1:
            got = " and ".join(given) or "neither"
            yield Finding(placed.path, f"got {got}, expected exactly one of 'aggregated', 'disaggregated'")


@rule
def requests_fit_the_context(spec: Spec) -> Iterator[Finding]:
    """Check that a mean prompt and answer fit the context of the model."""
    for index, model in usable(spec.models):
        entry = model.weights.entry
        if entry and not entry.pipeline and _tokens(model.workload) > entry.context_length:
            message = (
                f"{_sum(model.workload)}, the context of {entry.name} is {entry.context_length}; "
                "lower inputTokens or outputTokens, or serve a model with a longer context"
            )
            yield Finding(("spec", "models", index, "workload"), message)


def _tokens(workload: Workload) -> int:
    return workload.input_tokens + workload.output_tokens


def _sum(workload: Workload) -> str:
    """Return the arithmetic."""
    terms = f"inputTokens {workload.input_tokens} + outputTokens {workload.output_tokens}"
    return f"{terms} = {_tokens(workload)} tokens"
