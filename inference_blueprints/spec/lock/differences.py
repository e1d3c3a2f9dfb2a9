"""What is different between two locks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from inference_blueprints.spec.lock.lock import Lock, Pin

#: What the name of a held pool follows in a change.
HELD_POOL = "held pool "


@dataclass(frozen=True, slots=True)
class Change:
    """One pin that changes.

    Parameters
    ----------
    part
        What is pinned, such as ``chart karpenter``.
    old, new
        Version, digest or commit; None where nothing is pinned.
    """

    part: str
    old: str | None
    new: str | None


def differences(old: Lock | None, new: Lock) -> list[Change]:
    """Return every pin that is not the same, in the order in which a deployment comes to it.

    Parameters
    ----------
    old
        The lock that there is; None where there is none.
    new
        The lock that there is to be.
    """
    before, after = _pins(old) if old else {}, _pins(new)
    return [
        Change(part, before.get(part), after.get(part))
        for part in [*after, *(part for part in before if part not in after)]
        if before.get(part) != after.get(part)
    ]


def _pins(lock: Lock) -> dict[str, str]:
    """Return everything that a lock pins, by what it is."""
    single = {"Kubernetes": lock.kubernetes, "Bottlerocket": lock.bottlerocket}
    return {
        **{part: version for part, version in single.items() if version},
        **{f"add-on {name}": version for name, version in lock.add_ons.items()},
        **_versions("chart", lock.charts),
        **_versions("engine", lock.engines),
        **{f"model {asked}": commit for asked, commit in lock.models.items()},
        **{
            f"{HELD_POOL}{name}": f"{image.kubernetes}, {image.bottlerocket}"
            for name, image in lock.held_pools.items()
        },
    }


def _versions(noun: str, pins: Mapping[str, Pin]) -> dict[str, str]:
    """Return versions and the digests that are known."""
    found = {}
    for name, pin in pins.items():
        found[f"{noun} {name}"] = pin.version
        if pin.digest:
            found[f"{noun} {name}, digest"] = pin.digest
    return found
