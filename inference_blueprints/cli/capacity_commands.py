"""The commands about the capacity shift: capacity simulate, capacity explain."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inference_blueprints.cli.options import NameOrPath, Output, OutputOption, print_json
from inference_contracts.errors import UserError
from inference_contracts.number_text import number
from inference_contracts.records import dataclass
from inference_contracts.units import SECONDS_PER_HOUR

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inference_blueprints.measure.shift_simulation.simulated_shift import ModelSharing
    from inference_blueprints.measure.shift_simulation.traced_workers import (
        MovedWorkers,
        TracedWorkers,
        WayTraces,
    )
    from inference_blueprints.serving.autoscaling.request_rates import RequestRates
    from inference_blueprints.spec.types import Blueprint
    from inference_contracts.shift_names import ShiftConfiguration
    from inference_decisions.capacity_shift.shift_answer import DeploymentDecision
    from inference_decisions.capacity_shift.shift_view import ShiftSettings


app = typer.Typer(help="Simulate the capacity shift, and explain its decisions.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    """Add the group `capacity` to the command line."""
    root.add_typer(app, name="capacity")


_TRACE_HELP = (
    "Recorded request rates: a CSV file in the format of ServeGen, with the columns start_s, req/s and, if "
    "known, CV. One file for all ways in, or one with NAME=FILE for each model, streaming job or queue."
)
_TRACE_OPTION = typer.Option("--trace", metavar="[NAME=]FILE", help=_TRACE_HELP)
RatesOption = Annotated[list[str], _TRACE_OPTION]
OptionalRatesOption = Annotated[list[str] | None, _TRACE_OPTION]
BatchHoursOption = Annotated[
    list[str] | None,
    typer.Option(
        "--batch-hours",
        metavar="QUEUE=HOURS",
        help="GPU hours per day that a queue needs of a shared pool. Default: from its load and the latency "
        "profile of its workers (simulated).",
    ),
]
RequestSecondsOption = Annotated[
    float | None,
    typer.Option(
        "--request-seconds",
        metavar="SECONDS",
        help="Mean time of a request that you measured. Default: that of the latency profile (simulated).",
    ),
]


@app.command()
def simulate(
    name_or_path: NameOrPath,
    trace: RatesOption,
    request_seconds: RequestSecondsOption = None,
    batch_hours: BatchHoursOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Replay traces: what the shift frees for batch, and what real time misses (simulated).

    On pools that models share, also what each other way to run the pool needs.
    """
    from inference_blueprints.measure.shift_simulation.simulated_pools import (
        pool_as_dict,
        pool_notes,
        pool_table,
        simulated_pools,
    )
    from inference_blueprints.measure.shift_simulation.simulated_shift import (
        demand_long_enough,
        simulated_shift,
    )
    from inference_blueprints.measure.shift_simulation.traced_workers import learnt_bins, traced_workers

    shift = _moved(name_or_path)
    settings = shift.settings
    traces = shift.traces(trace)
    demand_long_enough(traces.longest, settings)
    traced = traced_workers(shift.moved, traces, _positive(request_seconds))
    found = list(
        simulated_shift([each for each in traced if not each.moved.workers.handover_seconds], settings)
    )
    pools = list(
        simulated_pools(
            shift.blueprint,
            shift.configuration,
            traced,
            traces,
            learnt=learnt_bins(settings),
            batch_hours=_hours_of_queues(batch_hours or []),
        )
    )
    notes = [
        *_notes(traced, traces, settings),
        *(_notes_of_simulation(traced, settings) if found else ()),
        *(note for each in pools for note in pool_notes(each)),
    ]
    if output is Output.JSON:
        print_json(
            {
                "simulated": True,
                "trace": {
                    **_trace(trace[0], traces.longest),
                    "learntHours": settings.learn_seconds / SECONDS_PER_HOUR,
                },
                "settings": _settings(settings),
                "workers": [_worker(each) for each in traced],
                "models": [
                    {"model": model, "ways": [_way(each) for each in found if each.model == model]}
                    for model in dict.fromkeys(each.model for each in found)
                ],
                **({"pools": [pool_as_dict(each) for each in pools]} if pools else {}),
                "notes": notes,
            }
        )
        return
    from inference_blueprints.report.tables import TextTable, print_table, table_console

    rows = tuple(
        (
            each.model,
            each.way,
            f"{each.freed_percent:.1f}",
            f"{each.freed_of_oracle_percent:.1f}",
            f"{100.0 * each.unmet:.3f}",
        )
        for each in found
    )
    figures = ("freed, % of pool-hours", "freed, % of the oracle's", "unmet demand, %")
    tables = [TextTable("Capacity shift (simulated)", ("model", "way"), figures, rows)] if found else []
    tables += [pool_table(each) for each in pools]
    tables[-1] = replace(tables[-1], notes=tuple(notes))
    for table in tables:
        print_table(table, table_console())


