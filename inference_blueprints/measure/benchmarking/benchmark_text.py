"""Texts about a benchmark: measured and replayed figures in the columns of `blueprints tune`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from inference_blueprints.measure.benchmarking.benchmark import Benchmark
from inference_blueprints.measure.statistics import hit_ratio, latency_rows, milliseconds
from inference_blueprints.measure.tuning.tuning_text import (
    judged_as_dict,
    latency_cell,
    latency_heading,
    objectives_as_dict,
)
from inference_blueprints.report.tables import TextTable
from inference_blueprints.spec.types import (
    EACH_TOKEN,
    FIRST_TOKEN,
    Deployment,
    Model,
    Workload,
    all_met,
    judge,
)
from inference_contracts.errors import UserError
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import MILLION, SECONDS_PER_HOUR

# Reads the result of `blueprints tune --output json`, to compare it with a measurement.

#: Workloads whose rate or lengths differ by more than this share are different workloads.
_ALIKE = 0.1
_HOW = "write it with: blueprints tune FILE --output json > FILE"


@dataclass(frozen=True, slots=True)
class Tuned:
    """The best configuration of a search."""

    engine: str
    deployments: tuple[Deployment, ...]
    accelerators: int
    """Number of accelerators of all its workers."""
    usd_per_hour: float | None
    usd_per_million_tokens: float | None
    """`usd_per_hour`, `usd_per_million_tokens`: Its cost. None if the price is unknown."""
    latencies_ms: Mapping[tuple[str, float], float]
    """Its percentiles, simulated, by latency and percentile. A search of an earlier release has two."""
    notes: tuple[str, ...]
    """Differences from the measured configuration and workload."""


def read_tuned(path: Path, model: Model, demand: Workload) -> Tuned:
    """Read the best configuration of a search and note its differences from the measured one.

    path: File with the output of ``blueprints tune --output json``.
    demand: The measured workload.
    Raises UserError if the file has another format or is for another model, or if the search found no
        configuration.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        best, name = document["best"], document["model"]
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise UserError(
            f"--against: {path}: cannot be read as a search of tune: {error!r}; {_HOW}"
        ) from error
    if name != model.name:
        raise UserError(
            f"--against: {path}: the file is a search for {name}, but the benchmark measures {model.name}"
        )
    if best is None:
        raise UserError(f"--against: {path}: the search found no configuration that meets the objectives")
    try:
        return _tuned(best, (*_other_demand(document["demand"], demand), *_other_layout(best, model)))
    except (LookupError, ValueError, TypeError) as error:
        raise UserError(
            f"--against: {path}: cannot be read as a search of tune: {error!r}; {_HOW}"
        ) from error


def _tuned(best: dict[str, Any], notes: tuple[str, ...]) -> Tuned:
    return Tuned(
        engine=best["engine"],
        deployments=_deployments(best),
        accelerators=best["accelerators"],
        usd_per_hour=best["usdPerHour"],
        usd_per_million_tokens=best["usdPerMillionTokens"],
        latencies_ms={
            (FIRST_TOKEN, 90.0): best["timeToFirstTokenP90Ms"],
            (EACH_TOKEN, 90.0): best["timePerOutputTokenP90Ms"],
            **{(each["kind"], each["percentile"]): each["valueMs"] for each in best.get("judged", ())},
        },
        notes=notes,
    )


def _deployments(best: dict[str, Any]) -> tuple[Deployment, ...]:
    return tuple(Deployment.model_validate(each) for each in best["deployments"])


def _other_demand(tuned: dict[str, Any], measured: Workload) -> tuple[str, ...]:
    """Return a note if the search used another rate or other lengths."""
    searched = Workload.model_validate(tuned)
    names = {
        "peak_requests_per_second": "requests/s",
        "input_tokens": "prompt tokens",
        "output_tokens": "answer tokens",
    }
    different = [
        f"{number(getattr(searched, name))} {label} instead of {number(getattr(measured, name))}"
        for name, label in names.items()
        if abs(getattr(searched, name) - getattr(measured, name)) > _ALIKE * getattr(measured, name)
    ]
    return (f"The search used another workload: {', '.join(different)}.",) if different else ()


