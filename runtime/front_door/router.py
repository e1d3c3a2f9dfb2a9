"""Chooses the target of a request: by conversation, and by which targets have room.

A target has room while the requests in progress there are fewer than what its workers answer at once, or
than it takes by what it has refused (`target_load`), times a share that grows with the priority of the
request: 0.8 for priority 0, 1.5 for 100. So the requests of the lowest priority are refused first, and those
of batch leave room in which interactive ones do not wait.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from inference_contracts.door_configuration import DoorModel, DoorTarget

_LEAST_SHARE: Final = 0.8
_SHARE_OF_PRIORITY: Final = 0.7 / 100


class TargetLoad(Protocol):
    """What is known of the targets' load."""

    def in_progress(self, cluster: str) -> float:
        """Return the requests in progress at a target, of all replicas."""

    def bound(self, cluster: str, most: float) -> float:
        """Return how many requests may be in progress at a target, at most so many."""

    def seconds_until(self, cluster: str, fewer: float) -> int:
        """Return the seconds until so many requests are expected to have ended there."""


@dataclass(frozen=True, slots=True)
class NoRoom:
    """No target has room."""

    retry_after: int
    """Seconds until one is expected to have room."""


def most_in_progress(target: DoorTarget, priority: int, load: TargetLoad) -> float:
    """Return how many requests may be in progress at a target for one more of a priority to be admitted."""
    if target.requests_at_once is None:
        return float("inf")
    bound = load.bound(target.cluster, target.requests_at_once)
    return max(1.0, bound * (_LEAST_SHARE + _SHARE_OF_PRIORITY * priority))


def home_of(model: DoorModel, conversation: str) -> DoorTarget:
    """Return the target of a conversation: the same for all its requests, at all replicas.

    Weighted rendezvous hashing: a target whose weight grows takes conversations of others, and only those
    move (Schindelhauer and Schomaker, "Weighted Distributed Hash Tables", 2005).
    """
    weighted = [target for target in model.targets if target.weight > 0] or [*model.targets]
    if len(weighted) == 1:
        return weighted[0]
    return min(weighted, key=lambda target: _distance(target, model.name, conversation))


def choose_target(
    model: DoorModel, conversation: str, priority: int, load: TargetLoad
) -> DoorTarget | NoRoom:
    """Return the conversation's own target, else the first one that has room, else how long to wait."""
    home = home_of(model, conversation)
    if load.in_progress(home.cluster) < most_in_progress(home, priority, load):
        return home
    others = [target for target in model.targets if target is not home]
    for target in others:
        if load.in_progress(target.cluster) < most_in_progress(target, priority, load):
            return target
    waits = [
        load.seconds_until(
            each.cluster, load.in_progress(each.cluster) - most_in_progress(each, priority, load) + 1
        )
        for each in (home, *others)
    ]
    return NoRoom(min(waits))


def _distance(target: DoorTarget, model: str, conversation: str) -> float:
    text = f"{model}\0{target.cluster}\0{conversation}".encode()
    number = int.from_bytes(hashlib.blake2b(text, digest_size=8).digest())
    return -math.log((number + 1) / 2**64) / (target.weight or 1)


def models_by_name(models: tuple[DoorModel, ...]) -> Mapping[str, DoorModel]:
    """Return the models by their names and aliases."""
    return {name: model for model in models for name in (model.name, *model.aliases)}
