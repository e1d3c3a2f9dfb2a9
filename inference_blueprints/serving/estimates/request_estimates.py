"""Figures computed from the stated workload: requests, their share of workers, and frontends."""

from __future__ import annotations

import math
from dataclasses import dataclass

import inference_catalog as catalog
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec import types as spec
from inference_contracts.units import MIB_PER_GIB


def accelerators(deployment: spec.Deployment) -> int:
    """Return the accelerators of all workers of a deployment. Requests are divided in proportion to them."""
    return sum(each.maximum * each.accelerators for each in deployment.workers.values())


def deployment_requests_per_second(model: spec.Model, deployment: spec.Deployment) -> float:
    """Return the requests per second of a deployment at the model's peak."""
    share = accelerators(deployment) / sum(accelerators(each) for each in model.deployments)
    return model.workload.peak_requests_per_second * share


def worker_requests_per_second(resolved: ResolvedWorkers, replicas: int) -> float:
    """Return the requests per second of one worker of a role at the peak. Each request passes every role.

    replicas: Number of workers that share the deployment's requests.
    """
    return deployment_requests_per_second(resolved.model, resolved.deployment) / replicas


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


#: Ratio of the longest to the mean request. In the public Mooncake conversation trace, the 95th
#: percentile of input is 3.3 times its mean (output: 2.0 times).
TAIL_FACTOR = 4

#: Latencies assumed if the blueprint states no objective: reading speed, and one second to the first token.
_TIME_PER_OUTPUT_TOKEN_MS = 50.0
_TIME_TO_FIRST_TOKEN_MS = 1000.0

_LENGTH_STEP = 1024
#: Assumed time of a step for a million pixels, six times that of the published speed of images.
_SECONDS_PER_STEP = 1.0
_MEGAPIXEL = 1e6


def longest_request_tokens(workload: spec.Workload) -> int:
    """Return the longest request that a worker must accept, prompt plus answer, in tokens.

    Four times the means, rounded up to a multiple of 1024: the tail of real traffic fits, and a stray
    request cannot fill the KV cache.
    """
    tokens = TAIL_FACTOR * (workload.input_tokens + workload.output_tokens)
    return -(-tokens // _LENGTH_STEP) * _LENGTH_STEP


def unique_tokens(workload: spec.Workload) -> float:
    """Return the mean unshared tokens of a request: those that it adds to the KV cache."""
    return workload.input_tokens * (1.0 - workload.shared_prefix_ratio) + workload.output_tokens


def request_seconds(workload: spec.Workload, objectives: spec.Objectives) -> float:
    """Return the longest mean duration of a request under its objectives, in seconds.

    A request for images has no objective: a step of a million pixels is assumed to take a second.
    """
    if images := workload.images:
        return images.per_request * images.steps * images.pixels / _MEGAPIXEL * _SECONDS_PER_STEP
    return prefill_seconds(objectives) + decode_seconds(workload, objectives)


def prefill_seconds(objectives: spec.Objectives) -> float:
    """Return the longest time to the first token under the objectives, in seconds."""
    return (objectives.time_to_first_token_p90_ms or _TIME_TO_FIRST_TOKEN_MS) / 1000.0


def decode_seconds(workload: spec.Workload, objectives: spec.Objectives) -> float:
    """Return the longest duration of a mean answer after its first token under the objectives, in seconds."""
    each = objectives.time_per_output_token_p90_ms or _TIME_PER_OUTPUT_TOKEN_MS
    return workload.output_tokens * each / 1000.0


def longest_stream_seconds(workload: spec.Workload, objectives: spec.Objectives) -> int:
    """Return the longest duration of a stream, in seconds: between half a minute and ten minutes."""
    return round(min(600.0, max(30.0, TAIL_FACTOR * request_seconds(workload, objectives))))
