"""Computes the capacity of workers from latency profiles, published speeds and network bandwidth."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

import inference_catalog as catalog
from inference_blueprints.serving.engines.worker_sizing import worker_memory, worker_sizing
from inference_blueprints.serving.estimates.request_estimates import (
    answer_time,
    unique_tokens,
    worker_requests_per_second,
)
from inference_blueprints.serving.estimates.worker_figures import Sizing
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.types import (
    EACH_TOKEN,
    FIRST_TOKEN,
    WHOLE_REQUEST,
    LatencyKind,
    Objectives,
    Workload,
    tightest_ms,
)
from inference_catalog import ImageSpeed, InstanceType, LatencyProfile, image_speeds
from inference_contracts.records import dataclass

# Computes the throughput of a worker from the measured speeds of its latency profile (simulated).
#
# A worker interleaves prefill and decode. With ``b`` concurrent requests of ``in`` and ``out`` tokens::
#
# prefill = time to first token of the part of a prompt that no other request shares
# step    = decode step at b * context tokens in the cache, context = in + out / 2
# b / rate = out * step + b * prefill       (Little's law; each request waits for all others' prefills)
#
# A decode worker has no prefills to wait for. A prefill worker completes one prompt after the other.
#
# Beyond the end of a table, a figure is unknown. `speeds` returns no profile that does not reach the mean
# request, and a worker counts with no more requests at once than its decode table reaches.

_MS = 1000.0


def mean_context(workload: Workload) -> float:
    """Return the mean tokens of a running request: its prompt and half of its answer."""
    return workload.input_tokens + workload.output_tokens / 2.0


def computed_prompt(workload: Workload) -> float:
    """Return the tokens of a mean prompt that are computed: those that no other request shares."""
    return workload.input_tokens * (1.0 - workload.shared_prefix_ratio)


def uncovered(profile: LatencyProfile, workload: Workload, role: str, which: str = "a mean") -> str:
    """Return which part of a request lies beyond the end of a profile, as a clause; empty if none does.

    workload: Its lengths.

    role: That of the workers: those for prefill read only the prefill table, those for decode only the other.
    """
    prompt, context = computed_prompt(workload), mean_context(workload)
    if role != "decode" and not profile.covers(prompt_tokens=prompt):
        return (
            f"the latency profile ends at {profile.max_prompt_tokens:,.0f} tokens of a prompt, and {which} "
            f"prompt has {prompt:,.0f}"
        )
    if role != "prefill" and not profile.covers(context_tokens=context, active_kv_tokens=context):
        return (
            f"the latency profile ends at contexts of {profile.max_context_tokens:,.0f} tokens, and {which} "
            f"request has {context:,.0f}"
        )
    return ""


def covered_requests(profile: LatencyProfile, workload: Workload, at_once: int) -> int:
    """Return how many of a number of mean requests at once the decode table of a profile reaches."""
    context = mean_context(workload)
    return min(at_once, int(profile.max_active_kv_tokens(context) // context))


@dataclass(frozen=True, slots=True)
class Operation:
    """A worker at a given number of concurrent requests."""

    concurrent_requests: int
    requests_per_second: float
    """Completed requests per second."""
    time_per_output_token_ms: float
    """Mean time between two tokens of an answer, including the prefills of other requests."""

    @property
    def request_ms(self) -> float:
        """Mean time of a request: with Little's law, requests at once / requests per second."""
        return self.concurrent_requests / self.requests_per_second * _MS


def operation(
    profile: LatencyProfile, workload: Workload, concurrent_requests: int, *, decodes_only: bool = False
) -> Operation:
    """Return the operation of a worker with this many concurrent requests.

    profile: Speeds of the model on the worker's devices.
    workload: Mean lengths of its requests.
    decodes_only: Whether other workers compute the prefills.
    Raises ValueError beyond the end of a table: `uncovered` and `covered_requests` tell it before.
    """
    context = mean_context(workload)
    prefill = 0.0 if decodes_only else prefill_ms(profile, workload)
    step = _decode_step_ms(profile, concurrent_requests * context, context)
    request_ms = workload.output_tokens * step + concurrent_requests * prefill
    return Operation(
        concurrent_requests=concurrent_requests,
        requests_per_second=concurrent_requests * _MS / request_ms,
        time_per_output_token_ms=request_ms / workload.output_tokens,
    )


def prefill_ms(profile: LatencyProfile, workload: Workload) -> float:
    """Return the duration of a mean prompt's prefill, in milliseconds: only the unshared part is computed.

    Raises ValueError beyond the end of the table.
    """
    return _interpolate(profile.prefill_isl, profile.prefill_ttft_ms, computed_prompt(workload))


