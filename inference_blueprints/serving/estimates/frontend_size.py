"""Number and size of Dynamo's frontends, from the stated workload and the measured cost of a request."""

from __future__ import annotations

import math
from dataclasses import dataclass

import inference_catalog as catalog
from inference_blueprints.serving.estimates.traffic import deployment_requests_per_second
from inference_blueprints.spec import types as spec
from inference_contracts.units import MIB_PER_GIB

_MIN_REPLICAS = 2
#: Half of the processor time is free at the peak: one of two frontends can carry it alone for a while.
_BUSY_SHARE = 0.5


@dataclass(frozen=True, slots=True)
class FrontendSize:
    """Frontends of a deployment."""

    replicas: int
    """Number of frontends."""
    cpu: int
    memory_mib: int
    """`cpu`, `memory_mib`: vCPUs and memory in MiB of each."""


def busy_cpu(model: spec.Model, deployment: spec.Deployment) -> float:
    """Return the vCPUs that the frontends of a deployment use together at the peak."""
    load, workload = catalog.frontend_load("dynamo"), model.workload
    each = load.processor_seconds(workload.input_tokens, workload.output_tokens)
    return deployment_requests_per_second(model, deployment) * each


def frontend_size(model: spec.Model, deployment: spec.Deployment) -> FrontendSize:
    """Return number and size of a deployment's frontends; keys of the blueprint count first."""
    load, given = catalog.frontend_load("dynamo"), model.frontend or spec.Frontend()
    needed = busy_cpu(model, deployment) / _BUSY_SHARE
    largest = given.cpu or load.largest_cpu
    replicas = given.replicas or max(_MIN_REPLICAS, math.ceil(needed / largest))
    cpu = given.cpu or max(1, math.ceil(needed / replicas))
    memory = given.memory_gib * MIB_PER_GIB if given.memory_gib else cpu * load.memory_mib_per_cpu
    return FrontendSize(replicas, cpu, memory)
