"""Processors of instance types without accelerators, on which llama.cpp computes models."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType

from inference_catalog.entry_builder import build_entry
from inference_catalog.hardware import Accelerator

_FILE = Path(__file__).resolve().parent / "data" / "processors.json"


@dataclass(frozen=True, slots=True)
class Processor:
    """The processor of instance families."""

    name: str
    """Key in the catalogue, such as ``graviton4``."""
    families: tuple[str, ...]
    """Instance families that have it."""
    cores_per_socket: int
    """Physical cores of one socket."""
    threads_per_core: int
    """vCPUs of one core: 2 with simultaneous multithreading."""
    memory_bytes_per_second: int
    """Peak of all memory channels of one socket."""

    def cores(self, vcpu: int) -> int:
        """Return the physical cores of an instance.

        Parameters
        ----------
        vcpu
            Its vCPUs.
        """
        return max(1, vcpu // self.threads_per_core)

    def sockets(self, vcpu: int) -> int:
        """Return the sockets of an instance, each with its own memory (NUMA).

        Parameters
        ----------
        vcpu
            Its vCPUs.
        """
        return -(-self.cores(vcpu) // self.cores_per_socket)

    def bytes_per_second(self, vcpu: int) -> float:
        """Return an instance's part of the peak memory bandwidth, by its part of the socket's cores.

        Parameters
        ----------
        vcpu
            Its vCPUs.
        """
        return self.memory_bytes_per_second * self.cores(vcpu) / self.cores_per_socket

    def accelerator(self, memory_mib: int) -> Accelerator:
        """Return the processor as an accelerator: one per instance, with the instance's memory.

        Parameters
        ----------
        memory_mib
            Memory of the instance, in MiB.
        """
        return Accelerator(
            name=self.name,
            manufacturer="cpu",
            memory_mib=memory_mib,
            usable_mib=memory_mib,
            resource_name=None,
            performance_system=None,
            gpudirect_rdma=False,
        )


@cache
def processors() -> Mapping[str, Processor]:
    """Return the processors on which models are computed, by name."""
    entries = json.loads(_FILE.read_text(encoding="utf-8"))["processors"]
    return MappingProxyType(
        {name: build_entry(Processor, {"name": name, **entry}, _FILE) for name, entry in entries.items()}
    )


def processor_of(family: str) -> Processor | None:
    """Return the processor of an instance family; None if the catalogue does not know it.

    Parameters
    ----------
    family
        Such as ``c8g``.
    """
    return next((each for each in processors().values() if family in each.families), None)
