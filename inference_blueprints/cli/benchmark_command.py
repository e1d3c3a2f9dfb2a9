"""The command that measures a live endpoint: benchmark."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load, model_index
from inference_blueprints.cli.options import ModelOption, Output, OutputOption, TraceOption
from inference_blueprints.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.benchmarking.asking import Access, Asker
    from inference_blueprints.benchmarking.job import InCluster
    from inference_blueprints.benchmarking.questions import Questions
    from inference_blueprints.planning.plan_table import PlanTable
    from inference_blueprints.serving.types import ModelPlan
    from inference_blueprints.spec.types import Blueprint


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line.

    Parameters
    ----------
    app
        The command line's root.
    """
    app.command("benchmark")(benchmark)


def benchmark(
    url: Annotated[str, typer.Argument(metavar="URL", help="The endpoint, such as http://127.0.0.1:8000.")],
    *,
    blueprint: Annotated[
        str,
        typer.Option(
            "--blueprint", metavar="NAME_OR_PATH", help="What serves there: workload, objectives and price."
        ),
    ],
    model: ModelOption = None,
    trace: TraceOption = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1.0, max=3600.0, help="How long requests arrive at the most.")
    ] = 60.0,
    requests: Annotated[
        int, typer.Option("--requests", min=2, max=10_000, help="How many requests at the most.")
    ] = 2000,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="What tune --output json printed, for a row beside."),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option("--api-key-env", metavar="NAME", help="Environment variable with the endpoint's key."),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option("--ca-file", metavar="FILE", help="Certificates, in PEM form, of a private authority."),
    ] = None,
    job: Annotated[bool, typer.Option("--job", help="Ask from within the platform's cluster.")] = False,
    image: Annotated[
        str | None, typer.Option("--image", metavar="IMAGE", help="With --job: a copy of aiperf's image.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="With --job: print the manifest and do nothing.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Ask a live endpoint as the workload or a trace of yours does; the columns are those of tune."""
    from inference_blueprints.benchmarking import words
    from inference_blueprints.benchmarking.asking import access
    from inference_blueprints.benchmarking.benchmark import benchmark as run
    from inference_blueprints.benchmarking.benchmark import prepare
    from inference_blueprints.benchmarking.tuned import read_tuned
    from inference_blueprints.serving.plan import build_plan

    if not job and (image or dry_run):
        raise UserError(f"{'--image' if image else '--dry-run'} goes with --job")
    loaded = load(blueprint)
    index = model_index(loaded, model)
    section, plan = loaded.blueprint.spec.models[index], build_plan(loaded.blueprint).models[index]
    shown = access(api_key_env, ca_file, os.environ)
    questions = prepare(loaded.blueprint, index, trace=trace, seconds=seconds, requests=requests)
    tuned = read_tuned(against, section, questions.demand.means) if against else None
    if dry_run:
        _print_manifest(url, plan, questions, shown, image)
        return
    with _asker(loaded.blueprint, plan, shown, image) if job else _from_here(plan, shown) as asker:
        found = run(loaded.blueprint, index, url, asker, _say, access=shown, questions=questions)
    if output is Output.JSON:
        print(json.dumps(words.as_dict(found, tuned), indent=2))
    else:
        _print(words.title(found), (words.comparison(found, tuned), words.latencies(found)))
    if found.measurement.failures:
        raise typer.Exit(1)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


@contextmanager
def _from_here(plan: ModelPlan, access: Access) -> Iterator[Asker]:
    from inference_blueprints import catalog
    from inference_blueprints.benchmarking.asking import FromHere

    yield FromHere(access, catalog.model(plan.catalog_name))


@contextmanager
def _asker(blueprint: Blueprint, plan: ModelPlan, access: Access, image: str | None) -> Iterator[InCluster]:
    """Ask by a Job; the token for the cluster lies in a folder of its own for as long."""
    from inference_blueprints.benchmarking.job import InCluster
    from inference_blueprints.benchmarking.job_objects import IMAGE
    from inference_blueprints.deployment.account import Account
    from inference_blueprints.deployment.cluster_access import connect

    account = Account(blueprint.spec.environment.region)
    with tempfile.TemporaryDirectory() as folder:
        yield InCluster(
            lambda: connect(account, blueprint.metadata.name, Path(folder)),
            plan.deployments[0],
            access,
            image or IMAGE,
            _say,
        )


def _print_manifest(
    url: str, plan: ModelPlan, questions: Questions, access: Access, image: str | None
) -> None:
    """Print what a Job would be made of, but for the key, as if a word were a token."""
    import yaml

    from inference_blueprints.benchmarking.benchmark import TokensOf, endpoint, errand
    from inference_blueprints.benchmarking.job import models_namespace, objects
    from inference_blueprints.benchmarking.job_objects import IMAGE

    asked = errand(endpoint(url), plan.name, questions, TokensOf(1.0, 0))
    manifests = objects(asked, models_namespace(plan.deployments[0]), image or IMAGE, access)
    print(yaml.safe_dump_all(manifests, sort_keys=False), end="")
    _say("the key is left out, and the prompts have as many words as they would have tokens")


def _print(title: str, tables: Sequence[PlanTable]) -> None:
    from rich.console import Console
    from rich.text import Text

    from inference_blueprints.planning.tables import terminal_table

    console = Console()
    console.print(Text(title, style="bold"))
    for table in tables:
        console.print(terminal_table(table))
        for note in table.notes:
            console.print(Text(note))
