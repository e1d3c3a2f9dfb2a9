"""How many workers of real engines this machine runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from inference_contracts.units import GIB

# Proportional set size of an idle worker of vLLM 0.31.0 behind Dynamo 1.6.1: the program that registers it
# and its scheduler together, and each process that computes, with 1 GiB of KV cache.
_WORKER_GIB = 1.2
_RANK_GIB = 1.8
# The same of a server of LMCache 0.5.6, with its memory for KV cache (`connectors.LMCACHE_GIB`).
_LMCACHE_GIB = 1.5
# The emulator, frontends, batch's workers, and other programs.
_RESERVED_GIB = 4.0


@dataclass(frozen=True, slots=True)
class Machine:
    """Memory in GiB, and number of processors, of a machine."""

    memory_gib: float
    processors: int

    @classmethod
    def this(cls) -> Machine:
        """Return this machine."""
        return cls(psutil.virtual_memory().total / GIB, psutil.cpu_count() or 1)


@dataclass(frozen=True, slots=True)
class WantedWorkers:
    """Workers of one role."""

    replicas: int
    """Number in the plan."""
    ranks: int
    """Processes of this machine that compute in each."""
    lmcache: bool = False
    """Whether each has a server of LMCache."""

    @property
    def gib(self) -> float:
        """Memory of one worker."""
        return _WORKER_GIB + self.ranks * _RANK_GIB + self.lmcache * _LMCACHE_GIB


def needed_gib(roles: Sequence[WantedWorkers]) -> float:
    """Return the memory of a machine that runs one worker per role, in GiB."""
    return _RESERVED_GIB + sum(role.gib for role in roles)


def replicas_here(roles: Sequence[WantedWorkers], machine: Machine) -> tuple[int, ...]:
    """Return the number of workers of each role: one each, then more in turn while memory is left.

    A role has at most two workers, or one per processor, so that their start takes minutes and not hours.
    """
    maximum = max(2, machine.processors)
    counts = [1] * len(roles)
    left = machine.memory_gib - needed_gib(roles)
    grown = True
    while grown:
        grown = False
        for index, role in enumerate(roles):
            if counts[index] < min(role.replicas, maximum) and role.gib <= left:
                counts[index] += 1
                left -= role.gib
                grown = True
    return tuple(counts)