def _other_layout(best: dict[str, Any], model: Model) -> tuple[str, ...]:
    """Return a note if the blueprint's workers differ from the best configuration."""
    roles = [(each.aggregated, each.disaggregated) for each in _deployments(best)]
    if roles == [(each.aggregated, each.disaggregated) for each in model.deployments] and (
        best["engine"] == model.engine.chosen
    ):
        return ()
    return ("The tuned configuration differs from the blueprint's: write it with tune --write, then deploy.",)


_NOTE = (
    "TTFT is the time to first token, TPOT the time per output token, request the whole answer. Prices are "
    "for prompt and answer tokens at that load. * marks a missed objective. Replayed: an offline simulation "
    "of the same requests on the blueprint's workers."
)
_PROMISE = "Tuned: the best configuration of `blueprints tune`, simulated with the workload of that search."
_SIMULATED = "The endpoint reports simulated engines: these figures are not measurements of accelerators."


def title(found: Benchmark) -> str:
    """Return the model, the endpoint and the workload."""
    means = found.questions.demand.means
    source = f"trace {found.questions.trace}" if found.questions.trace else "its workload section"
    return (
        f"{_model(found)} at {found.url} by {source}: {len(found.questions.requests):,} requests, "
        f"{number(means.peak_requests_per_second)} requests/s, {means.input_tokens:,} prompt and "
        f"{means.output_tokens:,} answer tokens each, {means.shared_prefix_ratio:.0%} shared prefix"
    )


