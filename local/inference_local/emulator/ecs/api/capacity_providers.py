"""Which capacity providers exist, which a cluster has, and what AWS refuses about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from inference_local.emulator import refusals
from inference_local.emulator.ecs.control.cluster_state import Shape

FARGATE_PROVIDERS = frozenset({"FARGATE", "FARGATE_SPOT"})
_RESERVED = ("aws", "ecs", "fargate")
#: Keys of tags that the metadata of an instance can have (API InstanceLaunchTemplate). The default has them.
_METADATA_KEY = re.compile(r"(?!\.{1,2}$|_index$)[0-9a-zA-Z\-_+=,.@:]{1,255}")


class CapacityProviders:
    """The capacity providers of an account and region.

    used: Returns the capacity providers that services and tasks of a cluster use.
    """

    def __init__(self, used: Callable[[str], Collection[str]]) -> None:
        self._used = used
        #: What CreateCapacityProvider gave, by name.
        self.known: dict[str, Shape] = {}
        self._associated: dict[str, frozenset[str]] = {}

    def create(self, request: Shape) -> None:
        """Keep a capacity provider (CreateCapacityProvider)."""
        name = request["name"]
        if name in self.known:
            raise refusals.PROVIDER_EXISTS.error()
        if name.lower().startswith(_RESERVED):
            raise refusals.PROVIDER_NAME_RESERVED.error()
        group = (request.get("autoScalingGroupProvider") or {}).get("autoScalingGroupArn")
        if group and any(_group(each) == group for each in self.known.values()):
            raise refusals.GROUP_HAS_PROVIDER.error()
        self.known[name] = request

    def delete(self, name: str) -> Shape:
        """Forget a capacity provider and return it (DeleteCapacityProvider)."""
        if name not in self.known:
            raise refusals.PROVIDER_UNKNOWN.error(provider=name)
        clusters = [each for each, names in self._associated.items() if name in names]
        if clusters:
            raise refusals.PROVIDER_ASSOCIATED.error(cluster=clusters[0])
        cluster = _cluster(self.known[name])
        if cluster is not None and name in self._used(cluster):
            raise refusals.PROVIDER_IN_USE.error()
        return self.known.pop(name)

    def associate(self, cluster: str, names: Sequence[str]) -> None:
        """Replace the capacity providers of a cluster (PutClusterCapacityProviders)."""
        for name in names:
            if name in self.known and _cluster(self.known[name]) is not None:
                raise refusals.MANAGED_PROVIDER_ASSOCIATED.error()
            if name not in self.known and name not in FARGATE_PROVIDERS:
                raise refusals.PROVIDER_UNKNOWN.error(provider=name)
        dropped = self._associated.get(cluster, frozenset()) - set(names)
        if dropped & set(self._used(cluster)):
            raise refusals.PROVIDER_IN_USE.error()
        self._associated[cluster] = frozenset(names)

    def demand(self, cluster: str, strategy: Sequence[Shape]) -> None:
        """Check that a service or a task of a cluster may use every provider of a strategy."""
        for each in strategy:
            name = each["capacityProvider"]
            own = name in self.known and _cluster(self.known[name]) == cluster
            if not own and name not in self._associated.get(cluster, ()):
                raise refusals.PROVIDER_NOT_ASSOCIATED.error(provider=name)
            _demand_tag_keys(self.known.get(name, {}))

    def demand_single(self, strategy: Sequence[Shape]) -> None:
        """Check that a service does not mix Managed Instances with other providers (UpdateService)."""
        names = [each["capacityProvider"] for each in strategy]
        if len(names) > 1 and any(_cluster(self.known.get(name, {})) is not None for name in names):
            raise refusals.MANAGED_PROVIDERS_MIXED.error()


def _demand_tag_keys(request: Shape) -> None:
    """Check that EC2 would start hosts of Managed Instances. A service waits forever for those it refuses."""
    managed = request.get("managedInstancesProvider") or {}
    template = managed.get("instanceLaunchTemplate") or {}
    in_metadata = template.get("instanceMetadataTagsPropagation", True)
    if managed.get("propagateTags") != "CAPACITY_PROVIDER" or not in_metadata:
        return
    for tag in request.get("tags") or ():
        if not _METADATA_KEY.fullmatch(tag["key"]):
            raise refusals.INSTANCE_TAG_KEY.error(key=tag["key"])


def demand_forced(before: Sequence[Shape], after: Sequence[Shape], *, forced: bool) -> None:
    """Check that a service whose strategy changes gets a new deployment (UpdateService)."""
    if _shares(before) != _shares(after) and not forced:
        raise refusals.STRATEGY_NOT_FORCED.error()


def demand_network(request: Shape, definition: Shape) -> None:
    """Check that a service has a network configuration only if its tasks have networks of their own."""
    if request.get("networkConfiguration") and definition.get("networkMode") != "awsvpc":
        raise refusals.NETWORK_NOT_VALID.error()


def _shares(strategy: Sequence[Shape]) -> list[tuple[str, int, int]]:
    return sorted(
        (each["capacityProvider"], int(each.get("base") or 0), int(each.get("weight") or 0))
        for each in strategy
    )


def _group(request: Mapping[str, Any]) -> str | None:
    return (request.get("autoScalingGroupProvider") or {}).get("autoScalingGroupArn")


def _cluster(request: Mapping[str, Any]) -> str | None:
    """Return the only cluster of a provider of Managed Instances; None for one of an Auto Scaling group."""
    if not request.get("managedInstancesProvider"):
        return None
    return str(request.get("cluster", "")).rpartition("/")[2]
