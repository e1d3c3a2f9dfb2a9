"""What a blueprint runs while it is loaded: this library's releases, or those of its lock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from inference_blueprints.catalog.releases import Releases, shipped_releases
from inference_blueprints.errors import Finding
from inference_blueprints.spec.lock.lock import Lock
from inference_blueprints.spec.types import Cluster
from inference_blueprints.spec.wording import quote


@dataclass(frozen=True, slots=True)
class Pins:
    """Releases and commits.

    Parameters
    ----------
    releases
        What runs.
    lock
        Where they come from; None for this library's own.
    upgrade
        Command that changes them.
    """

    releases: Releases = field(default_factory=shipped_releases)
    lock: Lock | None = None
    upgrade: str = "blueprints upgrade FILE"

    @property
    def commits(self) -> Mapping[str, str]:
        """Commit by what a blueprint asks the Hub for."""
        return self.lock.models if self.lock else {}


#: Of a blueprint without a lock.
NO_PINS = Pins()


def pinned_version(cluster: Cluster, pins: Pins) -> Iterator[Finding]:
    """Yield an error where the blueprint names another Kubernetes than its lock.

    Parameters
    ----------
    cluster
        The blueprint's section.
    pins
        The lock.
    """
    pinned = pins.lock.kubernetes if pins.lock else None
    if pinned and cluster.eks and cluster.eks.version != pinned:
        message = (
            f"got {quote(cluster.eks.version)}, the lock beside the blueprint holds {quote(pinned)}; "
            f"`{pins.upgrade}` checks the change and pins it, or set the version back"
        )
        yield Finding(("spec", "cluster", "eks", "version"), message)
