"""Differences between two locks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_blueprints.spec.lock.lock import Lock, Pin

#: Prefix of the name of a held pool in a change.
HELD_POOL = "held pool "


@dataclass(frozen=True, slots=True)
class Change:
    """One pin that changes."""

    part: str
    """Name of the pinned component, such as ``chart karpenter``."""
    old: str | None
    new: str | None
    """`old`, `new`: Version, digest or commit; None if nothing is pinned."""


def differences(old: Lock | None, new: Lock) -> list[Change]:
    """Return every pin that differs, in the order of a deployment.

    old: The present lock; None if there is none.
    new: The future lock.
    """
    before, after = _pins(old) if old else {}, _pins(new)
    return [
        Change(part, before.get(part), after.get(part))
        for part in [*after, *(part for part in before if part not in after)]
        if before.get(part) != after.get(part)
    ]


def _pins(lock: Lock) -> dict[str, str]:
    """Return everything that a lock pins, by component."""
    single = {
        "identity": lock.identity,
        "Kubernetes": lock.kubernetes,
        "Bottlerocket": lock.bottlerocket,
        "AL2023": lock.al2023,
    }
    return {
        **{part: version for part, version in single.items() if version},
        **{f"add-on {name}": version for name, version in lock.add_ons.items()},
        **_versions("chart", lock.charts),
        **_versions("engine", lock.engines),
        **{f"model {asked}": commit for asked, commit in lock.models.items()},
        **{
            f"{HELD_POOL}{name}": f"{image.kubernetes}, {image.bottlerocket}, {image.al2023}"
            for name, image in lock.held_pools.items()
        },
    }


def _versions(noun: str, pins: Mapping[str, Pin]) -> dict[str, str]:
    """Return versions and known digests."""
    found = {}
    for name, pin in pins.items():
        found[f"{noun} {name}"] = pin.version
        if pin.digest:
            found[f"{noun} {name}, digest"] = pin.digest
    return found
