"""How long the first compilation of a deployment on Neuron takes, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from inference_blueprints.report.plan.cells import few
from inference_blueprints.report.plan.section import Label, PlanBasis, PlanSection, PlanSummary, ShortLine
from inference_blueprints.report.tables import TextTable
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_catalog.neuron import CompileTime, compile_times, neuron_route
from inference_contracts.records import dataclass
from inference_contracts.units import GB, MINUTES_PER_HOUR


@dataclass(frozen=True, slots=True)
class CompilationSummary:
    """The first compilation of one deployment."""

    deployment: str
    """As ``model/deployment``."""
    key: str | None
    """Key of its artefacts in S3; None if they cannot be shared."""
    minutes: tuple[float, float] | None
    """Shortest and longest published time, in minutes; None if nobody published one."""
    usd: float | None
    """Cost of the node for the longest time, in US dollars; None if time or price is unknown."""
    source: str
    """For what the time is published; empty if it is not."""


def _summarise(basis: PlanBasis) -> Iterator[CompilationSummary]:
    """Yield the first compilation of each deployment that compiles, in the blueprint's order."""
    for resolved, process in basis.roles:
        if resolved.model.engine.vllm_neuron is None:
            continue
        published = _published(resolved)
        hourly = resolved.types[0].usd_per_hour
        yield CompilationSummary(
            deployment=f"{resolved.model.name}/{resolved.label}",
            key=process.artefacts.key if process.artefacts else None,
            minutes=published.minutes if published else None,
            usd=hourly * published.minutes[1] / MINUTES_PER_HOUR if published and hourly else None,
            source=published.source if published else "",
        )


def _published(resolved: ResolvedWorkers) -> CompileTime | None:
    """Return the published time of the model that is closest in size; None if there is none."""
    route = neuron_route(resolved.accelerator)
    size = resolved.shape.weight_bytes / GB
    known = compile_times(route.name) if route else ()
    return min(known, key=lambda each: abs(each.model_gb - size), default=None)


def compilations(summary: PlanSummary) -> TextTable:
    """Return the table of first compilations, which has rows if a deployment compiles its model."""
    return TextTable(
        "First compilation",
        ("deployment",),
        ("published time, min", "cost of the node, USD", "kept in S3 below"),
        tuple(map(_row, summary[COMPILATIONS])),
        (
            *dict.fromkeys(f"Published: {each.source}." for each in summary[COMPILATIONS] if each.source),
            "The time is that of the published model of the closest size, not a measurement of this one. "
            "Artefacts are kept below the key until something that it holds changes; without a commit as "
            "'revision' they are not kept. docs/neuron.md lists what the key holds.",
        ),
    )


def _row(each: CompilationSummary) -> tuple[str, ...]:
    minutes = "no data"
    if each.minutes:
        minimum, maximum = each.minutes
        minutes = f"{minimum:g}" if minimum == maximum else f"{minimum:g} to {maximum:g}"
    return (
        each.deployment,
        minutes,
        "no data" if each.usd is None else f"{each.usd:.2f}",
        each.key or "not kept",
    )


def _in_short(summary: PlanSummary) -> Iterator[ShortLine]:
    """Yield the first compilations."""
    if summary[COMPILATIONS]:
        yield Label.NEW_NODE, few(map(_compilation_in_short, summary[COMPILATIONS]))


def _compilation_in_short(each: CompilationSummary) -> str:
    time = "for an unknown time" if each.minutes is None else f"{each.minutes[1]:g} min (published)"
    again = "" if each.key else ", and again on each node"
    return f"the first compiles for Neuron {time}{again}"


COMPILATIONS = PlanSection("compilations", lambda basis: tuple(_summarise(basis)), _in_short, (compilations,))
