"""Commands that only read blueprints: list, show, validate, schema, plan."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.options import ExitCode, NameOrInput, Output, OutputOption, print_json
from inference_contracts.errors import BlueprintError, Problem, UserError

if TYPE_CHECKING:
    from inference_blueprints.loading import LoadedBlueprint
    from inference_blueprints.report.plan.section import PlanSummary
    from inference_blueprints.spec.types import Spec


def register(app: typer.Typer) -> None:
    """Add this module's commands to the command line."""
    app.command("list")(list_blueprints)
    app.command("show")(show)
    app.command("validate")(validate)
    app.command("schema")(schema)
    app.command("plan")(plan)


def list_blueprints(output: OutputOption = Output.TEXT) -> None:
    """List the shipped blueprints, with their support levels."""
    from inference_blueprints.loading import load_blueprint
    from inference_blueprints.spec.source import describe, shipped
    from inference_blueprints.spec.used_features import support_of
    from inference_catalog.support_levels import NEVER_ON_HARDWARE

    supports = {name: support_of(load_blueprint(name).blueprint.spec) for name in shipped()}
    rows = [
        {
            "name": name,
            "description": describe(path),
            "path": str(path),
            "support": supports[name].level,
            "onHardware": supports[name].on_hardware,
        }
        for name, path in shipped().items()
    ]
    if output is Output.JSON:
        print_json(rows)
        return
    from inference_blueprints.report.tables import TextTable, print_rows, table_console

    content = tuple((str(row["name"]), str(row["support"]), str(row["description"])) for row in rows)
    console = table_console()
    print_rows(TextTable("", ("blueprint", "support", "description"), (), content), console)
    if not any(support.on_hardware for support in supports.values()):
        console.print(NEVER_ON_HARDWARE, markup=False, highlight=False, soft_wrap=True)


