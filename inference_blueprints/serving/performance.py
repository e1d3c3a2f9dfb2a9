"""Computes the capacity of workers from latency profiles, published speeds and network bandwidth."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

import inference_catalog as catalog
from inference_blueprints.serving.engines.worker_sizing import worker_memory, worker_sizing
from inference_blueprints.serving.estimates.cache_tiers import whole_kv_bytes_per_token
from inference_blueprints.serving.estimates.request_estimates import (
    answer_time,
    held_tokens,
    worker_requests_per_second,
)
from inference_blueprints.serving.estimates.request_lengths import answers, computed_prompts, parts
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.types import (
    EACH_TOKEN,
    FIRST_TOKEN,
    WHOLE_REQUEST,
    LatencyKind,
    Workload,
    tightest_ms,
)
from inference_catalog import ImageSpeed, InstanceType, LatencyProfile, image_speeds
from inference_contracts.records import dataclass

# Computes the throughput of a worker from the measured speeds of its latency profile (simulated).
#
# A worker interleaves prefill and decode. With ``b`` concurrent requests of ``in`` and ``out`` tokens::
#
# prefill = mean time to first token of the part of a prompt that no other request shares, over all lengths
# step    = decode step at b * context tokens in the cache
# n       = prompts of a step that has prompts: p / (1 - exp(-p)) with p = b / out that end in a step and are
#           followed by others, at times that do not depend on each other; no more than fill a step
# share   = the time of n mean prompts together / n times the time of one, at most 1
# b / rate = out * step + b * prefill * share     (Little's law; each request waits for all others' prefills)
#
# A decode worker has no prefills to wait for. A prefill worker at its highest load fills each step.
#
# Beyond the end of a table, a figure is unknown. `speeds` returns no profile that does not reach the mean
# request, and a worker counts with no more requests at once than its decode table reaches.

_MS = 1000.0
#: Part of all prompts' tokens that may lie beyond the end of a profile. For them, its last line is drawn on.
#: With the quadratic curve of each profile of the catalogue, the mean prompt takes at most 3 % longer, which
#: is within the errors of a profile; with a tenth beyond, 9 %.
_MOST_BEYOND = 0.05


def mean_context(workload: Workload) -> float:
    """Return the mean tokens of a running request: its prompt, and what it has of its answer.

    Weighted by the time for which requests run. Half of the answer, if all are as long as the mean.
    """
    ways = parts(workload)
    if len(ways) == 1 and workload.longest_output_tokens is None:
        return workload.input_tokens + workload.output_tokens / 2.0
    written = math.fsum(way.peak_requests_per_second * way.output_tokens for way in ways)
    if not written:
        return workload.input_tokens
    contexts = (
        way.peak_requests_per_second * (way.output_tokens * way.input_tokens + answers(way).moment(2) / 2.0)
        for way in ways
    )
    return math.fsum(contexts) / written


def computed_prompt(workload: Workload) -> float:
    """Return the tokens of a mean prompt that are computed: those that no other request shares."""
    return workload.input_tokens * (1.0 - workload.shared_prefix_ratio)


def uncovered(profile: LatencyProfile, workload: Workload, role: str, which: str = "a mean") -> str:
    """Return which part of a request lies beyond the end of a profile, as a clause; empty if none does.

    workload: Its lengths.

    role: That of the workers: those for prefill read only the prefill table, those for decode only the other.
    """
    end, context = profile.max_prompt_tokens, mean_context(workload)
    prompt = max(map(computed_prompt, parts(workload)))
    if role != "decode" and prompt > end:
        return (
            f"the latency profile ends at {end:,.0f} tokens of a prompt, and {which} prompt has {prompt:,.0f}"
        )
    beyond = _beyond(workload, end)
    if role != "decode" and beyond > _MOST_BEYOND:
        return (
            f"the latency profile ends at {end:,.0f} tokens of a prompt, and {beyond:.0%} of all tokens of "
            f"prompts are beyond it, where at most {_MOST_BEYOND:.0%} may be"
        )
    if role != "prefill" and not profile.covers(context_tokens=context, active_kv_tokens=context):
        return (
            f"the latency profile ends at contexts of {profile.max_context_tokens:,.0f} tokens, and {which} "
            f"request has {context:,.0f}"
        )
    return ""


def _beyond(workload: Workload, end: float) -> float:
    """Return the part of all prompts' computed tokens that lies beyond so many tokens of a prompt."""
    ways = [(way.peak_requests_per_second, computed_prompts(way)) for way in parts(workload)]
    tokens = math.fsum(rate * lengths.mean for rate, lengths in ways)
    within = math.fsum(rate * lengths.at_most(end) for rate, lengths in ways)
    return 1.0 - within / tokens if tokens else 0.0


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
    """Mean time between two tokens of an answer, including the prefills of other requests; 0 for answers of
    one token, after which none comes."""

    @property
    def request_ms(self) -> float:
        """Mean time of a request: with Little's law, requests at once / requests per second."""
        return self.concurrent_requests / self.requests_per_second * _MS


