"""What a blueprint is loaded with: releases of this library or of its lock, and models of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from inference_blueprints.spec.lock.lock import Lock
from inference_blueprints.spec.types import Cluster
from inference_blueprints.spec.wording import quote
from inference_catalog import Model
from inference_catalog.releases import Releases, shipped_releases
from inference_contracts.errors import Finding


@dataclass(frozen=True, slots=True)
class Pins:
    """Releases, commits and models."""

    releases: Releases = field(default_factory=shipped_releases)
    lock: Lock | None = None
    """Their source; None for this library's releases."""
    upgrade: str = "blueprints upgrade FILE"
    """Command that changes them."""
    models: Mapping[str, Model] = field(default_factory=dict)
    """Entries of models next to the blueprint, by name."""

    @property
    def commits(self) -> Mapping[str, str]:
        """Commit by repository and revision in the blueprint."""
        return self.lock.models if self.lock else {}


#: Pins of a blueprint without a lock.
NO_PINS = Pins()


def pinned_version(cluster: Cluster, pins: Pins) -> Iterator[Finding]:
    """Yield an error if the blueprint has another Kubernetes version than its lock.

    cluster: The blueprint's section.
    pins: The lock.
    """
    pinned = pins.lock.kubernetes if pins.lock else None
    if pinned and cluster.eks and cluster.eks.version != pinned:
        message = (
            f"got {quote(cluster.eks.version)}, the blueprint's lock has {quote(pinned)}; "
            f"run `{pins.upgrade}` to check and pin the change, or set the version back"
        )
        yield Finding(("spec", "cluster", "eks", "version"), message)