def chunk_ms(resolved: ResolvedWorkers, tokens: int) -> float | None:
    """Return how long a worker computes so many tokens of a prompt in one step, in milliseconds.

    Returns: None without a latency profile, and beyond its end.
    """
    profile = _own_profile(resolved, catalog.latency_profile, resolved.traffic.means)
    if profile is None or not profile.covers(prompt_tokens=tokens):
        return None
    return _interpolate(profile.prefill_isl, profile.prefill_ttft_ms, tokens)


def at_rate(
    profile: LatencyProfile,
    workload: Workload,
    requests_per_second: float,
    max_at_once: int,
    *,
    decodes_only: bool = False,
) -> tuple[Operation, Operation]:
    """Return the operation of a worker at a given rate, and at its highest load.

    requests_per_second: Requests per second that arrive at the worker.
    max_at_once: Most concurrent requests, at least 1. Those beyond the profile's end are left out.
    Returns: First with the fewest concurrent requests that achieve the rate (if none do, as the second);
        second at its highest rate.
    """
    all_operations = _operations(profile, workload, max_at_once, decodes_only=decodes_only)
    full = max(all_operations, key=lambda each: each.requests_per_second)
    enough = (each for each in all_operations if each.requests_per_second >= requests_per_second)
    return next(enough, full), full


def best_within(
    profile: LatencyProfile,
    workload: Workload,
    time_per_output_token_ms: float,
    max_at_once: int,
    *,
    request_ms: float = math.inf,
    decodes_only: bool = False,
) -> Operation:
    """Return the highest rate within a time per output token; the rate of one request if none qualifies.

    time_per_output_token_ms: Longest mean time between two tokens of an answer.
    max_at_once: Most concurrent requests, at least 1. Those beyond the profile's end are left out.
    request_ms: Longest mean time of a whole request.
    """
    operations = _operations(profile, workload, max_at_once, decodes_only=decodes_only)
    within = [
        each
        for each in operations
        if each.time_per_output_token_ms <= time_per_output_token_ms and each.request_ms <= request_ms
    ]
    return max(within or operations[:1], key=lambda each: each.requests_per_second)


def _operations(
    profile: LatencyProfile, workload: Workload, max_at_once: int, *, decodes_only: bool
) -> list[Operation]:
    """Return the operation at each number of concurrent requests that the profile covers."""
    largest = covered_requests(profile, workload, max_at_once)
    return [operation(profile, workload, count, decodes_only=decodes_only) for count in range(1, largest + 1)]


def token_limit_ms(profile: LatencyProfile, workload: Workload, objectives: Objectives) -> float | None:
    """Return the longest mean time per output token under the tightest objective, in milliseconds.

    An objective for the whole request leaves its tokens what the first one does not take: nothing is known of
    that for decode workers whose profile has no prompts of this length.

    workload: Mean lengths of the requests.
    Returns: At most 0 if a prompt takes all the time of a request. None without such an objective.
    """
    limits = [tightest_ms(objectives.stated, EACH_TOKEN)]
    whole, later = tightest_ms(objectives.stated, WHOLE_REQUEST), workload.output_tokens - 1
    if whole is not None and later > 0:
        has_prompt = profile.covers(prompt_tokens=computed_prompt(workload))
        first = prefill_ms(profile, workload) if has_prompt else 0.0
        limits.append((whole - first) / later)
    return min((each for each in limits if each is not None), default=None)


def _decode_step_ms(profile: LatencyProfile, active_kv_tokens: float, context_tokens: float) -> float:
    """Return the duration of a decode step in milliseconds. Raises ValueError beyond the end of the table."""
    upper, share = _bracket(profile.decode_active_kv_tokens, active_kv_tokens)
    rows = profile.decode_itl[upper - 1 : upper + 1]
    low, high = (
        _interpolate(profile.decode_context_length, row, context_tokens) if weight else 0.0
        for row, weight in zip(rows, (1.0 - share, share), strict=True)
    )
    return low + share * (high - low)


def _interpolate(axis: Sequence[float], values: Sequence[float | None], at: float) -> float:
    """Interpolate a table linearly, as the simulated engine does. Below its start, its first value holds.

    Raises ValueError beyond its end, and where it has no value.
    """
    upper, share = _bracket(axis, at)
    low = values[upper - 1] if share < 1.0 else 0.0
    high = values[upper] if share else 0.0
    if low is None or high is None:
        raise ValueError(f"nothing was measured at {at:g}")
    return low + share * (high - low)


