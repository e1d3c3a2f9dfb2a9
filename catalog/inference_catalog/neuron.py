"""What AWS documents about serving with vLLM on its accelerators."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from inference_catalog.entry_builder import build_entry
from inference_catalog.hardware import Accelerator, InstanceType
from inference_contracts.records import dataclass

_FILE = Path(__file__).resolve().parent / "data" / "neuron.json"


@dataclass(frozen=True, slots=True)
class NeuronRoute:
    """One of the two ways in which vLLM runs on Neuron, each with its own image."""

    name: str
    """``plugin`` is the vLLM Neuron plug-in, ``nxd`` vLLM with NxD Inference."""
    accelerators: tuple[str, ...]
    """Accelerators that use it here."""
    architectures: Mapping[str, str]
    """Model classes that it serves, each with the document that says so."""
    weight_types: tuple[str, ...]
    """Types of weights that it loads as they are stored."""
    read_from_files: Mapping[str, str]
    """Model classes that it loads from files only, not by their name on the Hub, each with the source."""
    left_out: Mapping[str, str]
    """Model classes that AWS documents and that are not planned here, each with the reason."""
    prefix_caching: bool
    prefix_caching_reason: str
    """`prefix_caching`, `prefix_caching_reason`: Whether the prefix cache is on, and why."""
    block_size: int
    """Tokens of a block of the KV cache; 0 if each sequence has one block."""
    kv_share: float
    """Largest part of the memory for the engine that the KV cache may take."""
    least_kv_gib: float
    """Memory of the KV cache below which a core's server does not start, in GiB."""
    artefacts_variable: str
    """Variable with the folder of compiled artefacts."""
    cores_variable: str
    cores_source: str
    """`cores_variable`, `cores_source`: Variable with the cores of a server that shares its instance with
    others, such as ``16-31``, and the documents that say so."""
    disaggregation: str
    """Why prefill and decode cannot be separate here."""


@dataclass(frozen=True, slots=True)
class CompileTime:
    """A published time of a first compilation."""

    route: str
    """The way of serving."""
    model_gb: float
    """Size of the model, in GB."""
    minutes: tuple[float, float]
    """Shortest and longest time, in minutes."""
    source: str
    """Where it is published, and for what."""


def neuron_routes() -> Mapping[str, NeuronRoute]:
    """Return both ways of serving, by name."""
    routes = _document()["routes"].items()
    return MappingProxyType(
        {name: build_entry(NeuronRoute, {"name": name, **entry}, _FILE) for name, entry in routes}
    )


def neuron_route(accelerator: Accelerator) -> NeuronRoute | None:
    """Return the way of serving on an accelerator; None if AWS documents none for it."""
    found = (each for each in neuron_routes().values() if accelerator.name in each.accelerators)
    return next(found, None)


def device_groups(instance_type: InstanceType) -> tuple[int, ...]:
    """Return the numbers of connected devices that one pod may request; empty if any number may."""
    entry = _document()["device_groups"].get(instance_type.family)
    return tuple(entry["sizes"]) if entry and instance_type.accelerator_count > 1 else ()


def compile_times(route: str) -> tuple[CompileTime, ...]:
    """Return the published times of first compilations, the smallest model first."""
    entries = (build_entry(CompileTime, entry, _FILE) for entry in _document()["compile_times"])
    return tuple(sorted((each for each in entries if each.route == route), key=lambda each: each.model_gb))


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return document