def operation(
    profile: LatencyProfile, workload: Workload, concurrent_requests: int, *, step_tokens: int
) -> Operation:
    """Return the operation of a worker with this many concurrent requests.

    profile: Speeds of the model on the worker's devices.
    workload: Lengths of its requests.
    step_tokens: Most tokens of prompts that it computes in one step; 0 if other workers compute the prompts.
    Raises ValueError beyond the end of a table: `uncovered` and `covered_requests` tell it before.
    """
    [only] = _operations(profile, workload, [concurrent_requests], step_tokens)
    return only


def _operations(
    profile: LatencyProfile, workload: Workload, counts: Iterable[int], step_tokens: int
) -> list[Operation]:
    """Return the operation at each number of concurrent requests."""
    context = mean_context(workload)
    prefill = prefill_ms(profile, workload) if step_tokens else 0.0
    found = []
    for count in counts:
        step = _decode_step_ms(profile, count * context, context)
        together = _prompts_together(count / workload.output_tokens)
        prompt = prefill * batch_share(profile, workload, together, step_tokens) if prefill else 0.0
        request_ms = workload.output_tokens * step + count * prompt
        each_ms = request_ms / workload.output_tokens if workload.output_tokens > 1 else 0.0
        found.append(Operation(count, count * _MS / request_ms, each_ms))
    return found


def prefill_ms(profile: LatencyProfile, workload: Workload) -> float:
    """Return the mean duration of a prompt's prefill alone, in milliseconds: of the part that is not shared.

    The mean is over the lengths, and not the duration for the mean length: long prompts take longer than in
    proportion. All figures of prefill come from here.

    Raises ValueError beyond the end of the table.
    """
    ways = parts(workload)
    if len(ways) == 1:
        return _mean_prefill_ms(profile, ways[0])
    rate = math.fsum(way.peak_requests_per_second for way in ways)
    return math.fsum(way.peak_requests_per_second * _mean_prefill_ms(profile, way) for way in ways) / rate


def _mean_prefill_ms(profile: LatencyProfile, way: Workload) -> float:
    """Return the mean duration of a prompt of one way in. Between two points, a line is drawn.

    So each part of a line counts with the mean of what prompts have within it.
    """
    axis, values, lengths = profile.prefill_isl, profile.prefill_ttft_ms, computed_prompts(way)
    if lengths.are_alike:
        return _interpolate(axis, values, lengths.mean)
    within = [*map(lengths.at_most, axis[:-1]), lengths.mean]
    return values[0] + math.fsum(
        (values[index] - values[index - 1])
        / (axis[index] - axis[index - 1])
        * (within[index] - within[index - 1])
        for index in range(1, len(axis))
    )


def batch_share(profile: LatencyProfile, workload: Workload, prompts: float, step_tokens: int) -> float:
    """Return how long a prompt takes among others in a step, divided by its time alone: at most 1.

    A step reads the weights once for all its prompts, so short ones take little longer together than one does
    alone. The profile says what a prompt of as many tokens takes; the attention of several takes less.

    prompts: Prompts that wait for the step, of which it takes as many as it can; infinite to fill it.
    step_tokens: Most tokens of a step.
    """
    prompt = computed_prompt(workload)
    together = min(prompts, prompts_of_step(profile, workload, step_tokens))
    if together <= 1.0 or not prompt:
        return 1.0
    axis, values = profile.prefill_isl, profile.prefill_ttft_ms
    alone = _interpolate(axis, values, prompt)
    return min(1.0, _interpolate(axis, values, together * prompt) / (together * alone))