def _bracket(axis: Sequence[float], at: float) -> tuple[int, float]:
    """Return the node at or above a place, and the place's share of the way to it from the node before."""
    if at > axis[-1]:
        raise ValueError(f"the table ends at {axis[-1]:g}, got {at:g}")
    upper = min(max(bisect_right(axis, at), 1), len(axis) - 1)
    low, high = axis[upper - 1], axis[upper]
    return upper, max(0.0, (at - low) / (high - low))


@dataclass(frozen=True, slots=True)
class RoleCapacity:
    """Capacity of all workers of a role."""

    requests_per_second: float
    """Completed requests per second at the stated peak."""
    full_requests_per_second: float
    """Completed requests per second at the highest load, regardless of latency."""
    objective_requests_per_second: float
    """Completed requests per second within the objective for the time per output token; at the highest load
    without an objective."""
    concurrent_requests: int
    """Concurrent requests per worker at the stated peak."""
    time_per_output_token_ms: float
    """Mean time between two tokens of an answer at the stated peak; 0 for prefill workers."""
    stated_requests_per_second: float = 0.0
    """Requests per second that arrive at the stated peak."""
    is_at_least: bool = False
    is_objective_at_least: bool = False
    """`is_at_least`, `is_objective_at_least`: Whether the latency profile ends before a worker is full, or
    before it exceeds its objective: then it may complete more than the figure says."""


def served_requests_per_second(roles: Iterable[RoleCapacity]) -> float | None:
    """Return what a deployment completes at the stated peak: the least of its roles.

    Returns: None if that role may complete more, beyond the end of its latency profile.
    """
    least = min(roles, key=lambda each: (each.requests_per_second, each.is_at_least))
    is_known = not least.is_at_least or least.requests_per_second >= least.stated_requests_per_second
    return least.requests_per_second if is_known else None


def full_requests_per_second(roles: Iterable[RoleCapacity]) -> float | None:
    """Return what a deployment completes at its highest load: the least of its roles.

    Returns: None if that role may complete more, beyond the end of its latency profile.
    """
    least = min(roles, key=lambda each: (each.full_requests_per_second, each.is_at_least))
    return None if least.is_at_least else least.full_requests_per_second


#: Returns the latency profile of a model, accelerator, tensor parallel size and engine; None if there is
#: none.
ProfileFinder = Callable[[str, str, int, str], LatencyProfile | None]


def speeds(
    resolved: ResolvedWorkers,
    find: ProfileFinder = catalog.latency_profile,
    means: Workload | None = None,
) -> LatencyProfile | None:
    """Return the latency profile of workers that covers their mean request; None if there is none.

    All profiles are of answers, and use only tensor parallelism.

    find: Source of profiles; the catalogue by default.
    means: Requests of one way in; those of the deployment by default.
    """
    means = means or resolved.traffic.means
    profile = _own_profile(resolved, find, means)
    if profile is None or uncovered(profile, means, resolved.role):
        return None
    return profile


#: Why a speed is unknown, as a clause, if there is no profile at all.
NO_PROFILE = "the catalogue has no latency profile"


def why_unknown(roles: Iterable[ResolvedWorkers]) -> str:
    """Return why the speed of a deployment is unknown, as a clause; empty if it is known.

    roles: Workers of every role of a deployment.
    """
    roles = tuple(roles)
    for resolved in roles:
        profile = _own_profile(resolved, catalog.latency_profile, resolved.traffic.means)
        if profile is None:
            return NO_PROFILE
        if reason := uncovered(profile, resolved.traffic.means, resolved.role):
            return reason
    capacities = [capacity for capacity in map(role_capacity, roles) if capacity]
    if len(capacities) == len(roles) and served_requests_per_second(capacities) is None:
        return "the latency profile ends at fewer requests at once than serve the peak, and workers hold more"
    return ""


def _own_profile(resolved: ResolvedWorkers, find: ProfileFinder, means: Workload) -> LatencyProfile | None:
    """Return the latency profile of workers, however long their requests; None if none writes text."""
    size = resolved.tensor_parallel_size
    writes = resolved.model.task == "generate" and means.output_tokens > 0
    if not writes or resolved.workers.accelerators != size or resolved.workers.expert_parallel:
        return None
    return find(resolved.device_shape.name, resolved.accelerator.name, size, resolved.model.engine.chosen)


