"""The first compilation of each deployment on Neuron."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from inference_blueprints.report.figures.compilation_summary import CompilationSummary
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import Process
from inference_catalog.neuron import CompileTime, compile_times, neuron_route

_BYTES_PER_GB = 10**9
_MINUTES_PER_HOUR = 60


def summarise_compilations(
    roles: Iterable[tuple[ResolvedWorkers, Process]],
) -> Iterator[CompilationSummary]:
    """Yield the first compilation of each deployment that compiles, in the blueprint's order.

    Parameters
    ----------
    roles
        Workers with their process.
    """
    for resolved, process in roles:
        if resolved.model.engine.vllm_neuron is None:
            continue
        published = _published(resolved)
        hourly = resolved.instance_types[0].usd_per_hour
        yield CompilationSummary(
            deployment=f"{resolved.model.name}/{resolved.label}",
            key=process.artefacts.key if process.artefacts else None,
            minutes=published.minutes if published else None,
            usd=hourly * published.minutes[1] / _MINUTES_PER_HOUR if published and hourly else None,
            source=published.source if published else "",
        )


def _published(resolved: ResolvedWorkers) -> CompileTime | None:
    """Return the published time of the model that is closest in size; None if there is none."""
    route = neuron_route(resolved.accelerator)
    size = resolved.shape.weight_bytes / _BYTES_PER_GB
    known = compile_times(route.name) if route else ()
    return min(known, key=lambda each: abs(each.model_gb - size), default=None)
