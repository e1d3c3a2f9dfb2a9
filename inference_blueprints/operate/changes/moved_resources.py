"""Resources with a name that another stack of the platform has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from inference_blueprints.operate.changes.findings import Finding
from inference_blueprints.operate.changes.platform_change import PlatformChange, Resource
from inference_blueprints.operate.changes.template_values import kubernetes_objects
from inference_blueprints.operate.check_results import CheckResult
from inference_catalog.cloudformation_types import cloudformation_types

CHECK = "moved resources"
_MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"


def moved_resources(change: PlatformChange) -> Iterator[Finding]:
    """Find resources that AWS refuses to create because they exist in another stack.

    A name belongs to one resource (the types' `primaryIdentifier`, and for example eksctl#7753 for pod
    identity associations). Objects of a manifest are created with ``kubectl create``, which refuses those
    that exist (aws-cdk, kubectl-handler/apply). It does not matter if the stack that gives a resource away
    is deployed first: then the name is free.
    """
    owners = {
        identity: (stack, logical_id)
        for stack, template in change.deployed.items()
        for logical_id, resource in template.get("Resources", {}).items()
        for identity in _identities(resource)
    }
    for stack, logical_id, resource in change.added_resources():
        for identity in _identities(resource):
            owner, other = owners.get(identity, (stack, ""))
            if owner != stack and not _is_first(change, owner, stack):
                what = " ".join(filter(None, identity))
                message = f"{stack}: {logical_id}: {what} exists, and {owner} has it as {other}"
                yield CheckResult(CHECK, "error", f"{message}; delete it, and deploy again")


def _is_first(change: PlatformChange, owner: str, stack: str) -> bool:
    """Whether a stack is deployed before another one."""
    return stack in change.stacks and change.stacks[owner].level < change.stacks[stack].level


def _identities(resource: Resource) -> Iterator[tuple[str, ...]]:
    """Yield what only one resource can be, without what CloudFormation computes."""
    properties: dict[str, Any] = resource.get("Properties", {})
    if resource["Type"] == _MANIFEST:
        if str(properties.get("Overwrite", False)).lower() != "true":
            yield from kubernetes_objects(properties["Manifest"])
        return
    known = cloudformation_types().get(resource["Type"])
    names = [properties.get(name) for name in known.names] if known else []
    if names and all(isinstance(name, str) for name in names):
        yield resource["Type"], *map(str, names)
