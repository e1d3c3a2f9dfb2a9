"""Texts about a tuning search: a table of the replays and two sentences that explain the choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from inference_blueprints.measure.tuning.candidates import TuningCandidate
from inference_blueprints.measure.tuning.evaluation import Evaluation
from inference_blueprints.measure.tuning.tune import Tuning
from inference_blueprints.report.tables import TextTable
from inference_blueprints.spec.types import EACH_TOKEN, FIRST_TOKEN, JudgedObjective, LatencyKind, Objective
from inference_contracts.number_text import number

_MAX_ROWS = 15
_TABLE_NOTE = (
    "All figures are simulated; if a configuration was replayed several times, the slowest replay counts. "
    "TTFT is the time to first token, TPOT the time per output token, request the whole answer. "
    "Prices are for prompt and answer tokens at that load. 3x2 means three "
    "workers with two accelerators each; A + B means prefill + decode. * marks a missed objective."
)


def describe_search(tuning: Tuning) -> str:
    """Return the model and the workload that it was tuned for.

    tuning: What a search found.
    """
    model = tuning.blueprint.spec.models[tuning.model_index]
    means = tuning.demand.means
    source = f"trace {tuning.trace}" if tuning.trace else "its workload section"
    return (
        f"{model.name} by {source}: {number(means.peak_requests_per_second)} requests/s of "
        f"{means.input_tokens:,} and {means.output_tokens:,} tokens, {means.shared_prefix_ratio:.0%} shared"
    )


def describe_objective(tuning: Tuning) -> str:
    """Return the latency objectives."""
    return ", ".join(f"{each.name} up to {number(each.limit_ms, 6)} ms" for each in tuning.objectives)


def describe_configuration(candidate: TuningCandidate) -> str:
    """Return a configuration as text, such as ``3x2 h200 + 1x4 h200``."""
    parts = [
        f"{count:,}x{role.tensor_parallel_size} {role.pool}"
        for count, role in zip(candidate.replicas, candidate.shape.roles, strict=True)
    ]
    return " + ".join(parts)


def rank_configurations(tuning: Tuning) -> TextTable:
    """Return the replayed configurations: first those that meet the objectives, then by cost."""
    shown = tuning.evaluations[:_MAX_ROWS]
    rows = [
        _row(str(place) if each.keeps else "-", each, tuning) for place, each in enumerate(shown, start=1)
    ]
    notes = [_TABLE_NOTE]
    if len(tuning.evaluations) > len(shown):
        notes.append(
            f"{len(tuning.evaluations) - len(shown):,} more were replayed; --output json lists them."
        )
    return TextTable(
        title="Replayed configurations",
        names=("", "configuration", "engine"),
        figures=("devices", "USD/hour", "USD/M tokens", *map(latency_heading, tuning.objectives)),
        rows=tuple(rows),
        notes=tuple(notes),
    )


def describe_effort(tuning: Tuning) -> str:
    """Return the number of replays, cached replays and skipped shapes."""
    before = f", {tuning.from_cache:,} results from the cache" if tuning.from_cache else ""
    return (
        f"{tuning.replays:,} replays{before}; {tuning.left_out:,} of {tuning.shapes:,} kinds of "
        "configuration were skipped because they cannot cost less than the best one."
    )


def explain_choice(tuning: Tuning) -> str:
    """Return two sentences that explain the choice, or why no configuration was chosen."""
    best = tuning.best
    if tuning.refused:
        return f"Nothing was replayed: no configuration on these pools is valid. {tuning.refused}."
    if not tuning.covered:
        return (
            "Nothing was replayed and nothing is recommended, because no latency profile of the "
            "model on these pools covers its requests. Measure a deployed endpoint with "
            "`blueprints benchmark`."
        )
    if best is None:
        return f"{_no_choice(tuning)} {_nearest(tuning)}"
    means = tuning.demand.means
    chosen = (
        f"{_described(best)} serves {number(means.peak_requests_per_second)} requests/s at "
        f"{_price(tuning, best)}, the lowest cost that meets the objectives: "
        f"{', '.join(map(_of, best.judged))} (simulated)."
    )
    return f"{chosen} {_rival(tuning, best)}"


def as_dict(tuning: Tuning) -> dict[str, Any]:
    """Return a search as JSON values."""
    model = tuning.blueprint.spec.models[tuning.model_index]
    best = tuning.best
    return {
        "simulated": True,
        "model": model.name,
        "trace": tuning.trace or None,
        "demand": tuning.demand.means.model_dump(mode="json", by_alias=True),
        "objectives": objectives_as_dict(tuning.objectives),
        "best": _as_dict(tuning, best) if best else None,
        "explanation": explain_choice(tuning),
        "configurations": [_as_dict(tuning, each) for each in tuning.evaluations],
        "replays": tuning.replays,
        "replaysFromCache": tuning.from_cache,
        "notes": list(tuning.notes),
        "otherInstances": [each.as_dict() for each in tuning.others],
    }


def _as_dict(tuning: Tuning, evaluation: Evaluation) -> dict[str, Any]:
    model = tuning.blueprint.spec.models[tuning.model_index]
    deployment = evaluation.candidate.deployment(model.deployments[0].name)
    return {
        "engine": evaluation.candidate.shape.engine,
        "deployments": [deployment.model_dump(mode="json", by_alias=True, exclude_defaults=True)],
        "accelerators": evaluation.candidate.accelerators,
        "usdPerHour": evaluation.cost.usd_per_hour,
        "usdPerMillionTokens": tuning.usd_per_million_tokens(evaluation),
        "keepsObjectives": evaluation.keeps,
        "timeToFirstTokenP90Ms": evaluation.percentile_ms(FIRST_TOKEN, 90.0),
        "timePerOutputTokenP90Ms": evaluation.percentile_ms(EACH_TOKEN, 90.0),
        "judged": judged_as_dict(evaluation.judged),
    }


def _row(place: str, evaluation: Evaluation, tuning: Tuning) -> tuple[str, ...]:
    per_million = tuning.usd_per_million_tokens(evaluation)
    hourly = evaluation.cost.usd_per_hour
    return (
        place,
        describe_configuration(evaluation.candidate),
        evaluation.candidate.shape.engine,
        f"{evaluation.candidate.accelerators:,}",
        "unknown" if hourly is None else f"{hourly:,.2f}",
        "unknown" if per_million is None else f"{per_million:,.3f}",
        *map(latency_cell, evaluation.judged),
    )


def _described(evaluation: Evaluation) -> str:
    """Return for example ``7x1 h200 + 1x2 h200 (disaggregated: prefill + decode, vllm)``."""
    shape = evaluation.candidate.shape
    topology = "aggregated" if shape.is_aggregated else "disaggregated: prefill + decode"
    return f"{describe_configuration(evaluation.candidate)} ({topology}, {shape.engine})"


def _price(tuning: Tuning, evaluation: Evaluation) -> str:
    per_million = tuning.usd_per_million_tokens(evaluation)
    if per_million is None:
        return f"{evaluation.candidate.accelerators:,} accelerators"
    return f"{per_million:,.3f} USD per million tokens"


def _of(judged: JudgedObjective) -> str:
    value, wanted = judged.value_ms or 0.0, judged.objective
    return f"{wanted.name} {number(value, 4)} of {number(wanted.limit_ms, 4)} ms"


def _rival(tuning: Tuning, best: Evaluation) -> str:
    """Compare the choice with the best configuration of the other topology."""
    other = "disaggregated" if best.candidate.shape.is_aggregated else "aggregated"
    rivals = [each for each in tuning.evaluations if each.candidate.shape.topology == other]
    if not rivals:
        return f"By estimate, no {other} configuration that fits the pools can meet the objectives."
    rival = rivals[0] if rivals[0].keeps else _closest(rivals)
    if not rival.keeps:
        return (
            f"No {other} configuration that fits the pools meets them: "
            f"{describe_configuration(rival.candidate)} "
            f"misses {_missed(rival)}."
        )
    more = rival.cost.rank / best.cost.rank - 1
    if more:
        price = f"costs {more:.0%} more"
    elif rival.cost.accelerators > best.cost.accelerators:
        price = (
            f"costs the same but uses {rival.cost.accelerators:,} accelerators, "
            f"not {best.cost.accelerators:,}"
        )
    else:
        price = "costs the same, uses as many accelerators and has more parts"
    return (
        f"The best {other} configuration, {describe_configuration(rival.candidate)}, "
        f"{price}{_why(tuning, rival)}."
    )


def _why(tuning: Tuning, rival: Evaluation) -> str:
    """Return which objectives the rival misses with fewer workers."""
    fewer = [
        each
        for each in tuning.evaluations
        if each.candidate.shape == rival.candidate.shape and not each.keeps and each.cost < rival.cost
    ]
    return (
        f"; with fewer workers it misses {_missed(max(fewer, key=lambda each: each.cost))}" if fewer else ""
    )


def _missed(evaluation: Evaluation) -> str:
    return " and ".join(f"the {_of(each)}" for each in evaluation.judged if not each.met)


def _no_choice(tuning: Tuning) -> str:
    rate = tuning.demand.means.peak_requests_per_second
    return (
        f"No configuration that fits the pools serves {number(rate)} requests/s within the objectives "
        f"({describe_objective(tuning)})."
    )


def _nearest(tuning: Tuning) -> str:
    """Describe the configuration that comes closest to the objectives, or say why there is none."""
    if not tuning.evaluations:
        return "By estimate none can, so nothing was replayed; allow more nodes or relax the objectives."
    nearest = _closest(tuning.evaluations)
    return (
        f"The closest is {describe_configuration(nearest.candidate)}, which misses "
        f"{_missed(nearest)} "
        "(simulated); allow more nodes or relax the objectives."
    )


def _closest(evaluations: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation whose worst latency exceeds its objective by the smallest factor."""
    return min(evaluations, key=lambda each: max(judged.excess for judged in each.judged))


