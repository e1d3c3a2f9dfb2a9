"""Rules on the number, zone, labels and taints of nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator

import inference_catalog as catalog
from inference_blueprints.spec import formats
from inference_blueprints.spec.holes import usable
from inference_blueprints.spec.types import Spec
from inference_blueprints.spec.wording import allowed, duplicates, quote, suggestion
from inference_blueprints.spec.zones import platform_zones
from inference_contracts.errors import Finding

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


def minimum_is_within_the_maximum(spec: Spec) -> Iterator[Finding]:
    """Check that the minimum of nodes is not above the maximum."""
    for index, pool in usable(spec.pools):
        if pool.nodes.min > pool.nodes.max:
            message = f"got {pool.nodes.min}, 'max' is {pool.nodes.max}; lower it, or raise 'max'"
            yield Finding(("spec", "pools", index, "nodes", "min"), message)


def pool_zone_is_the_platforms(spec: Spec) -> Iterator[Finding]:
    """Check that the zone of a pool is a zone of the platform."""
    if spec.environment.region not in catalog.regions():
        return
    zones = platform_zones(spec.environment)
    for index, pool in usable(spec.pools):
        zone = pool.availability_zone
        if zone is not None and zone not in zones:
            advice = suggestion(zone, zones)
            if zone in catalog.regions()[spec.environment.region]:
                advice = "; use one of them, or list all zones in `environment.availabilityZones`"
            message = f"got {quote(zone)}, the platform's {allowed('zone', zones)}{advice}"
            yield Finding(("spec", "pools", index, "availabilityZone"), message)


def labels_are_the_users(spec: Spec) -> Iterator[Finding]:
    """Check that Kubernetes accepts the labels and the platform does not set them itself."""
    for index, pool in usable(spec.pools):
        for key in pool.labels:
            path = ("spec", "pools", index, "labels", key)
            if not _QUALIFIED_NAME.fullmatch(key):
                yield Finding(path, f"got the key {quote(key)}, expected {_key_words()}")
            elif _is_reserved(key):
                yield Finding(path, _reserved_words(key))


def taints_are_the_users(spec: Spec) -> Iterator[Finding]:
    """Check that the platform does not set the taints itself, and that they differ."""
    for index, pool in usable(spec.pools):
        path = ("spec", "pools", index, "taints")
        for place, taint in usable(pool.taints):
            if _is_reserved(taint.key):
                yield Finding((*path, place, "key"), _reserved_words(taint.key))
        for place, name in duplicates(f"{taint.key}:{taint.effect}" for taint in pool.taints):
            yield Finding((*path, place), f"got {quote(name)} twice; name each key and effect once")


def _is_reserved(key: str) -> bool:
    """Return whether a key is in a reserved domain or a subdomain of one."""
    domain = key.rpartition("/")[0]
    return any(domain == reserved or domain.endswith(f".{reserved}") for reserved in RESERVED_DOMAINS)


def _key_words() -> str:
    """Return the description of a key's format."""
    return formats.DESCRIPTIONS[formats.QUALIFIED_NAME]


def _reserved_words(key: str) -> str:
    """Return the message for a reserved key."""
    domain = key.rpartition("/")[0]
    return f"got {quote(key)}, the platform sets keys of {quote(domain)}; use your own domain"
