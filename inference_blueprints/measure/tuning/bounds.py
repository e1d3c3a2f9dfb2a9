"""Minimum workers of a role for a demand, by arithmetic; fewer workers are not replayed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from inference_blueprints.measure.simulation.highest_rate import LatencyLimits
from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers
from inference_blueprints.measure.tuning.replayed_workload import Demand
from inference_blueprints.serving.estimates.request_estimates import unique_tokens
from inference_blueprints.serving.performance.throughput import best_within, operation, prefill_ms

#: The arithmetic takes requests for alike. A replay may do better by so much: one in ten requests may be as
#: late as it likes, and the objectives are of the 90th percentiles where this reckons with means.
OPTIMISM = 1.25
_MS = 1000.0


@dataclass(frozen=True, slots=True)
class Need:
    """Workers that a role needs, by arithmetic."""

    minimum: int
    likely: int
    """As many do when requests are alike: where a search begins."""


def workers_needed(workers: SimulatedWorkers, demand: Demand, limits: LatencyLimits) -> Need | None:
    """Return the number of workers of a role that meet the objectives; None if no number does.

    workers: The role; how many workers it has is of no account. Without speeds, nothing could.
    limits: The objectives.
    """
    profile, means = workers.profile, demand.means
    at_once = _at_once(workers, demand)
    if profile is None or at_once < 1:
        return None
    first_token_ms = limits.time_to_first_token_p90_ms * OPTIMISM
    token_ms = limits.time_per_output_token_p90_ms * OPTIMISM
    if workers.role != "decode" and prefill_ms(profile, means) > first_token_ms:
        return None
    if workers.role == "prefill":
        each = alike = _MS / prefill_ms(profile, means)
    else:
        alone = operation(profile, means, 1, decodes_only=True)
        if alone.time_per_output_token_ms > token_ms:
            return None
        apart = workers.role == "decode"
        each = best_within(profile, means, token_ms, at_once, decodes_only=apart).requests_per_second
        limit_ms = max(limits.time_per_output_token_p90_ms, alone.time_per_output_token_ms)
        alike = best_within(profile, means, limit_ms, at_once, decodes_only=apart).requests_per_second
    # After the last arrival, requests may still wait for as long as the objective of the first token allows.
    tail = 1.0 + limits.time_to_first_token_p90_ms / _MS / demand.seconds
    rate = means.peak_requests_per_second
    minimum = max(1, math.ceil(rate / (each * OPTIMISM * tail)))
    return Need(minimum, max(minimum, math.ceil(rate / alike)))


def _at_once(workers: SimulatedWorkers, demand: Demand) -> int:
    """Return how many mean requests a worker holds at once, with one copy of their shared prefix."""
    settings, means = workers.settings, demand.means
    own_tokens = settings.kv_blocks * settings.block_size - means.input_tokens * means.shared_prefix_ratio
    return min(settings.max_num_seqs, int(own_tokens // unique_tokens(means)))
