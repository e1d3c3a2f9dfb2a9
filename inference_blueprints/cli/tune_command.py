"""The command that chooses a model's configuration: tune."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.added_commands import demand_replay
from inference_blueprints.cli.blueprint_commands import load, write_file, writing_model
from inference_blueprints.cli.options import (
    ExitCode,
    ModelOption,
    NameOrPath,
    Output,
    OutputOption,
    TraceOption,
    print_json,
)
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.loading import LoadedBlueprint
    from inference_blueprints.measure.tuning.tune import Tuning


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line."""
    app.command("tune")(tune)


def tune(
    name_or_path: NameOrPath,
    *,
    model: ModelOption = None,
    trace: TraceOption = None,
    gpus: Annotated[
        int | None, typer.Option("--gpus", min=1, metavar="N", help="Maximum number of accelerators.")
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option("--engine", help="Only this engine; repeatable. Default: all suitable ones."),
    ] = None,
    rates: Annotated[
        Path | None,
        typer.Option(
            "--rates", help="Your own prices, also for spot and reserved capacity.", metavar="FILE.yaml"
        ),
    ] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the best configuration into the blueprint.")
    ] = False,
    as_written: Annotated[
        bool,
        typer.Option(
            "--as-written",
            help="Search nothing: replay the file's own workers, and record it for `plan` beside the file.",
        ),
    ] = False,
    page: Annotated[
        Path | None,
        typer.Option("--page", help="Write the table and plots as an HTML page.", metavar="FILE.html"),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Find the cheapest configuration that meets the objectives. All figures come from simulated replays."""
    demand_replay()
    from inference_blueprints.measure.tuning.search import shown_progress
    from inference_blueprints.measure.tuning.tune import tune as search
    from inference_blueprints.measure.tuning.tuning_page import tuning_page
    from inference_blueprints.operate.versions import own_file
    from inference_blueprints.report.pricing.rates import load_rates

    if as_written:
        refused = {"--write": write, "--page": page, "--gpus": gpus, "--engine": engine, "--rates": rates}
        if given := [name for name, value in refused.items() if value]:
            raise UserError(f"--as-written: got {', '.join(given)} too, which choose or price; leave one out")
        _replay_as_written(name_or_path, model, trace, output)
        return
    if write:
        own_file(name_or_path)
    loaded = load(name_or_path)
    blueprint = loaded.blueprint
    if write and blueprint.spec.capacity_shift is not None:
        raise UserError(
            f"{name_or_path}: --write writes a fixed number of workers, and 'capacityShift' needs a range "
            "with 'scaledBy'; leave --write out, and set 'replicas' by hand"
        )
    with shown_progress() as progress:
        found = search(
            blueprint,
            writing_model(loaded, model)[0],
            progress,
            trace=trace,
            max_accelerators=gpus,
            engines_looked_at=_engines(engine or []),
            rates=load_rates(rates, blueprint.spec.environment.region) if rates else None,
        )
    if page is not None:
        write_file(page, tuning_page(found))
        print(f"wrote {page}", file=sys.stderr)
    _print(found, output)
    if found.best is None:
        raise typer.Exit(ExitCode.FAILED)
    if write:
        _write(loaded, name_or_path, found)


def _replay_as_written(name_or_path: str, model: str | None, trace: Path | None, output: Output) -> None:
    """Replay the file's own workers, and record the result beside it."""
    from datetime import UTC, datetime

    from inference_blueprints.measure.tuning import tuning_text
    from inference_blueprints.measure.tuning.replayed_workload import objectives_of
    from inference_blueprints.measure.tuning.tune import replay_as_written
    from inference_blueprints.operate.versions import own_file
    from inference_blueprints.report.plan.sections.objectives import (
        deployment_name,
        read_replays,
        replays_path,
        write_replays,
    )
    from inference_blueprints.spec.types import all_met, judge

    path = replays_path(own_file(name_or_path))
    loaded = load(name_or_path)
    index = writing_model(loaded, model)[0]
    read_replays(path)  # what cannot be read cannot be added to: say so before the work
    day = datetime.now(UTC).date().isoformat()
    replays = replay_as_written(loaded.blueprint, index, day=day, trace=trace)
    replayed = loaded.blueprint.spec.models[index]
    write_replays(path, {deployment_name(replayed, name): each for name, each in replays.items()})
    print(f"wrote {path}; next: blueprints plan {name_or_path}", file=sys.stderr)
    judged = {name: judge(objectives_of(replayed), each.percentile_ms) for name, each in replays.items()}
    keeps = all(all_met(each) for each in judged.values())
    if output is Output.JSON:
        print_json(
            {
                "simulated": True,
                "model": replayed.name,
                "date": day,
                "trace": next(iter(replays.values())).trace,
                "keepsObjectives": keeps,
                "judged": [
                    {"deployment": name, **each}
                    for name, found in judged.items()
                    for each in tuning_text.judged_as_dict(found)
                ],
            }
        )
    else:
        for name, found in judged.items():
            for objective in found:
                described = tuning_text.describe_judged(objective)
                print(f"{deployment_name(replayed, name)}: {described} (simulated)")
    if not keeps:
        raise typer.Exit(ExitCode.FAILED)


def _engines(names: list[str]) -> list[str]:
    """Return the names of engines if all are known."""
    from inference_blueprints.serving.engines import ENGINES

    unknown = [name for name in names if name not in ENGINES]
    if unknown:
        raise UserError(f"got --engine {', '.join(unknown)}; allowed are {', '.join(ENGINES)}")
    return names


def _print(found: Tuning, output: Output) -> None:
    """Print the result."""
    from inference_blueprints.measure.tuning import tuning_text

    if output is Output.JSON:
        print_json(tuning_text.as_dict(found))
        return
    from rich.console import Console
    from rich.text import Text

    from inference_blueprints.measure.tuning.accelerator_comparison import comparison_table
    from inference_blueprints.report.tables import print_rows

    console = Console()
    table = tuning_text.rank_configurations(found)
    console.print(Text(tuning_text.describe_search(found), style="bold"))
    console.print(Text(f"objectives: {tuning_text.describe_objective(found)}"))
    if table.rows:
        print_rows(table, console)
    effort = ("", tuning_text.describe_effort(found)) if found.covered else ()
    for line in (*(table.notes if table.rows else ()), "", tuning_text.explain_choice(found), *effort):
        console.print(Text(line))
    for note in found.notes:
        console.print(Text(note))
    others = comparison_table(found.others)
    console.print(Text(f"\n{others.title}", style="bold"))
    print_rows(others, console)
    for note in others.notes:
        console.print(Text(note))


def _write(loaded: LoadedBlueprint, file: str, found: Tuning) -> None:
    """Write the best configuration into the file."""
    from inference_blueprints.measure.tuning.tuned_blueprint import write_configuration

    if found.best is None:
        return
    model = found.blueprint.spec.models[found.model_index]
    candidate = found.best.candidate
    changed = write_configuration(
        Path(loaded.file),
        loaded.written,
        model.name,
        candidate.deployment(model.deployments[0].name),
        candidate.shape.engine,
    )
    said = (
        f"wrote {file}; next: blueprints plan {file}" if changed else f"{file} already has this configuration"
    )
    print(said, file=sys.stderr)
