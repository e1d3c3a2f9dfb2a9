"""What the data does not cover, in words: nothing of it is guessed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from inference_blueprints.catalog import LatencyProfile
from inference_blueprints.serving import checks
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.simulation.highest_rate import Limits
from inference_blueprints.spec.rules.table import rules
from inference_blueprints.spec.types import Blueprint, Model, Workers, Workload
from inference_blueprints.tuning.candidates import Candidate
from inference_blueprints.tuning.evaluation import Evaluation
from inference_blueprints.tuning.profiles import Speed
from inference_blueprints.tuning.traces import UserTrace
from inference_blueprints.tuning.workload import ANSWERS, Demand, RecordedWorkload, answer_seconds

#: What the latency profiles were recorded with. Weights are as they are published: nothing else is measured.
_MEASURED_KV_CACHE = ("auto", "bfloat16")
_MEASURED_TYPES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {"quantization": (), "dtype": ("auto", "bfloat16")}
)
#: How far a figure of three replays may be below that of others, with other arrivals: see docs/tuning.md.
_SPREAD = 0.05
#: Beyond this ratio the trace is another workload than the stated one.
_ALIKE = 1.25


def unsuited_arguments(blueprint: Blueprint, model_index: int) -> list[str]:
    """Return the engine arguments with which the plan would not run what was measured.

    Parameters
    ----------
    blueprint, model_index
        The model.
    """
    engine = blueprint.spec.models[model_index].engine
    measured = {**_MEASURED_TYPES, ENGINES[engine.chosen].WORDS.kv_cache_type: _MEASURED_KV_CACHE}
    return [
        f"spec.models[{model_index}].engine: got {name}: {value}; the latency profiles are of "
        f"{' or '.join(measured[name]) or 'the weights as they are published'}, so nothing can be said of "
        "it; remove the argument to tune"
        for name, value in engine.arguments.items()
        if name in measured and value not in measured[name]
    ]


def uncovered(missing: Mapping[Speed, str]) -> list[str]:
    """Return why there are no speeds, a line each.

    Parameters
    ----------
    missing
        Reasons by what is missing.
    """
    return [f"no speeds of {speed}: {reason}" for speed, reason in sorted(missing.items())]


def what_is_not_covered(
    blueprint: Blueprint,
    model_index: int,
    demand: Demand,
    trace: UserTrace | None,
) -> Iterator[str]:
    """Yield what was assumed or is not in the figures.

    Parameters
    ----------
    blueprint, model_index
        The model.
    demand
        What was asked.
    trace
        The user's own, if there is one.
    """
    model = blueprint.spec.models[model_index]
    yield from _objective_notes(model)
    others = sorted(set(model.engine.arguments) - _replayed_arguments(model.engine.chosen))
    if others:
        yield f"The replay knows nothing of these engine arguments: {', '.join(others)}."
    if any(_is_split_otherwise(each) for each in _own_workers(blueprint, model_index)):
        yield (
            "Latency profiles are of tensor parallelism alone: the model's own workers, with pipeline, data "
            "or expert parallelism, were not compared."
        )
    if model.kv_cache is not None:
        yield (
            "Of kvCache the replay knows the memory of vLLM's workers alone: what lies on NVMe, what workers "
            "share and what SGLang keeps is not in it."
        )
    if trace is not None and isinstance(demand, RecordedWorkload):
        yield from _trace_notes(model.workload, trace, demand)
    longest = answer_seconds(model, demand.means)
    if demand.seconds < ANSWERS * longest:
        yield (
            f"Requests were replayed for {demand.seconds:.0f} seconds, and one may take {longest:.0f}: under "
            "the same load for longer, latencies grow on."
        )


def doubts(blueprint: Blueprint, candidate: Candidate, model_index: int) -> Iterator[str]:
    """Yield what `blueprints validate` would warn of in a configuration.

    Parameters
    ----------
    blueprint, model_index
        The model.
    candidate
        The configuration.
    """
    tuned = candidate.within(blueprint, model_index)
    place = ("spec", "models", model_index, "deployments")
    for finding in [*rules(tuned), *checks.findings(tuned)]:
        if finding.path[: len(place)] == place:
            yield f"validate would warn of the choice: {finding.message}."


def narrow_margins(evaluation: Evaluation, limits: Limits) -> Iterator[str]:
    """Yield which objectives a configuration keeps by less than replays of it differ.

    Parameters
    ----------
    evaluation
        One that keeps them.
    limits
        The objectives.
    """
    figures = (
        ("first token", evaluation.time_to_first_token_p90_ms / limits.time_to_first_token_p90_ms),
        ("time per token", evaluation.time_per_output_token_p90_ms / limits.time_per_output_token_p90_ms),
    )
    for name, share in figures:
        if share > 1 - _SPREAD:
            yield (
                f"The choice keeps the objective of the {name} by {1 - share:.1%}, and replays with other "
                f"arrivals differ by up to {_SPREAD:.0%}: one more worker makes it safe."
            )


def sources(profiles: Sequence[LatencyProfile]) -> Iterator[str]:
    """Yield what speeds were recorded with.

    Parameters
    ----------
    profiles
        Speeds that figures rest on.
    """
    for source in sorted({profile.source for profile in profiles}):
        yield f"Speeds are from {source}, with bfloat16 KV cache, as the plan runs it."


def _own_workers(blueprint: Blueprint, model_index: int) -> Iterator[Workers]:
    """Yield the workers of each role of each deployment that the model has."""
    for index in range(len(blueprint.spec.models[model_index].deployments)):
        yield from (resolved.workers for resolved in resolve(blueprint, model_index, index))


def _is_split_otherwise(workers: Workers) -> bool:
    return workers.accelerators != workers.tensor_parallel_size or workers.expert_parallel


def _objective_notes(model: Model) -> Iterator[str]:
    stated = {
        "time to first token": model.objectives.time_to_first_token_p90_ms,
        "time per output token": model.objectives.time_per_output_token_p90_ms,
    }
    missing = [name for name, value in stated.items() if value is None]
    if missing:
        yield (
            f"The blueprint states no objective for the {' and the '.join(missing)}; the one that its checks "
            "assume was kept. State it in the model's objectives."
        )


def _trace_notes(stated: Workload, trace: UserTrace, demand: RecordedWorkload) -> Iterator[str]:
    replayed, means = len(demand.requests), demand.means
    if trace.too_long:
        yield (
            f"{trace.too_long:,} of the trace's {trace.too_long + len(trace.requests):,} requests are longer "
            f"than the {trace.longest:,} tokens that workers accept by the workload section and the model's "
            "context, and were left out; so was every kind of worker that does not accept what remains."
        )
    if replayed < len(trace.requests):
        yield (
            f"Of the trace's {len(trace.requests):,} requests the {replayed:,} in a row that came fastest "
            f"were replayed, {demand.seconds:.0f} seconds; caches were empty at their start."
        )
    if trace.rounded:
        yield "The trace's times are rounded: requests of one time were spread evenly up to the next."
    if not trace.knows_prefixes:
        yield "A CSV trace does not say which prompts begin alike: no cache hits were replayed."
    figures = {
        "inputTokens": (f"{means.input_tokens}", means.input_tokens / stated.input_tokens),
        "outputTokens": (f"{means.output_tokens}", means.output_tokens / stated.output_tokens),
        "peakRequestsPerSecond": (
            f"{means.peak_requests_per_second:.3g}",
            means.peak_requests_per_second / stated.peak_requests_per_second,
        ),
    }
    differing = [
        f"{name}: {text}" for name, (text, ratio) in figures.items() if not 1 / _ALIKE <= ratio <= _ALIKE
    ]
    if differing:
        yield (
            "Workers are sized by the workload section, which the trace is unlike; its own would be "
            f"{', '.join(differing)}."
        )


def _replayed_arguments(engine: str) -> set[str]:
    """Return the engine arguments that the replay's workers have too."""
    words = ENGINES[engine].WORDS
    sizes = {words.length, words.sequences, words.step_tokens, words.block_size, words.memory_share}
    return {*sizes, words.kv_cache_type, *_MEASURED_TYPES}
