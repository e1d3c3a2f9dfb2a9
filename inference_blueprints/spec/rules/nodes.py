"""Rules on the nodes of a pool: how many are kept, where they are, and what they are marked with."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from inference_blueprints import catalog
from inference_blueprints.errors import Finding
from inference_blueprints.spec import formats
from inference_blueprints.spec.types import Environment, Pool
from inference_blueprints.spec.wording import allowed, duplicates, quote, suggestion
from inference_blueprints.spec.zones import platform_zones

_QUALIFIED_NAME = re.compile(formats.QUALIFIED_NAME)

#: Domains whose keys Kubernetes, Karpenter, device plug-ins and this library set themselves.
RESERVED_DOMAINS = (
    "kubernetes.io",
    "k8s.io",
    "karpenter.sh",
    "karpenter.k8s.aws",
    "amazonaws.com",
    "nvidia.com",
    "inference-blueprints",
)


def minimum_is_within_the_maximum(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that a pool keeps no more nodes than it may hold."""
    for index, pool in pools.items():
        if pool.nodes.min > pool.nodes.max:
            message = f"got {pool.nodes.min}, 'max' is {pool.nodes.max}; lower it, or raise 'max'"
            yield Finding(("spec", "pools", index, "nodes", "min"), message)


def pool_zone_is_the_platforms(pools: Mapping[int, Pool], environment: Environment) -> Iterator[Finding]:
    """Check that a pool's zone is one that the platform has a subnet in."""
    if environment.region not in catalog.regions():
        return
    zones = platform_zones(environment)
    for index, pool in pools.items():
        zone = pool.availability_zone
        if zone is not None and zone not in zones:
            mend = suggestion(zone, zones)
            if zone in catalog.regions()[environment.region]:
                mend = "; take one of them, or name all zones in `environment.availabilityZones`"
            message = f"got {quote(zone)}, the platform's {allowed('zone', zones)}{mend}"
            yield Finding(("spec", "pools", index, "availabilityZone"), message)


def labels_are_the_users(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that Kubernetes accepts the labels and nothing else sets them."""
    for index, pool in pools.items():
        for key in pool.labels:
            path = ("spec", "pools", index, "labels", key)
            if not _QUALIFIED_NAME.fullmatch(key):
                yield Finding(path, f"got the key {quote(key)}, expected {_key_words()}")
            elif _is_reserved(key):
                yield Finding(path, _reserved_words(key))


def taints_are_the_users(pools: Mapping[int, Pool]) -> Iterator[Finding]:
    """Check that nothing else sets the taints, and that none comes twice."""
    for index, pool in pools.items():
        path = ("spec", "pools", index, "taints")
        for place, taint in enumerate(pool.taints):
            if _is_reserved(taint.key):
                yield Finding((*path, place, "key"), _reserved_words(taint.key))
        for place, name in duplicates(f"{taint.key}:{taint.effect}" for taint in pool.taints):
            yield Finding((*path, place), f"got {quote(name)} twice; name each key once with an effect")


def _is_reserved(key: str) -> bool:
    """Return whether a key is of a domain that others set, or of one below it."""
    domain = key.rpartition("/")[0]
    return any(domain == reserved or domain.endswith(f".{reserved}") for reserved in RESERVED_DOMAINS)


def _key_words() -> str:
    """Return what a key looks like."""
    return formats.WORDS[formats.QUALIFIED_NAME]


def _reserved_words(key: str) -> str:
    """Return why the key cannot be taken."""
    domain = key.rpartition("/")[0]
    return f"got {quote(key)}, keys of {quote(domain)} are set by the platform; take a domain of your own"
