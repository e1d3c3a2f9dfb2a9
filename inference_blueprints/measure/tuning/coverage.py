"""Notes about everything that the measured data does not cover; nothing is guessed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from inference_blueprints.measure.tuning.candidates import TuningCandidate
from inference_blueprints.measure.tuning.evaluation import Evaluation
from inference_blueprints.measure.tuning.profiles import Speed, has_measurements
from inference_blueprints.measure.tuning.replayed_workload import (
    ANSWERS,
    Demand,
    RecordedWorkload,
    answer_seconds,
    objectives_of,
)
from inference_blueprints.measure.tuning.traces import UserTrace
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.serving.traffic import model_traffic
from inference_blueprints.spec.rule_table import rule_findings
from inference_blueprints.spec.types import LATENCY_NAMES, Blueprint, Model, Workers, Workload
from inference_catalog import LatencyProfile
from inference_contracts.number_text import number

#: How the latency profiles were recorded. Weights are used as published; quantised weights are not measured.
_MEASURED_KV_CACHE = ("auto", "bfloat16")
_MEASURED_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"quantization": (), "dtype": ("auto", "bfloat16")}
)
#: How far the figures of three replays vary with the arrival times: see docs/tuning.md.
_SPREAD = 0.05
#: Beyond this ratio the trace differs from the stated workload.
_ALIKE = 1.25


def unsuited_arguments(blueprint: Blueprint, model_index: int) -> list[str]:
    """Return one message per engine argument or option that the latency profiles do not cover."""
    model = blueprint.spec.models[model_index]
    engine = model.engine
    options = {
        "kvCacheType": model.kv_cache_type == "fp8",
        "quantization": model.quantization is not None,
        "speculation": model.speculation is not None,
    }
    messages = [
        f"spec.models[{model_index}].{key}: the latency profiles were recorded without it and cannot predict "
        "it; remove it to tune"
        for key, is_set in options.items()
        if is_set
    ]
    measured = {**_MEASURED_TYPES, ENGINES[engine.chosen].argument_names.kv_cache_type: _MEASURED_KV_CACHE}
    return messages + [
        f"spec.models[{model_index}].engine: got {name}: {value}; the latency profiles were recorded with "
        f"{' or '.join(measured[name]) or 'the published weights'} and cannot predict it; "
        "remove the argument to tune"
        for name, value in engine.arguments.items()
        if name in measured and value not in measured[name]
    ]


def list_missing_profiles(missing: Mapping[Speed, str]) -> list[str]:
    """Return one line per missing latency profile, and one for all sizes of an accelerator without any.

    missing: The reason for each missing profile.
    """
    lines = []
    for speed, reason in sorted(missing.items()):
        what = speed if has_measurements(speed.accelerator) else speed.without_size
        lines.append(f"no latency profile for {what}: {reason}")
    return list(dict.fromkeys(lines))


def what_is_not_covered(
    blueprint: Blueprint,
    model_index: int,
    demand: Demand,
    trace: UserTrace | None,
) -> Iterator[str]:
    """Yield assumptions, and effects that the figures do not include.

    trace: The user's trace. None for the `workload` section.
    """
    model = blueprint.spec.models[model_index]
    yield from _objective_notes(model)
    others = sorted(set(model.engine.arguments) - _replayed_arguments(model.engine.chosen))
    if others:
        yield f"The replay ignores these engine arguments: {', '.join(others)}."
    if any(_is_split_otherwise(each) for each in _own_workers(blueprint, model_index)):
        yield (
            "Latency profiles cover tensor parallelism only: the model's workers, with pipeline, data "
            "or expert parallelism, were not compared."
        )
    if any(each.scaled_by is not None for each in _own_workers(blueprint, model_index)):
        yield (
            "Replays have a fixed number of workers at the stated peak. They do not simulate `scaledBy` and "
            "`capacityShift`: take the number of the choice as the maximum of the range."
        )
    if model.kv_cache is not None:
        yield (
            "The replay simulates the kvCache host memory of vLLM workers only. It does not simulate NVMe, "
            "caches that workers share, or the host memory of SGLang workers."
        )
    if trace is not None and isinstance(demand, RecordedWorkload):
        yield from _trace_notes(model_traffic(blueprint.spec, model).means, trace, demand)
    longest = answer_seconds(model, demand.means)
    if demand.seconds < ANSWERS * longest:
        yield (
            f"Requests were replayed for {demand.seconds:,.0f} s, and one may take up to {longest:,.0f} s: "
            "latencies would grow further if the same load lasted longer."
        )


def doubts(blueprint: Blueprint, candidate: TuningCandidate, model_index: int) -> Iterator[str]:
    """Yield the warnings that `blueprints validate` would show for a configuration."""
    tuned = candidate.within(blueprint, model_index)
    place = ("spec", "models", model_index, "deployments")
    for finding in [*rule_findings(tuned), *serving_findings(tuned)]:
        if finding.path[: len(place)] == place:
            yield f"`blueprints validate` would warn about the choice: {finding.message}."


def narrow_margins(evaluation: Evaluation) -> Iterator[str]:
    """Yield the objectives that a configuration meets by less than the spread between replays.

    evaluation: A configuration that meets the objectives.
    """
    for each in evaluation.judged:
        if each.excess > 1 - _SPREAD:
            yield (
                f"The choice meets the objective for the {each.objective.name} by only "
                f"{1 - each.excess:.1%}, and replays with "
                f"other arrival times differ by up to {_SPREAD:.0%}: add one worker to be safe."
            )


def sources(profiles: Sequence[LatencyProfile]) -> Iterator[str]:
    """Yield the tools that recorded the latency profiles.

    profiles: The profiles behind the figures.
    """
    for source in sorted({profile.source for profile in profiles}):
        yield f"Latency profiles are from {source}, with a bfloat16 KV cache, which the plan also uses."


def _own_workers(blueprint: Blueprint, model_index: int) -> Iterator[Workers]:
    """Yield the workers of each role of each deployment that the model has."""
    for index in range(len(blueprint.spec.models[model_index].deployments)):
        yield from (resolved.workers for resolved in resolve(blueprint, model_index, index))


def _is_split_otherwise(workers: Workers) -> bool:
    return workers.accelerators != workers.tensor_parallel_size or workers.expert_parallel


def _objective_notes(model: Model) -> Iterator[str]:
    missing = [LATENCY_NAMES[each.kind] for each in objectives_of(model) if not each.path]
    if missing:
        yield (
            f"The blueprint states no objective for the {' and the '.join(missing)}; the default of the "
            "checks was used. State it in the model's objectives."
        )


def _trace_notes(stated: Workload, trace: UserTrace, demand: RecordedWorkload) -> Iterator[str]:
    replayed, means = len(demand.requests), demand.means
    if trace.too_long:
        yield (
            f"{trace.too_long:,} of the trace's {trace.too_long + len(trace.requests):,} requests are longer "
            f"than the {trace.longest:,} tokens that workers accept, given the workload section and the "
            "model's context length. They were left out, and so were workers that cannot accept the rest."
        )
    if replayed < len(trace.requests):
        yield (
            f"The busiest {replayed:,} consecutive requests of the trace's {len(trace.requests):,} were "
            f"replayed ({demand.seconds:,.0f} s); caches were empty at the start."
        )
    if trace.rounded:
        yield "The trace's times are rounded: requests with equal times were spread up to the next time."
    if not trace.knows_prefixes:
        yield "A CSV trace does not record shared prefixes: the replay has no prefix cache hits."
    figures = {
        "inputTokens": (f"{means.input_tokens:,}", means.input_tokens / stated.input_tokens),
        "outputTokens": (f"{means.output_tokens:,}", means.output_tokens / stated.output_tokens),
        "peakRequestsPerSecond": (
            number(means.peak_requests_per_second),
            means.peak_requests_per_second / stated.peak_requests_per_second,
        ),
    }
    differing = [
        f"{name}: {text}" for name, (text, ratio) in figures.items() if not 1 / _ALIKE <= ratio <= _ALIKE
    ]
    if differing:
        yield (
            "Workers are sized for the workload section, but the trace differs from it; the trace has "
            f"{', '.join(differing)}."
        )


def _replayed_arguments(engine: str) -> set[str]:
    """Return the engine arguments that the simulated workers take into account."""
    names = ENGINES[engine].argument_names
    sizes = {names.length, names.sequences, names.step_tokens, names.block_size, names.memory_share}
    return {*sizes, names.kv_cache_type, *_MEASURED_TYPES}
