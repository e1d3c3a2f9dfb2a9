"""Checks whether prefill and decode workers, their network and the workload fit each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inference_blueprints.serving.engines.worker_sizing import engine_of
from inference_blueprints.serving.estimates.request_estimates import prefill_seconds
from inference_blueprints.serving.estimates.traffic import deployment_requests_per_second
from inference_blueprints.serving.performance.role_capacity import role_capacity
from inference_blueprints.serving.performance.transfer_time import transfer_seconds
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_contracts.errors import Finding
from inference_contracts.number_text import number

#: A prompt with fewer unshared tokens takes no longer than a few decode steps, so there is nothing to gain.
_SHORT_PROMPT_TOKENS = 1024
#: A transfer that takes this share of the time to the first token causes a warning.
_NOTABLE_SHARE = 0.2


def disaggregation_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Check a disaggregated deployment. An aggregated one has no findings.

    roles: The deployment's workers. Each fits its accelerators.
    Yields: Errors and warnings.
    """
    if len(roles) == 1:
        return
    prefill, decode = roles
    sizes = list(_size_findings(prefill, decode))
    yield from sizes
    if not sizes:
        yield from _transfer_findings(prefill, decode)
        yield from _balance_findings(prefill, decode)
    yield from _worth_findings(prefill)


def _size_findings(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> Iterator[Finding]:
    """Check that each decode device gets its KV heads from one prefill device, if the engine requires it.

    Latent attention is stored whole on every device, so it always passes.
    """
    one, other = prefill.tensor_parallel_size, decode.tensor_parallel_size
    if engine_of(prefill).gathers_heads or prefill.shape.attention == "mla" or other % one == 0:
        return
    message = (
        f"got {other}, must be a multiple of prefill's {one}: each decode device reads its KV heads from one "
        f"prefill device; raise it to {-(-other // one) * one} or lower prefill's"
    )
    yield Finding((*decode.path, "tensorParallelSize"), message)


def _transfer_findings(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the KV cache of a mean prompt moves in a small part of the time to the first token."""
    seconds = transfer_seconds(prefill, decode)
    limit = prefill_seconds(prefill.model.objectives)
    if seconds < _NOTABLE_SHARE * limit:
        return
    path = (*prefill.path, "pool")
    over = "EFA" if prefill.pool.efa and decode.pool.efa else "TCP, without EFA"
    message = (
        f"the transfer of the KV cache of {prefill.model.workload.input_tokens} tokens takes "
        f"{seconds * 1000:.0f} ms over the workers' share of the network ({over}), and the time to the first "
        f"token may be {limit * 1000:.0f} ms; set efa on pools that support it, or use 'aggregated'"
    )
    yield Finding(path, message, "error" if seconds >= limit else "warning")


def _balance_findings(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> Iterator[Finding]:
    """Warn if the capacity of one role within the objectives is below the peak (simulated)."""
    first, second = role_capacity(prefill), role_capacity(decode)
    if first is None or second is None:
        return
    rates = {"prefill": first.objective_requests_per_second, "decode": second.objective_requests_per_second}
    slower = prefill if rates["prefill"] <= rates["decode"] else decode
    faster = "decode" if slower is prefill else "prefill"
    peak = deployment_requests_per_second(prefill.model, prefill.deployment)
    if rates[slower.role] >= peak:
        return
    needed = math.ceil(slower.workers.maximum * peak / rates[slower.role])
    message = (
        f"{slower.role} is the bottleneck (simulated): at the peak of {number(peak)} requests per second, "
        f"its workers serve {number(rates[slower.role])} and those of {faster} {number(rates[faster])}; set "
        f"replicas: {needed}"
    )
    yield Finding((*slower.path, "replicas"), message, "warning")


def _worth_findings(prefill: ResolvedWorkers) -> Iterator[Finding]:
    """Warn if separate prefill workers are not worth their cost."""
    workload = prefill.model.workload
    own = round(workload.input_tokens * (1.0 - workload.shared_prefix_ratio))
    path = prefill.path[:-1]
    if own < _SHORT_PROMPT_TOKENS:
        message = (
            f"prompts have {own} unshared tokens; below {_SHORT_PROMPT_TOKENS} the transfer and the second "
            "queue usually cost more than they save; compare with 'aggregated'"
        )
        yield Finding(path, message, "warning")
    if not prefill.accelerator.gpudirect_rdma:
        message = (
            f"the network adapter cannot read the memory of {prefill.accelerator.name}, so the KV cache is "
            "copied through host memory; compare with 'aggregated' first"
        )
        yield Finding(path, message, "warning")