def prompts_of_step(profile: LatencyProfile, workload: Workload, step_tokens: int) -> float:
    """Return the most mean prompts that a step takes, as far as the profile reaches: at least 1."""
    prompt = max(1.0, computed_prompt(workload))
    return max(1.0, min(step_tokens, profile.max_prompt_tokens) / prompt)


def _prompts_together(ended: float) -> float:
    """Return the mean number of prompts in a step that has prompts.

    They arrive independently of each other, so their number in a step has a Poisson distribution.

    ended: Mean number of requests that end in a step, and whose places others take.
    """
    return ended / -math.expm1(-ended) if ended else 1.0


def chunk_ms(resolved: ResolvedWorkers, tokens: int) -> float | None:
    """Return how long a worker computes so many tokens of a prompt in one step, in milliseconds.

    Returns: None without a latency profile, and beyond its end.
    """
    profile = _own_profile(resolved, catalog.latency_profile, resolved.traffic.means)
    if profile is None or not profile.covers(prompt_tokens=tokens):
        return None
    return _interpolate(profile.prefill_isl, profile.prefill_ttft_ms, tokens)


def least_prompt_ms(resolved: ResolvedWorkers, means: Workload) -> float | None:
    """Return how long a prefill takes in the mean, in milliseconds; beyond the profile, how long at least.

    means: Requests of one way in.
    Returns: None without a latency profile.
    """
    profile = _own_profile(resolved, catalog.latency_profile, means)
    if profile is None:
        return None
    if not uncovered(profile, means, "prefill"):
        return prefill_ms(profile, means)
    known = min(computed_prompt(means), profile.max_prompt_tokens)
    return _interpolate(profile.prefill_isl, profile.prefill_ttft_ms, known)


def most_requests_per_second(resolved: ResolvedWorkers, means: Workload | None = None) -> float | None:
    """Return what no number of requests at once makes workers exceed: completed requests per second.

    They compute nothing but prompts. Beyond the end of the latency profile, a prompt counts with the time of
    one at its end, so this is known also where the speed is not. Long prompts take longer than in
    proportion, so it holds for prompts of unlike lengths too.

    resolved: All workers of the role that computes the prompts of a deployment.
    means: Requests of one way in, as if there were no others; those of the deployment by default.
    Returns: None without a latency profile.
    """
    means = means or resolved.traffic.means
    profile = _own_profile(resolved, catalog.latency_profile, means)
    prompt = least_prompt_ms(resolved, means)
    if profile is None or not prompt:
        return None
    # The best share is of steps as long as one of the profile's points, between which lines are drawn.
    step, each = prompt_step_tokens(resolved), max(1.0, computed_prompt(means))
    together = (*(tokens / each for tokens in profile.prefill_isl), math.inf)
    share = min(batch_share(profile, means, prompts, step) for prompts in together)
    return resolved.workers.maximum * _MS / (prompt * share)


def at_rate(
    profile: LatencyProfile,
    workload: Workload,
    requests_per_second: float,
    max_at_once: int,
    *,
    step_tokens: int,
) -> tuple[Operation, Operation]:
    """Return the operation of a worker at a given rate, and at its highest load.

    requests_per_second: Requests per second that arrive at the worker.
    max_at_once: Most concurrent requests, at least 1. Those beyond the profile's end are left out.
    step_tokens: As for `operation`.
    Returns: First with the fewest concurrent requests that achieve the rate (if none do, as the second);
        second at its highest rate.
    """
    counts = range(1, covered_requests(profile, workload, max_at_once) + 1)
    all_operations = _operations(profile, workload, counts, step_tokens)
    full = max(all_operations, key=lambda each: each.requests_per_second)
    enough = (each for each in all_operations if each.requests_per_second >= requests_per_second)
    return next(enough, full), full


