"""EC2 hardware: accelerators, instance types and prices."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from inference_catalog.entry_builder import build_entry
from inference_contracts.records import dataclass
from inference_contracts.units import MIB


@dataclass(frozen=True, slots=True)
class Accelerator:
    """What workers compute on: a kind of accelerator device, or the processors of an instance without one."""

    name: str
    """Key in the catalogue, such as ``l40s``."""
    manufacturer: Literal["nvidia", "aws", "cpu"]
    """``nvidia``, ``aws``, or ``cpu`` for the processors of an instance."""
    memory_mib: int
    """Memory of one device in MiB, as EC2's ``DescribeInstanceTypes`` reports it; of processors, the memory
    of the instance."""
    usable_mib: int
    """Memory that a framework can use, in MiB: the driver keeps the rest."""
    resource_name: Literal["nvidia.com/gpu", "aws.amazon.com/neuron"] | None
    """Kubernetes resource, such as ``nvidia.com/gpu``. None for processors, which nothing hands out."""
    performance_system: str | None
    """Name in aiconfigurator's measured operator database; None if it has no data."""
    gpudirect_rdma: bool
    """Whether the network adapter reads the device's memory directly, so that KV cache is not copied through
    host memory."""
    compute_capability: str | None = None
    """NVIDIA's compute capability, such as ``8.9``; None for others."""
    cores: int = 1
    """Parts with a memory of their own that a framework splits layers over: 1 for a GPU, the (logical)
    NeuronCores for a device of AWS."""

    @property
    def core(self) -> Accelerator:
        """One core with its part of the memory, as one process of the engine sees it; a GPU is its own."""
        if self.cores == 1:
            return self
        return replace(
            self,
            name=f"NeuronCore of {self.name}",
            memory_mib=self.memory_mib // self.cores,
            usable_mib=self.usable_mib // self.cores,
            cores=1,
        )

    @property
    def memory_bytes(self) -> int:
        """Memory of one device that a framework can use, in bytes."""
        return self.usable_mib * MIB


@dataclass(frozen=True, slots=True)
class InstanceType:
    """An EC2 instance type."""

    name: str
    family: str
    """`name`, `family`: Such as ``g6e.2xlarge`` and ``g6e``."""
    architecture: Literal["amd64", "arm64"]
    """``amd64`` or ``arm64``."""
    vcpu: int
    memory_mib: int
    """`vcpu`, `memory_mib`: vCPUs, and memory of the host in MiB."""
    accelerator: Accelerator | None
    """Kind of its devices; else its processors, as one device; None if the catalogue does not know them."""
    accelerator_count: int
    """Devices that a pod can request, in the unit of ``accelerator.resource_name``; 1 for processors."""
    local_nvme_gb: int | None
    """Instance store in GB; None if it has none."""
    ebs_bandwidth_mbps: int
    network_bandwidth_mbps: int
    """`ebs_bandwidth_mbps`, `network_bandwidth_mbps`: In Mbit/s; the EBS figure is the maximum."""
    network_cards: int
    efa_interfaces: int
    """`network_cards`, `efa_interfaces`: Number of cards, and largest number of EFA interfaces; 0 without
    EFA."""
    max_pods: int
    """Most pods per node under the VPC CNI without prefix delegation."""
    usd_per_hour: float | None
    """On-demand price in the reference region; None if unknown."""

    @property
    def device_resource(self) -> str | None:
        """Kubernetes resource of its accelerator devices; None if it has none."""
        return self.accelerator.resource_name if self.accelerator else None

    @property
    def device_count(self) -> int:
        """Accelerator devices, not counting processors."""
        return self.accelerator_count if self.device_resource else 0


@dataclass(frozen=True, slots=True)
class PriceTable:
    """On-demand prices of one region."""

    region: str
    """Region of the prices. Other regions have other prices."""
    date: str
    source: str
    """`date`, `source`: Date and source of the prices."""
    usd_per_hour: Mapping[str, float]
    """Instance type to US dollars per hour, Linux, shared tenancy. Types without a known price are absent."""


# Processors of instance types without accelerators, on which llama.cpp computes models.

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