# Objectives in tables and JSON, also of `blueprints benchmark`.

_SHORT_NAMES: Mapping[LatencyKind, str] = MappingProxyType(
    {"timeToFirstTokenMs": "TTFT", "timePerOutputTokenMs": "TPOT", "requestMs": "request"}
)


def latency_heading(objective: Objective) -> str:
    """Return the heading of the column of an objective, such as ``TTFT p95, ms``."""
    return f"{_SHORT_NAMES[objective.kind]} p{objective.percentile:g}, ms"


def latency_cell(judged: JudgedObjective) -> str:
    """Return a latency in the column of its objective; a * marks a missed one."""
    if judged.value_ms is None:
        return "unknown"
    digits = 1 if judged.objective.kind == EACH_TOKEN else 0
    return f"{judged.value_ms:,.{digits}f}{'*' if judged.met is False else ''}"


def describe_judged(judged: JudgedObjective) -> str:
    """Return an objective beside its value, such as ``whole request p99 280 of 300 ms: met``."""
    return f"{_of(judged)}: {'met' if judged.met else 'missed'}"


def objectives_as_dict(objectives: Sequence[Objective]) -> dict[str, float]:
    """Return the limits in milliseconds as JSON values, by the keys of the blueprint.

    Without an own objective for a 90th percentile, the default has the key of one.
    """
    short = {"timeToFirstTokenMs": "timeToFirstTokenP90Ms", "timePerOutputTokenMs": "timePerOutputTokenP90Ms"}
    return {each.key if each.path else short[each.kind]: each.limit_ms for each in objectives}


def judged_as_dict(judged: Sequence[JudgedObjective]) -> list[dict[str, Any]]:
    """Return each objective with its limit, its value in milliseconds and whether it is met."""
    return [
        {
            "kind": each.objective.kind,
            "percentile": each.objective.percentile,
            "limitMs": each.objective.limit_ms,
            "valueMs": each.value_ms,
            "met": each.met,
        }
        for each in judged
    ]
