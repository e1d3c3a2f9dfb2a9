"""Figures of a report as people read them, the same in the terminal and on the page."""

from __future__ import annotations

from inference_blueprints.local.batch.outcome import BatchOutcome
from inference_blueprints.local.report.svg import number
from inference_blueprints.local.report.types import Length, Measurement, ModelReport, Percentiles, Replayed
from inference_blueprints.local.worker_losses import WorkerLoss

NOT_MEASURED = "-"


def milliseconds(value: float | None) -> str:
    """Return a latency in milliseconds, three digits or more; a dash where nothing was measured."""
    return NOT_MEASURED if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.1f}"  # noqa: PLR2004


def latency_rows(measurement: Measurement) -> list[tuple[str, Percentiles]]:
    """Return the latencies with their names."""
    return [
        ("time to first token", measurement.ttft_ms),
        ("time per output token", measurement.time_per_output_token_ms),
        ("end to end", measurement.end_to_end_ms),
    ]


def hit_ratio(measurement: Measurement) -> str:
    """Return how much of the prompts was in the KV cache."""
    ratio = measurement.prefix_cache_hit_ratio
    return "the endpoint does not say" if ratio is None else f"{ratio:.1%} of the prompt tokens"


def cost_lines(measurement: Measurement) -> list[tuple[str, str]]:
    """Return throughput and price with their names."""
    throughput = measurement.throughput_per_gpu_tokens_per_second
    price = measurement.price_per_million_tokens_usd
    return [
        (
            "throughput per GPU",
            "left out"
            if throughput is None
            else f"{number(round(throughput.input_and_output))} tokens/s input and output, "
            f"{number(round(throughput.output, 1))} tokens/s output alone, at the replayed load",
        ),
        (
            "price per million tokens",
            "left out"
            if price is None
            else f"{price.input_and_output:.2f} USD input and output, "
            f"{price.output:.2f} USD if output carries all, at the replayed load",
        ),
    ]


def replayed_lines(replayed: Replayed) -> list[str]:
    """Return what was replayed and how it was scaled, one sentence each."""
    scaling = replayed.scaling
    lines = [
        f"{replayed.trace}, {replayed.cut}; {replayed.source}, {replayed.licence}.",
        f"{replayed.recorded_seconds:.0f} recorded seconds, their time multiplied by {scaling.time:.3g}: "
        f"{replayed.peak_requests_per_second:g} requests/s in the busiest "
        f"{replayed.peak_window_seconds:.0f} s.",
        f"Prompts {_scaled(scaling.input)}: {_length(replayed.input_tokens)}, of which the chat template "
        f"takes {replayed.template_tokens}; shared blocks of {scaling.block_tokens:.0f} tokens.",
        f"Answers {_scaled(scaling.output)}: {_length(replayed.output_tokens)}.",
    ]
    if scaling.common_prefix_tokens:
        lines.append(
            f"{scaling.common_prefix_tokens} tokens lead every prompt, for the stated shared prefix ratio of "
            f"{replayed.stated_shared_prefix_ratio:g}."
        )
    if scaling.clipped_inputs or scaling.clipped_outputs:
        lines.append(
            f"Cut to fit the context: {scaling.clipped_inputs} prompts, {scaling.clipped_outputs} answers; "
            "the others are longer for it."
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
    """Return what became of streams whose worker was killed."""
    kind = "worker" if loss.role == "worker" else f"{loss.role} worker"
    if not loss.killed:
        return f"The one {kind} of {loss.deployment} was not killed: no other could take its streams over."
    return (
        f"{loss.killed} of {loss.workers} {kind}s of {loss.deployment} killed with {loss.streams} streams "
        f"under way: {loss.moved} went on at another, {loss.completed} brought every token, {loss.lost} lost."
    )


def batch_job(outcome: BatchOutcome, *, simulated: bool) -> str:
    """Return what became of a batch job, and of its answers in the signal store."""
    signals = outcome.signals
    read_back = (
        f" Signal {signals.name}, read back: {signals.written} written, {signals.missing} missing, "
        f"{signals.wrong} wrong."
        if signals
        else ""
    )
    return (
        f"Batch job of team {outcome.team} in queue {outcome.queue}, {outcome.state} after "
        f"{outcome.seconds:.0f} s{' (simulated)' if simulated else ''}: {outcome.requests} requests of "
        f"{outcome.model}, {outcome.completed} answered, {outcome.failed} failed, {outcome.lost} lost, "
        f"{outcome.duplicated} duplicated; {outcome.workers_killed} workers killed and replaced meanwhile; "
        f"{outcome.cost_usd:.4f} USD by the queue's rates.{read_back}"
    )


def _scaled(factor: float) -> str:
    return f"{'shrunk' if factor < 1 else 'lengthened'} to {factor:.3g} of the recorded length"


def _length(length: Length) -> str:
    counted = "not counted" if length.counted is None else f"{length.counted:,.0f} counted"
    return f"mean {length.stated:,} tokens stated, {length.sent:,.0f} sent, {counted}"