def comparison(found: Benchmark, tuned: Tuned | None = None) -> TextTable:
    """Return the measured, replayed and tuned figures in the columns of `blueprints tune`.

    tuned: What `blueprints tune` promised; None where it is not compared with.
    """
    model = found.blueprint.spec.models[found.model_index]
    rows = [
        _row(values, model.deployments, model.engine.chosen, found.capacity.accelerators)
        for values in (_measured(found), _replayed(found))
        if values is not None
    ]
    if tuned is not None:
        rows.append(_row(_promised(found, tuned), tuned.deployments, tuned.engine, tuned.accelerators))
    notes = [_NOTE, *([_SIMULATED] if found.simulated else []), *found.notes]
    notes += [_PROMISE, *tuned.notes] if tuned else []
    return TextTable(
        title="Measured",
        names=("", "configuration", "engine"),
        figures=(
            "devices",
            "USD/hour",
            "USD/M tokens",
            *(latency_heading(each.objective) for each in found.judged),
        ),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def _row(
    values: dict[str, Any],
    deployments: Sequence[Deployment],
    engine: str,
    accelerators: float,
) -> tuple[str, ...]:
    """Return a row of the table. A * marks a missed objective."""
    return (
        values["what"],
        ", ".join(map(_configuration, deployments)),
        engine,
        f"{accelerators:g}",
        _figure(values["hourly"], "{:,.2f}"),
        _figure(values["usd"], "{:.3f}"),
        *map(latency_cell, values["judged"]),
    )


def latencies(found: Benchmark) -> TextTable:
    """Return the measured percentiles."""
    simulated = ", simulated engines" if found.simulated else ""
    rows = tuple(
        (name, *map(milliseconds, (row.p50, row.p90, row.p95, row.p99)))
        for name, row in latency_rows(found.measurement)
    )
    return TextTable(
        "Latencies", (f"milliseconds{simulated}",), ("p50", "p90", "p95", "p99"), rows, _counts(found)
    )


def as_dict(found: Benchmark, tuned: Tuned | None = None) -> dict[str, Any]:
    """Return a benchmark as JSON values.

    tuned: What `blueprints tune` promised; None where it is not compared with.
    """
    measured, replayed = _measured(found), _replayed(found)
    measurement = found.measurement
    return {
        "simulated": found.simulated,
        "model": _model(found),
        "endpoint": found.url,
        "trace": found.questions.trace or None,
        "demand": found.questions.demand.means.model_dump(mode="json", by_alias=True),
        "objectives": objectives_as_dict([each.objective for each in found.judged]),
        "requests": measurement.requests,
        "failures": measurement.failures,
        "failureReasons": dict(measurement.failure_reasons),
        "prefixCacheHitRatio": measurement.prefix_cache_hit_ratio,
        "accelerators": found.capacity.accelerators,
        "usdPerHour": found.capacity.usd_per_hour,
        "measured": _json(measured),
        "replayed": None if replayed is None else _json(replayed),
        "tuned": None if tuned is None else _json(_promised(found, tuned)),
        "notes": [*found.notes, *(tuned.notes if tuned else ())],
    }


def _measured(found: Benchmark) -> dict[str, Any]:
    measurement = found.measurement
    price = measurement.price_per_million_tokens_usd
    return {
        "what": "measured",
        "hourly": found.capacity.usd_per_hour,
        "first": measurement.ttft_ms.p90,
        "each": measurement.time_per_output_token_ms.p90,
        "judged": found.judged,
        "usd": price.input_and_output if price else None,
    }


def _replayed(found: Benchmark) -> dict[str, Any] | None:
    if found.replayed is None:
        return None
    means, dollars = found.questions.demand.means, found.capacity.usd_per_hour
    tokens = means.peak_requests_per_second * (means.input_tokens + means.output_tokens)
    return {
        "what": "replayed",
        "hourly": dollars,
        "first": found.replayed.time_to_first_token.p90,
        "each": found.replayed.time_per_output_token.p90,
        "judged": judge([each.objective for each in found.judged], found.replayed.percentile_ms),
        "usd": None if dollars is None else dollars / SECONDS_PER_HOUR / tokens * MILLION,
    }


def _promised(found: Benchmark, tuned: Tuned) -> dict[str, Any]:
    return {
        "what": "tuned",
        "hourly": tuned.usd_per_hour,
        "first": tuned.latencies_ms[FIRST_TOKEN, 90.0],
        "each": tuned.latencies_ms[EACH_TOKEN, 90.0],
        "judged": judge(
            [each.objective for each in found.judged],
            lambda kind, percentile: tuned.latencies_ms.get((kind, percentile)),
        ),
        "usd": tuned.usd_per_million_tokens,
    }


def _json(values: dict[str, Any]) -> dict[str, Any]:
    return {
        "timeToFirstTokenP90Ms": values["first"],
        "timePerOutputTokenP90Ms": values["each"],
        "usdPerMillionTokens": values["usd"],
        "keepsObjectives": all_met(values["judged"]),
        "judged": judged_as_dict(values["judged"]),
    }


def _counts(found: Benchmark) -> tuple[str, ...]:
    measurement = found.measurement
    reasons = [f"{count} x {reason}" for reason, count in measurement.failure_reasons.items()]
    failures = ", ".join([f"{measurement.failures} failures", *reasons])
    return (f"{measurement.requests} requests, {failures}; prefix cache hits: {hit_ratio(measurement)}.",)


def _model(found: Benchmark) -> str:
    return found.blueprint.spec.models[found.model_index].name


def _configuration(deployment: Deployment) -> str:
    roles = [deployment.aggregated] if deployment.aggregated else []
    if deployment.disaggregated:
        roles = [deployment.disaggregated.prefill, deployment.disaggregated.decode]
    return " + ".join(f"{role.replicas}x{role.tensor_parallel_size} {role.pool}" for role in roles)


def _figure(value: float | None, form: str) -> str:
    return "unknown" if value is None else form.format(value)
