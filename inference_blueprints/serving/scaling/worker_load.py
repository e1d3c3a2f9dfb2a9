"""The load that one elastic worker carries within the objectives, and the part of it to use."""

from __future__ import annotations

import math
from dataclasses import replace

from inference_blueprints.serving.engines.worker_sizing import worker_sizing
from inference_blueprints.serving.estimates.request_estimates import prefill_seconds
from inference_blueprints.serving.estimates.worker_start import worker_start
from inference_blueprints.serving.performance import (
    Operation,
    at_rate,
    best_within,
    concurrent_requests,
    covered_requests,
    operation,
    prefill_ms,
    speeds,
    token_limit_ms,
    uncovered,
)
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_catalog import LatencyProfile
from inference_contracts.number_text import number
from inference_contracts.records import dataclass

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
    at_once = max(1, concurrent_requests(workload, worker_sizing(resolved)))
    held = float(at_once * ranks)
    limit_seconds = prefill_seconds(resolved.model.objectives)
    waiting = float(ranks)
    waiting_reason = "one request may wait per worker, because no latency profile says how long it takes"
    if profile is None:
        reason = "as its KV cache holds (no latency profile says what its objectives allow)"
        requests = 1 if resolved.role == "prefill" else at_once
        return WorkerLoad(requests * ranks, waiting, reason, waiting_reason, held)
    if not uncovered(profile, workload, "prefill"):
        prompt_ms = prefill_ms(profile, workload)
        waiting = max(1.0, limit_seconds * _MS / prompt_ms)
        waiting_reason = (
            f"a prompt takes {prompt_ms:.0f} ms (simulated), so {waiting:.1f} waiting "
            f"prompts of a worker have their first token within {limit_seconds * _MS:.0f} ms"
        )
    if resolved.role == "prefill":
        return WorkerLoad(waiting, waiting, f"because {waiting_reason}", waiting_reason, max(waiting, held))
    best, reason = _best(resolved, profile, at_once)
    return WorkerLoad(best.concurrent_requests, waiting, reason, waiting_reason, held)


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
        at_stated = operation(profile, means, stated, decodes_only=resolved.role == "decode")
        return at_stated.request_ms / _MS
    best, _ = _best(resolved, profile, max(1, concurrent_requests(means, worker_sizing(resolved))))
    return best.concurrent_requests / best.requests_per_second


def _best(resolved: ResolvedWorkers, profile: LatencyProfile, at_once: int) -> tuple[Operation, str]:
    """Return the operation of a worker with the most load within the objectives, and why it is that."""
    workload, apart = resolved.traffic.means, resolved.role == "decode"
    waited = resolved.traffic.is_waited_for
    limit = token_limit_ms(profile, workload, resolved.model.objectives) if waited else None
    real_time = resolved.model.real_time if waited else None
    deadline = real_time.deadline_millis if real_time else None
    if limit is None and deadline is None:
        _, best = at_rate(profile, workload, 0.0, at_once, decodes_only=apart)
        reason = "at its highest rate (simulated)"
    else:
        # Prefill workers have taken their part of the time before a decode worker begins, if it is known.
        has_prompt = apart and not uncovered(profile, workload, "prefill")
        before = prefill_ms(profile, workload) if has_prompt else 0.0
        best = best_within(
            profile,
            workload,
            math.inf if limit is None else limit,
            at_once,
            request_ms=math.inf if deadline is None else deadline - before,
            decodes_only=apart,
        )
        parts = [] if limit is None else [f"{number(limit, 4)} ms per output token"]
        parts += [f"the deadline of {deadline:g} ms"] if deadline else []
        reason = f"within {' and '.join(parts)} (simulated)"
    if best.concurrent_requests == covered_requests(profile, workload, at_once) < at_once:
        reason += ", the most that its latency profile reaches"
    return best, reason