def show(
    name_or_path: NameOrInput,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            help="Write a picture of the platform, as SVG or PNG, and the folders above it.",
            metavar="FILE.svg|FILE.png",
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Print a blueprint; --output json includes all defaults."""
    if picture is not None and picture.suffix not in {".svg", ".png"}:
        raise UserError(f"--picture: got {picture}; a picture is written as FILE.svg or FILE.png")
    loaded = load(name_or_path, or_input=True)
    if picture is not None:
        from inference_blueprints.report.picture.drawing import png
        from inference_blueprints.report.picture.picture import picture as draw
        from inference_blueprints.serving.plan import build_plan

        svg = draw(loaded.blueprint, build_plan(loaded.blueprint))
        write_file(picture, png(svg) if picture.suffix == ".png" else svg)
        print(f"wrote {picture}", file=sys.stderr)
        if output is Output.JSON:
            print_json({"picture": str(picture)})
    elif output is Output.JSON:
        print_json(loaded.blueprint.model_dump(mode="json", by_alias=True, exclude_none=True))
    else:
        print(loaded.text, end="")


def validate(
    names_or_paths: Annotated[
        list[str],
        typer.Argument(
            metavar="NAME_OR_PATH...",
            help="Names of shipped blueprints, or YAML files; - for standard input.",
        ),
    ],
    output: OutputOption = Output.TEXT,
) -> None:
    """Check blueprints and show all errors. The exit code is 1 if there are any."""
    errors: list[Problem] = []
    warnings: list[Problem] = []
    for name_or_path in names_or_paths:
        try:
            warnings += _loaded(name_or_path).warnings
        except BlueprintError as error:
            errors += error.problems
    if output is Output.JSON:
        print_json({"valid": not errors, "errors": _as_dicts(errors), "warnings": _as_dicts(warnings)})
    else:
        _print_lines(warnings, prefix="warning: ")
        _print_lines(errors)
        if not errors:
            print(f"{', '.join(names_or_paths)}: valid")
    if errors:
        raise typer.Exit(ExitCode.FAILED)


def schema() -> None:
    """Print the blueprint's JSON Schema."""
    from inference_blueprints.spec.structure import schema_text

    print(schema_text(), end="")


def plan(
    name_or_path: NameOrInput,
    *,
    rates: Annotated[
        Path | None,
        typer.Option(
            "--rates", help="Your own prices, also for spot and reserved capacity.", metavar="FILE.yaml"
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option("--page", help="Write the plan and its picture as an HTML page.", metavar="FILE.html"),
    ] = None,
    fleet: Annotated[
        int | None,
        typer.Option(
            "--fleet",
            help="Instead of the plan, show how this many GPUs split into clusters and accounts.",
            metavar="GPUS",
            min=1,
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show every table, and warnings with what to do about them.")
    ] = False,
    sections: Annotated[
        str | None,
        typer.Option(
            "--sections",
            help="With --output json, only these sections, such as pools,cost. Default: all.",
            metavar="NAMES",
        ),
    ] = None,
    output: OutputOption = Output.TEXT,
) -> None:
    """Show what a blueprint deploys and costs, in about ten lines."""
    from inference_blueprints.report.plan.sections.batch import SERVICE_QUOTAS
    from inference_blueprints.report.plan.sections.objectives import read_replays, replays_path
    from inference_blueprints.report.plan.short_plan import print_short_plan, warnings_of
    from inference_blueprints.report.plan.summary import as_dict, chosen_sections, summarise
    from inference_blueprints.report.pricing.rates import load_rates
    from inference_blueprints.report.sizing.batch_quotas import hard_limits, refuse_exceeded
    from inference_blueprints.serving.plan import build_plan

    if sections is not None and output is not Output.JSON:
        raise UserError("--sections: chooses parts of the JSON; add --output json, or leave it out")
    chosen = None if sections is None else chosen_sections(sections)
    loaded = _loaded(name_or_path)
    serving_plan = build_plan(loaded.blueprint)
    own_rates = load_rates(rates, loaded.blueprint.spec.environment.region) if rates else None
    summary = summarise(
        loaded.blueprint, serving_plan, own_rates, read_replays(replays_path(Path(loaded.file)))
    )
    warnings = [*loaded.warnings, *warnings_of(summary, loaded.file)]
    if full or fleet is not None or output is Output.JSON:
        _print_lines(warnings, prefix="warning: ")
    if fleet is not None:
        if page is not None:
            raise UserError("--fleet and --page: got both, the page shows one platform; leave one out")
        if chosen is not None:
            raise UserError("--fleet and --sections: got both, a fleet has no sections; leave one out")
        _print_fleet(loaded.blueprint.spec, summary, fleet, output)
        return
    if page is not None:
        from inference_blueprints.report.plan.plan_page import plan_page

        write_file(page, plan_page(loaded.blueprint, serving_plan, summary, list(map(str, warnings))))
        print(f"wrote {page}", file=sys.stderr)
    if output is Output.JSON:
        print_json({**as_dict(summary, chosen), "warnings": _as_dicts(warnings)})
        if hard_limits(summary[SERVICE_QUOTAS]):
            raise typer.Exit(ExitCode.FAILED)
        return
    from rich.console import Console

    from inference_blueprints.report.plan.plan_tables import print_plan

    if full:
        print_plan(summary, Console())
    else:
        print_short_plan(summary, Console(), name_or_path, warnings)
    refuse_exceeded(summary[SERVICE_QUOTAS])


def _print_fleet(spec: Spec, summary: PlanSummary, gpus: int, output: Output) -> None:
    from inference_blueprints.report.fleet.fleet_cost import fleet_cost, fleet_sentence, fleet_tables
    from inference_blueprints.report.fleet.fleet_split import fleet_split

    split = fleet_split(spec, summary, gpus)
    cost = fleet_cost(split, summary)
    if output is Output.JSON:
        import dataclasses

        from inference_blueprints.report.plan.summary import camel_case

        items = [dataclasses.asdict(item) for item in cost]
        print_json(camel_case({"fleet": dataclasses.asdict(split), "cost": items}))
        return
    from rich.text import Text

    from inference_blueprints.report.tables import print_table, table_console

    console = table_console()
    console.print(Text(fleet_sentence(split)))
    for table in fleet_tables(split, cost):
        print_table(table, console)


def load(name_or_path: str, *, show_warnings: bool = False, or_input: bool = False) -> LoadedBlueprint:
    """Load a blueprint and show on standard error that it has warnings.

    name_or_path: Name of a shipped blueprint, or path of a YAML file.
    show_warnings: Whether to show each warning, and not only their number.
    or_input: Whether `-` stands for standard input.
    Raises BlueprintError if the blueprint cannot be used.
    """
    from inference_blueprints.loading import load_blueprint

    now = datetime.now(UTC)
    loaded = _loaded(name_or_path) if or_input else load_blueprint(name_or_path, now=now)
    if show_warnings:
        _print_lines(loaded.warnings, prefix="warning: ")
    elif loaded.warnings:
        count = "1 warning" if len(loaded.warnings) == 1 else f"{len(loaded.warnings)} warnings"
        print(f"{count}; to see all: blueprints validate {name_or_path}", file=sys.stderr)
    return loaded


def _loaded(name_or_path: str) -> LoadedBlueprint:
    """Load a blueprint by its name or path, or from standard input for `-`."""
    from inference_blueprints.loading import load_blueprint, load_standard_input

    now = datetime.now(UTC)
    return load_standard_input(now=now) if name_or_path == "-" else load_blueprint(name_or_path, now=now)


def writing_model(loaded: LoadedBlueprint, name: str | None) -> tuple[int, str]:
    """Return the index of a model that writes text, in the blueprint's list, and its name for requests.

    name: A name of the model. None if the blueprint has exactly one.
    Raises UserError as `named_model` does, or if the model writes no text.
    """
    from inference_blueprints.spec.named_model import named_model

    try:
        index, asked = named_model(loaded.blueprint.spec.models, name)
    except UserError as error:
        raise UserError(f"{loaded.file}: {error}") from error
    model = loaded.blueprint.spec.models[index]
    if model.task != "generate":
        raise UserError(
            f"{loaded.file}: got the model {model.name} with 'task: {model.task}'; this command measures "
            "answers of tokens, and this model writes none. Name a model that writes text with --model"
        )
    return index, asked


def write_file(path: Path, content: str | bytes) -> None:
    """Write a file that the user named, and the folders above it.

    content: Content of the file.
    Raises UserError if the file cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    except OSError as error:
        raise UserError(f"{path}: cannot be written: {error.strerror}; choose another place") from error


def _as_dicts(problems: Sequence[Problem]) -> list[dict[str, str | int]]:
    return [problem.as_dict() for problem in problems]


def _print_lines(problems: Sequence[Problem], prefix: str = "") -> None:
    for problem in problems:
        print(f"{prefix}{problem}", file=sys.stderr)
