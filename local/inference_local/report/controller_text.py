"""Sentences about the capacity shift and GPU health in a run, for both the terminal and the page."""

from __future__ import annotations

from inference_blueprints.measure.statistics import milliseconds
from inference_contracts.number_text import number
from inference_local.controllers.controller_outcomes import CapacityShiftOutcome, GpuHealthOutcome

#: What the states of a case that are shown mean for people, in the order of a repair.
_STATES = {
    "slowed": "slowed",
    "confirmed": "found",
    "cordoned": "cordoned",
    "replacing": "drained",
    "done": "replaced",
}


def shift_lines(outcome: CapacityShiftOutcome) -> list[str]:
    """Return sentences about capacity that moved between interactive requests and batch."""
    floors = [each.floor for each in outcome.decisions]
    lent = [each.lent * outcome.most_workers for each in outcome.decisions]
    quotas = [each.batch_accelerators for each in outcome.decisions]
    lines = [f"Capacity shift (simulated): {len(outcome.decisions)} decisions, {outcome.changes} changes."]
    if floors:
        lines.append(
            f"Floor of workers {_range(floors)}, batch's share of them {_range(lent, digits=1)} workers, "
            f"accelerators for jobs {_range(quotas)}."
        )
    lines += [
        f"Batch: {outcome.batch_completed} requests answered, {outcome.batch_lost} lost or failed, in "
        f"{outcome.batch_seconds:.0f} s.",
        "Time to first token, p95: "
        f"{milliseconds(outcome.ttft_p95_alone_ms)} ms alone, "
        f"{milliseconds(outcome.ttft_p95_beside_ms)} ms beside batch"
        + ("" if outcome.ttft_p95_ratio is None else f", {outcome.ttft_p95_ratio:.2f} times as long")
        + ".",
        f"The shift's clock goes {outcome.time_factor:g} times faster: a second of the run is "
        f"{outcome.time_factor / 60:g} minutes. Requests are not faster.",
    ]
    if not outcome.is_timed:
        lines.append("This machine was too busy to keep the arrival times: the ratio says nothing.")
    if outcome.failed_runs:
        lines.append(f"{outcome.failed_runs} runs of the function ended with an error.")
    return lines


def health_lines(outcome: GpuHealthOutcome) -> list[str]:
    """Return sentences about the worker that was made slow."""
    steps = ", ".join(
        f"{words} {outcome.times[state] - outcome.times['slowed']:.0f} s"
        for state, words in _STATES.items()
        if state in outcome.times and state != "slowed"
    )
    served = (
        f"{outcome.replacement} serves in its place: it answered {outcome.replacement_requests} requests."
        if outcome.replaced
        else "It was not replaced."
    )
    lines = [
        f"GPU health (simulated): {outcome.injected} worker slowed to {outcome.speed:.0%} of its speed, "
        f"{outcome.found} found, {outcome.replaced} replaced, {outcome.false_drains} false drains.",
        f"Time since the slowdown: {steps or 'nothing was found'}.",
        f"Node {outcome.node}: {served}",
        f"{outcome.streams} streams meanwhile, {outcome.cut_streams} cut; every token was counted.",
        f"The clock of GPU health goes {outcome.time_factor:g} times faster: its minute lasts "
        f"{60 / outcome.time_factor:g} s. Requests and starts of processes are not faster.",
    ]
    if outcome.failed_runs:
        lines.append(f"{outcome.failed_runs} of {outcome.runs} runs of the function ended with an error.")
    return lines


def shift_is_bad(outcome: CapacityShiftOutcome) -> bool:
    """Return whether something went wrong."""
    return bool(outcome.batch_lost or outcome.failed_runs or not outcome.decisions)


def health_is_bad(outcome: GpuHealthOutcome) -> bool:
    """Return whether something went wrong."""
    missed = outcome.replaced < outcome.injected
    return bool(missed or outcome.false_drains or outcome.cut_streams or outcome.failed_runs)


def marks(outcome: GpuHealthOutcome) -> list[tuple[float, str]]:
    """Return the seconds of the run at which the steps of the repair came, with their names."""
    shown = [state for state in _STATES if state != "cordoned" and state in outcome.times]
    return [(outcome.times[state], _STATES[state]) for state in shown]


def _range(values: list[int] | list[float], *, digits: int = 0) -> str:
    low, high = (number(round(each, digits), 4) for each in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"