@app.command()
def explain(
    name_or_path: NameOrPath,
    *,
    trace: OptionalRatesOption = None,
    at: Annotated[
        float | None,
        typer.Option(
            "--at", metavar="HOUR", help="Time since the start of the trace, in hours. Default: its end."
        ),
    ] = None,
    request_seconds: RequestSecondsOption = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Explain the settings of the shift; with a trace, what it would decide at a time, and why."""
    from inference_blueprints.measure.shift_simulation.simulated_shift import (
        decisions_at,
        explained_decision,
        explained_settings,
    )
    from inference_blueprints.measure.shift_simulation.traced_workers import traced_workers

    shift = _moved(name_or_path)
    settings, moved, start_is_default = shift.settings, shift.moved, shift.start_is_default
    if not trace:
        given = [
            name
            for name, value in (("--at", at), ("--request-seconds", request_seconds))
            if value is not None
        ]
        if given:
            raise UserError(f"got {' and '.join(given)} without --trace; give a trace, or leave it out")
        sentences = list(explained_settings(moved, settings, start_is_default=start_is_default))
        if output is Output.JSON:
            source = "default" if start_is_default else "blueprint"
            shown = {**_settings(settings), "reclaimSecondsFrom": source}
            print_json({"settings": shown, "explanation": sentences})
        else:
            print("\n".join(sentences))
        return
    traces = shift.traces(trace)
    rates = traces.longest
    traced = traced_workers(moved, traces, _positive(request_seconds))
    hour = (rates.end_seconds - rates.start_seconds) / SECONDS_PER_HOUR if at is None else at
    found = decisions_at(traced, settings, hour)
    notes = list(_notes(traced, traces, settings))
    if output is Output.JSON:
        print_json(
            {
                "simulated": True,
                "trace": {**_trace(trace[0], rates), "atHour": hour},
                "settings": _settings(settings),
                "decisions": [
                    {
                        **_decision(each, decision),
                        "explanation": list(explained_decision(each.moved, decision, settings)),
                    }
                    for each, decision in zip(traced, found, strict=True)
                ],
                "notes": notes,
            }
        )
        return
    name = Path(trace[0]).name if traces.common else "the traces"
    print(f"Simulated decision, {hour:g} h after the start of {name}")
    for each, decision in zip(traced, found, strict=True):
        first, *others = explained_decision(each.moved, decision, settings)
        print(f"\n{first}")
        for line in others:
            print(f"  {line}")
    print()
    for note in notes:
        print(note)


@dataclass(frozen=True, slots=True)
class _Shift:
    """The capacity shift of a blueprint."""

    blueprint: Blueprint
    configuration: ShiftConfiguration
    settings: ShiftSettings
    moved: Sequence[MovedWorkers]
    start_is_default: bool
    """Whether the blueprint says nothing about the time in which lent workers are back."""

    @property
    def queues(self) -> Sequence[str]:
        """Names of the queues."""
        batch = self.blueprint.spec.batch
        return [each.name for each in batch.queues] if batch else []

    def traces(self, given: Sequence[str]) -> WayTraces:
        """Read what the user gave as ``--trace``. Raises UserError if a trace is for no way in."""
        from inference_blueprints.measure.shift_simulation.traced_workers import WayTraces

        found = WayTraces.read(given)
        found.check_names([*(name for each in self.moved for name, _ in each.ways), *self.queues])
        return found


def _moved(name_or_path: str) -> _Shift:
    """Return the shift of a blueprint, and the workers that it moves."""
    from inference_blueprints.cli.blueprint_commands import load
    from inference_blueprints.measure.shift_simulation.traced_workers import (
        moved_configuration,
        moved_workers,
    )
    from inference_blueprints.serving.plan import build_plan
    from inference_decisions.capacity_shift.shift_view import ShiftSettings

    blueprint = load(name_or_path).blueprint
    plan = build_plan(blueprint)
    configuration = moved_configuration(blueprint, plan)
    shift = blueprint.spec.capacity_shift
    return _Shift(
        blueprint,
        configuration,
        ShiftSettings.of(configuration),
        list(moved_workers(blueprint, plan, configuration)),
        shift is None or "reclaim_seconds" not in shift.model_fields_set,
    )


def _hours_of_queues(given: Sequence[str]) -> dict[str, float]:
    """Return what the user gave, such as ``nightly=120``, by queue."""
    found: dict[str, float] = {}
    for each in given:
        name, _, hours = each.partition("=")
        if name in found:
            raise UserError(f"got --batch-hours twice for {name}; give one")
        try:
            found[name] = float(hours)
        except ValueError:
            found[name] = -1.0
        if not name or not 0.0 <= found[name] < float("inf"):
            raise UserError(f"got --batch-hours {each}; write QUEUE=HOURS with GPU hours per day, from 0")
    return found


def _positive(request_seconds: float | None) -> float | None:
    """Return the time of a request that the user gave, if it is one."""
    if request_seconds is not None and not 0.0 < request_seconds < SECONDS_PER_HOUR:
        raise UserError(f"got --request-seconds {request_seconds:g}; allowed is more than 0 and below 3600")
    return request_seconds


def _notes(traced: Sequence[TracedWorkers], traces: WayTraces, settings: ShiftSettings) -> Iterator[str]:
    """Yield how traces became demand."""
    if traces.common:
        yield (
            f"The trace has up to {number(traces.common.peak, 4)} requests per second. It is scaled, so that "
            "this is each model's workload.peakRequestsPerSecond. "
            "Arrivals vary at random around the rates, the same in each run."
        )
    else:
        peaks = ", ".join(f"{name} {number(rates.peak, 4)}" for name, rates in traces.by_name.items())
        yield (
            f"The traces have up to these requests per second: {peaks}. Each is scaled, so that this is the "
            "peak of its way in. Arrivals vary at random around the rates, the same in each run."
        )
    for each in traced:
        workers = each.moved.workers
        source = "measured" if each.is_measured else "the time of a request on a full worker, simulated"
        yield (
            f"{workers.name}: requests in flight are requests per second, "
            f"up to {number(each.moved.peak_requests_per_second, 4)}, times {number(each.seconds)} s "
            f"({source}). A worker carries {number(workers.capacity, 4)}, {each.moved.reason}. "
            "So the peak needs "
            f"{number(max(each.values) / workers.capacity)} of at most {workers.most} workers."
        )
        if each.above_maximum:
            yield (
                f"{workers.name}: {number(100.0 * each.above_maximum)} % of the trace's demand is more than "
                f"{workers.most} workers can serve. It is left out, and no figure here counts it as unmet; "
                "raise 'max', or expect that much more to be missed."
            )
    if settings.action == "observe":
        yield "capacityShift.action is observe: the platform records such decisions, and changes nothing."


def _notes_of_simulation(traced: Sequence[TracedWorkers], settings: ShiftSettings) -> Iterator[str]:
    """Yield what the figures count."""
    yield (
        f"The first {settings.learn_seconds / SECONDS_PER_HOUR:g} h are only learnt from. The pool is the "
        "elastic workers of a model at their maximum. "
        "The oracle knows the demand of each minute before it comes. Queues for jobs are not simulated."
    )
    apart = [each.moved.workers.name for each in traced if not each.moved.places]
    if apart:
        yield f"Batch does not use {', '.join(apart)}: only whole workers are lent there."


def _trace(path: str, rates: RequestRates) -> dict[str, Any]:
    return {
        "file": path,
        "hours": (rates.end_seconds - rates.start_seconds) / SECONDS_PER_HOUR,
        "peakRequestsPerSecond": rates.peak,
    }


def _settings(settings: ShiftSettings) -> dict[str, Any]:
    return {
        "action": settings.action,
        "safetyPercent": settings.safety_percent,
        "reclaimSeconds": settings.reclaim_seconds,
    }


def _worker(traced: TracedWorkers) -> dict[str, Any]:
    workers = traced.moved.workers
    return {
        "name": workers.name,
        "model": workers.model,
        "peakRequestsPerSecond": traced.moved.peak_requests_per_second,
        "requestSeconds": traced.seconds,
        "requestsPerWorker": workers.capacity,
        "least": workers.least,
        "most": workers.most,
        "demandAboveMostPercent": 100.0 * traced.above_maximum,
        "batchPlaces": traced.moved.places,
    }


def _way(sharing: ModelSharing) -> dict[str, Any]:
    return {
        "way": sharing.way,
        "freedPercent": sharing.freed_percent,
        "freedOfOraclePercent": sharing.freed_of_oracle_percent,
        "unmetPercent": 100.0 * sharing.unmet,
        "poolAcceleratorHours": sharing.pool_hours,
    }


def _decision(traced: TracedWorkers, decision: DeploymentDecision) -> dict[str, Any]:
    forecast = decision.forecast
    return {
        **_worker(traced),
        "floor": decision.floor,
        "places": decision.batch_places,
        "forecast": forecast
        and {
            "now": forecast.level,
            "soon": forecast.soon,
            "later": forecast.later,
            "sameHoursBefore": forecast.season,
        },
        "reasons": [{"code": reason.code, "text": reason.text} for reason in decision.reasons],
    }
