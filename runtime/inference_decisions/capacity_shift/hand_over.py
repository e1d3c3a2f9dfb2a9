"""Which part of a decision about a shared pool can be carried out now, where nothing pre-empts.

The scheduler of Kubernetes ends workers of batch if one of real time finds no place. Amazon ECS never does: a
task that finds no place waits until one ends ("How Amazon ECS places tasks on container instances"). With a
capacity provider it waits as PROVISIONING, for at most 10 to 30 minutes and with at most 100 others
(aws/containers-roadmap#2381), and makes managed scaling ask for hosts. In a deployment, tasks that fail to
find a place count for the circuit breaker (aws/containers-roadmap#1273, #1583).

So nobody asks for a task before its accelerators are free. Who gives way stops first; what stops keeps its
accelerators until it has stopped. Then real time starts, and batch gets what is left. If real time waits for
more than what is stopping, because a host is lost or what is free is scattered over hosts, batch gives way
until it fits.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleNow:
    """What was decided about a role, and what of it runs."""

    name: str
    accelerators: int
    """Accelerators of one worker, all on one host."""
    least: int
    """Smallest number of the blueprint."""
    floor: int
    ceiling: int
    """`floor`, `ceiling`: The decided range. Of workers that serve batch alone, both are the number."""
    wanted: int
    """Workers that are asked for now."""
    placed: int
    """Those of `wanted` that have a host."""
    batch_only: bool
    order: int
    """Place in the order of the decision, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HostsNow:
    """The hosts of a pool that take workers."""

    free: Sequence[int]
    """Free accelerators of each. What stops still has its own."""
    used: int
    """Accelerators that are taken, also by workers whose number is fixed."""
    fixed: int
    """Accelerators of all workers whose number is fixed."""


@dataclass(frozen=True, slots=True)
class HandOver:
    """What can be carried out now."""

    ranges: Mapping[str, tuple[int, int]]
    """Smallest and largest number of each role, by name."""
    waits: int
    """Accelerators for which real time waits."""


def hand_over(hosts: HostsNow, roles: Sequence[RoleNow], *, overdue: bool) -> HandOver:
    """Return the ranges that hold until the next run.

    A role of real time never gets fewer than are asked for already: ECS chooses which tasks end, and it might
    choose those that serve.

    roles: All roles that may move in the pool.
    overdue: Whether real time has waited for longer than a hand-over takes. Then what stops may never end,
        and batch gives way instead of it.
    """
    ordered = sorted(roles, key=lambda each: each.order)
    live = [each for each in ordered if not each.batch_only]
    batch = [each for each in ordered if each.batch_only]
    # Accelerators of others than the workers that stay: of fixed workers, and of what stops.
    others = hosts.used - sum(each.placed * each.accelerators for each in ordered)
    stopping = max(0, others - hosts.fixed)
    stopping += sum(max(0, each.placed - each.ceiling) * each.accelerators for each in ordered)
    # Fixed workers, and those of hosts that drain, need their places again.
    room = _Room([*hosts.free], sum(hosts.free) - max(0, hosts.fixed - others))
    allowed = {each.name: min(each.placed, each.ceiling) for each in ordered}
    for each in live:
        allowed[each.name] += room.take(each.accelerators, each.floor - allowed[each.name])
    waits = sum(max(0, each.floor - allowed[each.name]) * each.accelerators for each in live)
    if waits:
        _give_way(batch, allowed, waits if overdue else waits - stopping)
    else:
        for each in (*batch, *live):
            allowed[each.name] += room.take(each.accelerators, each.ceiling - allowed[each.name])
    return HandOver({each.name: _range(each, allowed[each.name]) for each in roles}, waits)


def _give_way(batch: Sequence[RoleNow], allowed: dict[str, int], missing: int) -> None:
    """Take workers of batch, of the roles that come last first."""
    for each in reversed(batch):
        number = min(allowed[each.name] - each.least, math.ceil(missing / each.accelerators))
        if number > 0:
            allowed[each.name] -= number
            missing -= number * each.accelerators


def _range(role: RoleNow, allowed: int) -> tuple[int, int]:
    if role.batch_only:
        number = max(role.least, allowed)
        return number, number
    ceiling = max(role.least, min(role.ceiling, max(allowed, role.wanted)))
    return min(role.floor, ceiling), ceiling


class _Room:
    """Free accelerators of hosts.

    free: Of each host. It is changed.
    left: How many of them may be taken.
    """

    def __init__(self, free: list[int], left: int) -> None:
        self._free, self._left = free, left

    def take(self, size: int, wanted: int) -> int:
        """Take places for workers of a size on the fullest hosts, and return how many there were."""
        taken = 0
        while taken < wanted and size <= self._left:
            fitting = [place for place, free in enumerate(self._free) if free >= size]
            if not fitting:
                break
            fullest = min(fitting, key=lambda place: self._free[place])
            self._free[fullest] -= size
            self._left -= size
            taken += 1
        return taken
