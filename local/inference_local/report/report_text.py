"""Sentences and figures of a report, for both the terminal and the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from inference_blueprints.measure.statistics import Measurement, amount, milliseconds
from inference_contracts.number_text import number
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.controllers.controller_outcomes import CapacityShiftOutcome, GpuHealthOutcome
from inference_local.report.report_types import Length, ModelReport, Replayed
from inference_local.scaling.scaling_outcome import ScalingDecision, ScalingOutcome, WorkerSample
from inference_local.serving.platform_parts import Replacement
from inference_local.worker_kills import WorkerLoss

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


def cost_lines(measurement: Measurement) -> list[tuple[str, str]]:
    """Return throughput and price with their names."""
    throughput = measurement.throughput_per_gpu_tokens_per_second
    price = measurement.price_per_million_tokens_usd
    return [
        (
            "throughput per accelerator",
            "not available"
            if throughput is None
            else f"{number(round(throughput.input_and_output), 4)} tokens/s of input and output, "
            f"{number(round(throughput.output, 1), 4)} tokens/s of output, at the replayed load",
        ),
        (
            "price per million tokens",
            "not available"
            if price is None
            else f"{price.input_and_output:.2f} USD for input and output, "
            f"{price.output:.2f} USD if output tokens carry the whole cost, at the replayed load",
        ),
    ]


def by_workers(
    replacements: Sequence[Replacement],
) -> list[tuple[tuple[str, ...], list[Replacement]]]:
    """Return each different exception once, under the workers that have it."""
    workers: dict[Replacement, list[str]] = {}
    for each in replacements:
        workers.setdefault(replace(each, workers=""), []).append(each.workers)
    groups: dict[tuple[str, ...], list[Replacement]] = {}
    for row, having in workers.items():
        groups.setdefault(tuple(having), []).append(row)
    return list(groups.items())


def replayed_lines(replayed: Replayed) -> list[str]:
    """Return sentences about the replayed trace and how it was scaled."""
    scaling = replayed.scaling
    lines = [
        f"{replayed.trace}, {replayed.cut}; {replayed.source}, {replayed.licence}.",
        f"{replayed.recorded_seconds:.0f} recorded seconds, times multiplied by {number(scaling.time)}: "
        f"{number(replayed.peak_requests_per_second, 6)} requests/s in the busiest "
        f"{replayed.peak_window_seconds:.0f} s.",
    ]
    if replayed.images:
        return [*lines, f"Every request asked for {replayed.images}; only its time is that of the trace."]
    lines += [
        f"Prompts {_scaled(scaling.input)}: {_length(replayed.input_tokens)}, including "
        f"{replayed.template_tokens} of the template; shared blocks of {scaling.block_tokens:.0f} tokens.",
        f"Answers {_scaled(scaling.output)}: {_length(replayed.output_tokens)}.",
    ]
    if scaling.common_prefix_tokens:
        lines.append(
            f"{scaling.common_prefix_tokens} tokens start every prompt, for the shared prefix ratio of "
            f"{replayed.stated_shared_prefix_ratio:g}."
        )
    if scaling.clipped_inputs or scaling.clipped_outputs:
        lines.append(
            f"Cut to fit the context: {scaling.clipped_inputs} prompts, {scaling.clipped_outputs} answers; "
            "the others are longer to keep the mean."
        )
    return lines


def objective_lines(model: ModelReport) -> list[str]:
    """Return each objective and whether it was met."""
    verdicts = {True: "met", False: "missed", None: "not measured"}
    return [
        f"{objective.name} {objective.limit_ms:g} ms: {verdicts[objective.met]} "
        f"({milliseconds(objective.measured_ms)} ms)"
        for objective in model.objectives
    ]


def worker_loss(loss: WorkerLoss) -> str:
    """Return a sentence about a killed worker and the answers that it was writing."""
    kind = "worker" if loss.role == "worker" else f"{loss.role} worker"
    if not loss.killed:
        return f"The only {kind} of {loss.deployment} was not killed: no other could continue its answers."
    return (
        f"{loss.killed} of {loss.workers} {kind}s of {loss.deployment} killed during {loss.streams} "
        f"answers: {loss.moved} moved to another worker, {loss.completed} complete, {loss.lost} lost."
    )


def scaling_lines(outcome: ScalingOutcome) -> list[str]:
    """Return sentences about workers that followed the load."""
    starts = ", ".join(f"{role} {seconds:.1f} s" for role, seconds in outcome.start_seconds.items())
    changes = len(changing(outcome))
    unanswered = sum(None in each.readings.values() for each in outcome.decisions)
    blind = f" {unanswered} lacked an answer of Prometheus." if unanswered else ""
    by_clients = outcome.clients is not None
    held = (
        f"{outcome.gpu_hours:.2f} GPU-hours (simulated), {outcome.gpu_hours_at_most:.2f} with the largest "
        "number of workers all the time."
    )
    who = (
        f"Up to {outcome.clients} clients at once sent {amount(outcome.requests, 'request')}, apart from the "
        "replay."
        if by_clients
        else held
    )
    return [
        f"Workers followed the load: {outcome.workers_min} to {outcome.workers_max} were ready. "
        f"{len(outcome.decisions)} decisions, {changes} of them changed the number.{blind}",
        # A replayed trace changes the number often, before it is reached: its plot shows that.
        *(steps_of(outcome.samples) if by_clients else ()),
        f"{amount(outcome.cut_streams, 'stream')} cut, {amount(outcome.lost, 'request')} lost; "
        "every token was counted.",
        who,
        f"Windows, periods and starts of workers are {outcome.time_factor:g} times shorter ({starts}). "
        "Requests are not.",
        "What makes workers in the cluster is a stand-in: it starts and ends processes of this machine.",
    ]


def steps_of(samples: Sequence[WorkerSample]) -> list[str]:
    """Return a sentence for each change of the wanted number of workers, and when it was reached.

    samples: The workers over time.
    """
    lines = []
    for index, (before, after) in enumerate(pairwise(samples), start=1):
        if before.wanted == after.wanted:
            continue
        reached = next(
            (each for each in samples[index:] if each.ready == each.occupying == after.wanted), None
        )
        then = f"reached after {reached.seconds - after.seconds:.0f} s" if reached else "never reached"
        lines.append(
            f"At {after.seconds:.0f} s: from {before.wanted} to {amount(after.wanted, 'worker')}, {then}."
        )
    return lines


def changing(outcome: ScalingOutcome) -> list[ScalingDecision]:
    """Return the decisions that changed the number of workers."""
    return [each for each in outcome.decisions if each.desired != each.workers]


def readings(decision: ScalingDecision) -> str:
    """Return what a decision saw."""
    return ", ".join(
        f"{name} {'no answer' if value is None else number(round(value, 1), 4)}"
        for name, value in decision.readings.items()
    )


def batch_job(outcome: BatchOutcome, *, simulated: bool) -> str:
    """Return a sentence about a batch job and its answers in the signal store."""
    signals = outcome.signals
    read_back = (
        f" Signal {signals.name}, read back: {signals.written} written, {signals.missing} missing, "
        f"{signals.wrong} wrong."
        if signals
        else ""
    )
    images = f" {amount(outcome.images, 'image')}, one per file." if outcome.images is not None else ""
    return (
        f"Batch job of team {outcome.team} in queue {outcome.queue}, {outcome.state} after "
        f"{outcome.seconds:.0f} s{' (simulated)' if simulated else ''}: {outcome.requests} requests of "
        f"{outcome.model}, {outcome.completed} answered, {outcome.failed} failed, {outcome.lost} lost, "
        f"{outcome.duplicated} duplicated; {outcome.workers_killed} workers killed and replaced; "
        f"{outcome.cost_usd:.4f} USD at the queue's rates.{read_back}{images}"
    )


def _scaled(factor: float) -> str:
    return f"{'shrunk' if factor < 1 else 'lengthened'} to {number(factor)} of the recorded length"


def _length(length: Length) -> str:
    counted = "not counted" if length.counted is None else f"{length.counted:,.0f} counted"
    return f"mean {length.stated:,} tokens stated, {length.sent:,.0f} sent, {counted}"
