"""The load that one elastic worker carries within the objectives, and the part of it to use."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from inference_blueprints.serving.engines.worker_sizing import worker_sizing
from inference_blueprints.serving.estimates.request_estimates import prefill_seconds
from inference_blueprints.serving.estimates.worker_start import worker_start
from inference_blueprints.serving.performance import (
    Operation,
    at_rate,
    batch_share,
    best_within,
    concurrent_requests,
    covered_requests,
    limits,
    operation,
    prefill_ms,
    prompt_step_tokens,
    prompts_of_step,
    speeds,
    uncovered,
)
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.spec.types import WHOLE_REQUEST
from inference_catalog import LatencyProfile
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import HOURS_PER_DAY

_MS = 1000.0
#: An assumption: the load grows by at most its present size within this time. `target` in the blueprint
#: replaces what follows from it.
GROWTH_SECONDS = 600.0
#: Time between two decisions of the HorizontalPodAutoscaler (``--horizontal-pod-autoscaler-sync-period`` of
#: kube-controller-manager), and the share above the target from which it adds workers
#: (``--horizontal-pod-autoscaler-tolerance``). EKS has the defaults.
_DECISION_SECONDS = 15.0
_TOLERANCE = 0.1


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """What one worker carries."""

    requests: float
    """Requests that it runs at once within the objectives."""
    waiting: float
    """Requests for whose first token it may let clients wait."""
    reason: str
    """Why it carries as many requests, as a clause."""
    waiting_reason: str
    """Why as many may wait."""
    held: float
    """Requests that its KV cache holds, whatever the objectives."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """The part of a worker that stays free for what arrives while a further one starts."""

    start_seconds: float
    """Time of a worker on a new node until it serves."""
    polling_seconds: int
    """Time between two readings of the load."""
    parts: str
    """The parts of that time, as a clause."""

    @property
    def growth(self) -> float:
        """Share by which the load may grow until a further worker helps."""
        return (self.start_seconds + self.polling_seconds + _DECISION_SECONDS) / GROWTH_SECONDS

    def target(self, carried: float) -> float:
        """Return the target at which workers do not exceed what they carry."""
        return without_reserve(carried / (1.0 + self.growth))

    @property
    def reason(self) -> str:
        """Sentence on the reserve."""
        return (
            f"A further worker takes {self.start_seconds:.0f} s to start ({self.parts}). Until then the load "
            f"grows by at most {self.growth:.0%} (an assumption: it doubles in {GROWTH_SECONDS / 60:.0f} "
            f"minutes), and the autoscaler acts from {_TOLERANCE:.0%} above the target"
        )


def without_reserve(carried: float) -> float:
    """Return the target at which the autoscaler adds a worker when all are full.

    carried: What a full worker carries.
    """
    return carried / (1.0 + _TOLERANCE)


def headroom(roles: tuple[ResolvedWorkers, ...], images: tuple[str, ...], polling_seconds: int) -> Headroom:
    """Return the reserve of all roles of a deployment: one for all, so that they keep their ratio.

    images: Image of each role's workers.
    """
    starts = (
        worker_start(role, image, kind, together=1)
        for role, image in zip(roles, images, strict=True)
        for kind in role.types
    )
    longest = max(starts, key=lambda start: start.seconds)
    return Headroom(longest.seconds, polling_seconds, longest.clause)


def worker_load(resolved: ResolvedWorkers) -> WorkerLoad:
    """Return what one worker of a role carries: as the blueprint states, or as it is computed."""
    computed, stated = _computed_load(resolved), resolved.workers.requests_at_once
    if stated is None:
        return computed
    held = max(float(stated), computed.held)
    return replace(computed, requests=float(stated), reason="as the blueprint states", held=held)


def _computed_load(resolved: ResolvedWorkers) -> WorkerLoad:
    """Return what one worker of a role carries, from its latency profile (simulated) or its KV cache."""
    profile, workload = speeds(resolved), resolved.traffic.means
    ranks = resolved.data_parallel_size
    at_once = max(1, concurrent_requests(resolved))
    held = float(at_once * ranks)
    limit_seconds = prefill_seconds(resolved.objectives)
    waiting = float(ranks)
    waiting_reason = "one request may wait per worker, because no latency profile says how long it takes"
    if profile is None:
        reason = "as its KV cache holds (no latency profile says what its objectives allow)"
        requests = 1 if resolved.role == "prefill" else at_once
        return WorkerLoad(requests * ranks, waiting, reason, waiting_reason, held)
    if not uncovered(profile, workload, "prefill"):
        limit_ms = min(limit_seconds * _MS, limits(resolved, profile, workload).request_ms)
        waiting, prompt_ms, are_together = _waiting(resolved, profile, limit_ms)
        together = ", with those that share its steps" if are_together else ""
        waiting_reason = (
            f"a prompt takes {prompt_ms:.0f} ms (simulated{together}), so {waiting:.1f} waiting "
            f"prompts of a worker have their first token within {limit_ms:.0f} ms"
        )
    if resolved.role == "prefill":
        return WorkerLoad(waiting, waiting, f"because {waiting_reason}", waiting_reason, max(waiting, held))
    best, reason = _best(resolved, profile, at_once)
    return WorkerLoad(best.concurrent_requests, waiting, reason, waiting_reason, held)


def _waiting(
    resolved: ResolvedWorkers, profile: LatencyProfile, limit_ms: float
) -> tuple[float, float, bool]:
    """Return how many waiting prompts begin in time, the time of each, and whether they share steps.

    limit_ms: Longest time to the first token.
    """
    workload, step = resolved.traffic.means, worker_sizing(resolved).max_num_batched_tokens
    alone = prefill_ms(profile, workload)
    full = prompts_of_step(profile, workload, step)
    for prompts in (full, *range(math.ceil(full) - 1, 1, -1)):
        each = alone * batch_share(profile, workload, prompts, step)
        if prompts * each <= limit_ms and each < alone:
            # More than fill a step wait for the next one.
            return (limit_ms / each if prompts == full else float(prompts)), each, True
    return max(1.0, limit_ms / alone), alone, False


def request_seconds(resolved: ResolvedWorkers) -> float | None:
    """Return the time of a request on a worker that carries as many as `worker_load` says (simulated).

    resolved: Workers that write answers.
    Returns: Seconds. None without a latency profile, and where it ends before the number that is stated.
    """
    profile, stated, means = speeds(resolved), resolved.workers.requests_at_once, resolved.traffic.means
    if profile is None:
        return None
    if stated is not None:
        if covered_requests(profile, means, stated) < stated:
            return None
        at_stated = operation(profile, means, stated, step_tokens=prompt_step_tokens(resolved))
        return at_stated.request_ms / _MS
    best, _ = _best(resolved, profile, max(1, concurrent_requests(resolved)))
    return best.concurrent_requests / best.requests_per_second


def used_by_hour(roles: Sequence[ResolvedWorkers]) -> list[float] | None:
    """Return which part of all workers of a deployment its requests need in each hour of a day.

    Those of queues do not count.

    roles: Workers of every role of the deployment.
    Returns: None if the rates by hour or the time of a request are not known.
    """
    ways = [way for way in roles[-1].traffic.ways if way.kind != "queue"]
    seconds = request_seconds(roles[-1]) if ways and all(way.day for way in ways) else None
    if seconds is None:
        return None
    carried = worker_load(roles[-1]).requests * roles[-1].workers.maximum
    return [sum(way.peak_in(hour) for way in ways) * seconds / carried for hour in range(HOURS_PER_DAY)]


def _best(resolved: ResolvedWorkers, profile: LatencyProfile, at_once: int) -> tuple[Operation, str]:
    """Return the operation of a worker with the most load within the objectives, and why it is that."""
    workload, step = resolved.traffic.means, prompt_step_tokens(resolved)
    allowed = limits(resolved, profile, workload)
    if allowed.are_none:
        _, best = at_rate(profile, workload, 0.0, at_once, step_tokens=step)
        reason = "at its highest rate (simulated)"
    else:
        best = best_within(profile, workload, allowed, at_once, step_tokens=step)
        token = [] if allowed.token_ms == math.inf else [f"{number(allowed.token_ms, 4)} ms per output token"]
        reason = f"within {' and '.join([*token, *_whole(resolved)])} (simulated)"
    if best.concurrent_requests == covered_requests(profile, workload, at_once) < at_once:
        reason += ", the most that its latency profile reaches"
    return best, reason


def _whole(resolved: ResolvedWorkers) -> list[str]:
    """Return the tightest limit of a whole request as words; none without one."""
    whole = [each for each in resolved.model.deciding_objectives if each.kind == WHOLE_REQUEST]
    tightest = min(whole, key=lambda each: each.limit_ms, default=None)
    if tightest is None:
        return []
    of = "the deadline of" if tightest.path[0] == "realTime" else "the whole request's"
    return [f"{of} {tightest.limit_ms:g} ms"]
