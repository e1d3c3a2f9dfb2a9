"""Whether prefill and decode workers suit each other, the network between them, and the workload."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from inference_blueprints.errors import Finding
from inference_blueprints.serving.capacity import role_capacity
from inference_blueprints.serving.engines.sizing import engine_of
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.traffic import deployment_requests_per_second
from inference_blueprints.serving.transfer import transfer_seconds
from inference_blueprints.serving.workload import prefill_seconds

#: Below so many tokens of its own a prompt takes no longer than a few decode steps: there is nothing to gain.
_SHORT_PROMPT_TOKENS = 1024
#: From this part of the time to the first token on, the transfer is worth a warning.
_NOTABLE_SHARE = 0.2


def disaggregation_findings(roles: Sequence[ResolvedWorkers]) -> Iterator[Finding]:
    """Check a disaggregated deployment; nothing is found of an aggregated one.

    Parameters
    ----------
    roles
        Its workers; each fits its accelerators.

    Yields
    ------
    Finding
        Errors and warnings.
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
    """Check that each decode device takes its KV heads from one prefill device, where the engine needs that.

    Latent attention is whole on every device.
    """
    one, other = prefill.tensor_parallel_size, decode.tensor_parallel_size
    if engine_of(prefill).GATHERS_HEADS or prefill.shape.attention == "mla" or other % one == 0:
        return
    message = (
        f"got {other}, must be a multiple of prefill's {one}: each decode device reads its KV heads from one "
        f"prefill device; raise it to {-(-other // one) * one} or lower prefill's"
    )
    yield Finding((*decode.path, "tensorParallelSize"), message)


def _transfer_findings(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> Iterator[Finding]:
    """Check that the KV cache of a mean prompt moves well within the time to the first token."""
    seconds = transfer_seconds(prefill, decode)
    limit = prefill_seconds(prefill.model.objectives)
    if seconds < _NOTABLE_SHARE * limit:
        return
    path = (*prefill.path, "pool")
    over = "EFA" if prefill.pool.efa and decode.pool.efa else "TCP, without EFA"
    message = (
        f"the KV cache of {prefill.model.workload.input_tokens} tokens takes {seconds * 1000:.0f} ms over "
        f"the workers' share of the network ({over}), of the {limit * 1000:.0f} ms for the first token; "
        "set efa on pools that have it, or use 'aggregated'"
    )
    yield Finding(path, message, "error" if seconds >= limit else "warning")


def _balance_findings(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> Iterator[Finding]:
    """Warn where one role carries less than the peak within the objectives (simulated)."""
    first, second = role_capacity(prefill), role_capacity(decode)
    if first is None or second is None:
        return
    rates = {"prefill": first.objective_requests_per_second, "decode": second.objective_requests_per_second}
    slower = prefill if rates["prefill"] <= rates["decode"] else decode
    faster = "decode" if slower is prefill else "prefill"
    peak = deployment_requests_per_second(prefill.model, prefill.deployment)
    if rates[slower.role] >= peak:
        return
    needed = math.ceil(slower.workers.replicas * peak / rates[slower.role])
    message = (
        f"{slower.role} is the bottleneck (simulated): its workers carry {rates[slower.role]:.3g} of the "
        f"{peak:.3g} requests a second at the peak, {faster}'s {rates[faster]:.3g}; {needed} replicas would"
    )
    yield Finding((*slower.path, "replicas"), message, "warning")


def _worth_findings(prefill: ResolvedWorkers) -> Iterator[Finding]:
    """Warn where prefill apart is not worth its cost."""
    workload = prefill.model.workload
    own = round(workload.input_tokens * (1.0 - workload.shared_prefix_ratio))
    path = prefill.path[:-1]
    if own < _SHORT_PROMPT_TOKENS:
        message = (
            f"prompts bring {own} tokens that others do not share; below {_SHORT_PROMPT_TOKENS} the transfer "
            "and a second queue cost more than they bring; compare with 'aggregated'"
        )
        yield Finding(path, message, "warning")
    if not prefill.accelerator.gpudirect_rdma:
        message = (
            f"the network does not read the memory of {prefill.accelerator.name}, so KV cache goes through "
            "the host's; measure against 'aggregated' before paying"
        )
        yield Finding(path, message, "warning")
