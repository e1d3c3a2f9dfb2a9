"""Computes latencies of requests from the model's latency profile (simulated)."""

from __future__ import annotations

from inference_blueprints.serving.performance.role_capacity import speeds
from inference_blueprints.serving.performance.throughput import operation, prefill_ms
from inference_blueprints.serving.resolved import ResolvedWorkers


def time_to_first_token_ms(roles: tuple[ResolvedWorkers, ...]) -> float | None:
    """Return the time of a mean prompt's prefill with no other request, in milliseconds.

    Waiting, routing and the transfer of KV cache to a decode worker only add to it.

    roles: Workers of every role of a deployment; the first compute prefills.
    Returns: None without a latency profile.
    """
    profile = speeds(roles[0])
    return None if profile is None else prefill_ms(profile, roles[0].model.workload)


def min_time_per_output_token_ms(roles: tuple[ResolvedWorkers, ...]) -> float | None:
    """Return the time between two tokens of an answer with no other request, in milliseconds.

    roles: Workers of every role of a deployment; the last write answers.
    Returns: None without a latency profile.
    """
    profile = speeds(roles[-1])
    if profile is None:
        return None
    return operation(profile, roles[-1].model.workload, 1, decodes_only=True).time_per_output_token_ms