def best_within(
    profile: LatencyProfile,
    workload: Workload,
    allowed: Limits,
    max_at_once: int,
    *,
    step_tokens: int,
) -> Operation:
    """Return the highest rate within the limits; the rate of one request if none qualifies.

    max_at_once: Most concurrent requests, at least 1. Those beyond the profile's end are left out.
    step_tokens: As for `operation`.
    """
    counts = range(1, covered_requests(profile, workload, max_at_once) + 1)
    operations = _operations(profile, workload, counts, step_tokens)
    within = [
        each
        for each in operations
        if each.time_per_output_token_ms <= allowed.token_ms and each.request_ms <= allowed.request_ms
    ]
    return max(within or operations[:1], key=lambda each: each.requests_per_second)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the objectives allow a mean request on a worker."""

    token_ms: float
    """Longest time between two tokens of an answer; infinite without an objective, and for answers of one
    token, after which none comes."""
    request_ms: float
    """Longest time of a request on the worker; infinite without an objective."""

    @property
    def are_none(self) -> bool:
        """Whether nothing is limited."""
        return self.token_ms == self.request_ms == math.inf


def limits(resolved: ResolvedWorkers, profile: LatencyProfile, workload: Workload) -> Limits:
    """Return what the tightest objectives allow requests: nobody waits for those of batch alone.

    Prefill workers have taken their part of the time before a decode worker begins, if it is known.

    workload: Lengths of the requests.
    """
    stated = resolved.model.deciding_objectives if resolved.traffic.is_waited_for else ()
    token = tightest_ms(stated, EACH_TOKEN) if workload.output_tokens > 1 else None
    whole = tightest_ms(stated, WHOLE_REQUEST)
    has_prompt = resolved.role == "decode" and not uncovered(profile, workload, "prefill")
    before = prefill_ms(profile, workload) if has_prompt else 0.0
    return Limits(
        math.inf if token is None else token,
        math.inf if whole is None else whole - before,
    )


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


def prompt_step_tokens(resolved: ResolvedWorkers) -> int:
    """Return the most tokens of prompts in one step of a worker; 0 if other workers compute the prompts."""
    return 0 if resolved.role == "decode" else worker_sizing(resolved).max_num_batched_tokens


def concurrent_requests(resolved: ResolvedWorkers, means: Workload | None = None) -> int:
    """Return how many requests a rank runs at once, with one copy of their shared prefix.

    As many as its cache holds for 99 % of the time.

    means: Requests of one way in, as if there were no others; those of the deployment by default.
    """
    workload, sizing = means or resolved.traffic.means, worker_sizing(resolved)
    if workload.images:
        return sizing.max_num_seqs
    shared_tokens = workload.input_tokens * workload.shared_prefix_ratio
    held = held_tokens(parts(workload), resolved.objectives)
    return max(0, min(int(held.fitting(sizing.kv_tokens - shared_tokens)), sizing.max_num_seqs))


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
    at_once = concurrent_requests(resolved, workload)
    if profile is None or at_once < 1:
        return None
    each = workload.peak_requests_per_second / replicas
    step = prompt_step_tokens(resolved)
    if resolved.role == "prefill":
        maximum = _MS / (prefill_ms(profile, workload) * batch_share(profile, workload, math.inf, step))
        return RoleCapacity(min(each, maximum) * replicas, maximum * replicas, maximum * replicas, 1, 0.0)
    now, full = at_rate(profile, workload, each, at_once, step_tokens=step)
    covered = covered_requests(profile, workload, at_once)
    allowed = limits(resolved, profile, workload)
    within = full
    if not allowed.are_none:
        within = best_within(profile, workload, allowed, at_once, step_tokens=step)
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
    at_once = concurrent_requests(resolved, workload)
    if profile is None or at_once < 1:
        return None
    each, covered = (
        worker_requests_per_second(resolved, resolved.workers.maximum),
        covered_requests(profile, workload, at_once),
    )
    step = prompt_step_tokens(resolved)
    if operation(profile, workload, covered, step_tokens=step).requests_per_second >= each:
        return True
    serves = at_rate(profile, workload, each, covered, step_tokens=step)[1].requests_per_second >= each
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
    Returns: None without a latency profile. 0 for answers of one token.
    """
    profile = speeds(roles[-1], means=means)
    if profile is None:
        return None
    alone = operation(profile, means or roles[-1].traffic.means, 1, step_tokens=0)
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
    return prefill.traffic.means.input_tokens * whole_kv_bytes_per_token(prefill, worker_memory(prefill))


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