def concurrent_requests(workload: Workload, sizing: Sizing) -> int:
    """Return the number of mean requests that a rank runs at once, with one copy of their shared prefix."""
    if workload.images:
        return sizing.max_num_seqs
    shared_tokens = workload.input_tokens * workload.shared_prefix_ratio
    by_memory = int((sizing.kv_tokens - shared_tokens) // unique_tokens(workload))
    return max(0, min(by_memory, sizing.max_num_seqs))


def role_capacity(
    resolved: ResolvedWorkers,
    find: ProfileFinder = catalog.latency_profile,
    *,
    means: Workload | None = None,
) -> RoleCapacity | None:
    """Return the capacity of the workers of a role.

    find: Source of profiles; the catalogue by default.
    means: Requests of one way in, as if there were no others; those of the deployment by default.
    Returns: None without a latency profile, or without memory for one request.
    """
    profile = speeds(resolved, find, means)
    workload, replicas = means or resolved.traffic.means, resolved.workers.maximum
    at_once = concurrent_requests(workload, worker_sizing(resolved))
    if profile is None or at_once < 1:
        return None
    each = workload.peak_requests_per_second / replicas
    if resolved.role == "prefill":
        maximum = _MS / prefill_ms(profile, workload)
        return RoleCapacity(min(each, maximum) * replicas, maximum * replicas, maximum * replicas, 1, 0.0)
    apart = resolved.role == "decode"
    now, full = at_rate(profile, workload, each, at_once, decodes_only=apart)
    covered = covered_requests(profile, workload, at_once)
    limit = token_limit_ms(profile, workload, resolved.model.objectives)
    within = full
    if limit is not None:
        within = best_within(profile, workload, limit, at_once, decodes_only=apart)
    return RoleCapacity(
        min(each, now.requests_per_second) * replicas,
        full.requests_per_second * replicas,
        within.requests_per_second * replicas,
        now.concurrent_requests,
        now.time_per_output_token_ms,
        each * replicas,
        is_at_least=covered < at_once,
        is_objective_at_least=within.concurrent_requests == covered < at_once,
    )


def serves_its_peak(resolved: ResolvedWorkers) -> bool | None:
    """Return whether workers serve their share of the peak; None if that is unknown.

    Most do with as many requests as they can hold, which is one step of the calculation. Separate workers
    serve it within the objective.
    """
    if resolved.role != "aggregated":
        capacity = role_capacity(resolved)
        peak = resolved.traffic.requests_per_second
        if capacity is None:
            return None
        serves = capacity.objective_requests_per_second >= peak
        return None if capacity.is_objective_at_least and not serves else serves
    profile, workload = speeds(resolved), resolved.traffic.means
    at_once = concurrent_requests(workload, worker_sizing(resolved))
    if profile is None or at_once < 1:
        return None
    each, covered = (
        worker_requests_per_second(resolved, resolved.workers.maximum),
        covered_requests(profile, workload, at_once),
    )
    if operation(profile, workload, covered).requests_per_second >= each:
        return True
    serves = at_rate(profile, workload, each, covered)[1].requests_per_second >= each
    return serves or (False if covered == at_once else None)


#: A suggestion is at most so many times the number that was given.
_MOST_SUGGESTED = 1000


def fewest_replicas(resolved: ResolvedWorkers, is_enough: Callable[[ResolvedWorkers], bool]) -> int | None:
    """Return the fewest workers of a role, at least as many as now, with which a check passes.

    is_enough: Whether it passes with workers whose number is changed; more of them never make it fail.
    Returns: None if a thousand times as many do not pass.
    """
    low = high = resolved.workers.maximum
    last = high * _MOST_SUGGESTED
    while not is_enough(resolved.with_replicas(high)):
        if high >= last:
            return None
        low, high = high + 1, min(2 * high, last)
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(resolved.with_replicas(middle)) else (middle + 1, high)
    return high


# Computes latencies of requests from the model's latency profile (simulated).


def time_to_first_token_ms(roles: tuple[ResolvedWorkers, ...], means: Workload | None = None) -> float | None:
    """Return the time of a mean prompt's prefill with no other request, in milliseconds.

    Waiting, routing and the transfer of KV cache to a decode worker only add to it.

    roles: Workers of every role of a deployment; the first compute prefills.
    means: Requests of one way in; those of the deployment by default.
    Returns: None without a latency profile.
    """
    profile = speeds(roles[0], means=means)
    return None if profile is None else prefill_ms(profile, means or roles[0].traffic.means)


def min_time_per_output_token_ms(
    roles: tuple[ResolvedWorkers, ...], means: Workload | None = None
) -> float | None:
    """Return the time between two tokens of an answer with no other request, in milliseconds.

    roles: Workers of every role of a deployment; the last write answers.
    means: Requests of one way in; those of the deployment by default.
    Returns: None without a latency profile.
    """
    profile = speeds(roles[-1], means=means)
    if profile is None:
        return None
    alone = operation(profile, means or roles[-1].traffic.means, 1, decodes_only=True)
    return alone.time_per_output_token_ms


def min_answer_ms(roles: tuple[ResolvedWorkers, ...], means: Workload | None = None) -> float | None:
    """Return the time of a whole mean answer with no other request, in milliseconds.

    roles: Workers of every role of a deployment.
    means: Requests of one way in; those of the deployment by default.
    Returns: None without a latency profile.
    """
    first, each = time_to_first_token_ms(roles, means), min_time_per_output_token_ms(roles, means)
    if first is None or each is None:
        return None
    return answer_time((means or roles[-1].traffic.means).output_tokens, first, each)


def bound_ms(roles: tuple[ResolvedWorkers, ...], kind: LatencyKind) -> float | None:
    """Return a latency of one mean request alone, in milliseconds: under load, each takes longer.

    roles: Workers of every role of a deployment.
    Returns: None without a latency profile.
    """
    if kind == WHOLE_REQUEST:
        return min_answer_ms(roles)
    return time_to_first_token_ms(roles) if kind == FIRST_TOKEN else min_time_per_output_token_ms(roles)


_BYTES_PER_MEGABIT = 125_000


def transfer_bytes(prefill: ResolvedWorkers) -> float:
    """Return the KV cache of a mean prompt on all devices of the worker together, in bytes.

    prefill: The sending workers.
    """
    memory = worker_memory(prefill)
    # Latent attention is stored whole on every device, and one copy moves.
    copies = 1 if prefill.shape.attention == "mla" else prefill.tensor_parallel_size
    copies *= prefill.pipeline_parallel_size
    return prefill.traffic.means.input_tokens * memory.kv_bytes_per_token * copies


def transfer_seconds(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> float:
    """Return the least transfer time in seconds, over the slower worker's share of its node's network.

    prefill, decode: The workers of both roles.
    """
    return transfer_bytes(prefill) / transfer_bytes_per_second(prefill, decode)


def transfer_bytes_per_second(prefill: ResolvedWorkers, decode: ResolvedWorkers) -> float:
    """Return the highest transfer rate, in bytes per second."""
    return min(_bytes_per_second(prefill), _bytes_per_second(decode))


def _bytes_per_second(resolved: ResolvedWorkers) -> float:
    """Return a worker's network share on the pool's slowest type: all cards with EFA, else one."""
    return min(_share(each, resolved) for each in resolved.types)


def _share(instance_type: InstanceType, resolved: ResolvedWorkers) -> float:
    cards = 1 if resolved.pool.efa else max(1, instance_type.network_cards)
    # A request occupies the devices of one data parallel rank.
    part = resolved.rank_accelerators / instance_type.accelerator_count
    return instance_type.network_bandwidth_mbps / cards * _BYTES_PER_MEGABIT * part


# How many images workers have to make, and how many one makes as others published it.


def images_per_second(resolved: ResolvedWorkers) -> float:
    """Return the images per second of a deployment at the model's peak; 0 for models that make none."""
    images = resolved.traffic.means.images
    each = images.per_request if images else 0
    return resolved.traffic.requests_per_second * each


def image_speed(resolved: ResolvedWorkers, speeds: Iterable[ImageSpeed] | None = None) -> ImageSpeed | None:
    """Return the published speed of exactly such workers; None if there is none.

    Model, engine with its release, devices, size and steps have to agree. Nothing is scaled from another size
    or device.

    speeds: The published speeds; those of the catalogue by default.
    """
    images, name = resolved.traffic.means.images, resolved.model.weights.hugging_face
    if images is None:
        return None
    wanted = (
        resolved.model.weights.catalog or name,
        resolved.model.engine.chosen,
        resolved.engine.engine_version,
        resolved.accelerator.name,
        resolved.tensor_parallel_size,
        images.size,
        images.steps,
    )
    known = image_speeds() if speeds is None else speeds
    return next((each for each in known if _key(each) == wanted), None)


def _key(speed: ImageSpeed) -> tuple[str | int, ...]:
    return (
        speed.model,
        speed.engine,
        speed.engine_version,
        speed.accelerator,
        speed.tensor_parallel_size,
        speed.size,
        speed.steps,
    )
