"""The command that measures a live endpoint: benchmark."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.added_commands import demand_replay
from inference_blueprints.cli.blueprint_commands import load, writing_model
from inference_blueprints.cli.options import (
    ExitCode,
    ModelOption,
    Output,
    OutputOption,
    TraceOption,
    print_json,
)
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.measure.benchmarking.load_generators import Access, LoadGenerator, LoadTest
    from inference_blueprints.operate.benchmark_job.cluster_job import ClusterLoadGenerator
    from inference_blueprints.report.tables import TextTable
    from inference_blueprints.serving.types import ModelPlan
    from inference_blueprints.spec.types import Blueprint, Model


def register(app: typer.Typer) -> None:
    """Add this module's command to the command line."""
    app.command("benchmark")(benchmark)


def benchmark(
    url: Annotated[
        str, typer.Argument(metavar="URL", help="Address of the endpoint, such as http://127.0.0.1:8000.")
    ],
    *,
    blueprint: Annotated[
        str,
        typer.Option(
            "--blueprint", metavar="NAME_OR_PATH", help="Blueprint with workload, objectives and prices."
        ),
    ],
    model: ModelOption = None,
    trace: TraceOption = None,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1.0, max=3600.0, help="Maximum time to send requests.")
    ] = 60.0,
    requests: Annotated[
        int, typer.Option("--requests", min=2, max=10_000, help="Maximum number of requests.")
    ] = 2000,
    against: Annotated[
        Path | None,
        typer.Option("--against", metavar="FILE", help="Output of `tune --output json` to compare with."),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            "--api-key-env", metavar="NAME", help="Environment variable that has the endpoint's key."
        ),
    ] = None,
    ca_file: Annotated[
        Path | None,
        typer.Option("--ca-file", metavar="FILE", help="Certificates of a private authority, in PEM format."),
    ] = None,
    job: Annotated[
        bool, typer.Option("--job", help="Send requests from a Job in the platform's cluster.")
    ] = False,
    image: Annotated[
        str | None,
        typer.Option("--image", metavar="IMAGE", help="With --job: your copy of the aiperf image."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --job: only print the manifest.")] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Load-test a live endpoint. The requests follow the blueprint's workload or your own trace."""
    from inference_blueprints.measure.benchmarking import benchmark_text
    from inference_blueprints.measure.benchmarking.benchmark import TokenCounts, endpoint, load_test, prepare
    from inference_blueprints.measure.benchmarking.benchmark import benchmark as run
    from inference_blueprints.measure.benchmarking.benchmark_text import read_tuned
    from inference_blueprints.measure.benchmarking.load_generators import access
    from inference_blueprints.serving.plan import build_plan

    if not job and (image or dry_run):
        option = "--image" if image else "--dry-run"
        raise UserError(f"got {option} without --job; add --job, or remove {option}")
    if not dry_run:
        demand_replay()  # the requests are replayed after the measurement
    loaded = load(blueprint)
    index, asked = writing_model(loaded, model)
    section, plan = loaded.blueprint.spec.models[index], build_plan(loaded.blueprint).models[index]
    shown = access(api_key_env, ca_file, os.environ)
    questions = prepare(loaded.blueprint, index, trace=trace, seconds=seconds, requests=requests)
    tuned = read_tuned(against, section, questions.demand.means) if against else None
    if dry_run:
        _print_manifest(load_test(endpoint(url), asked, questions, TokenCounts(1.0, 0)), plan, shown, image)
        return
    with (
        _cluster_load_generator(loaded.blueprint, plan, shown, image)
        if job
        else _local_load_generator(section, shown) as load_generator
    ):
        found = run(
            loaded.blueprint, index, url, load_generator, _say, name=asked, access=shown, questions=questions
        )
    if output is Output.JSON:
        print_json(benchmark_text.as_dict(found, tuned))
    else:
        _print(
            benchmark_text.title(found),
            (benchmark_text.comparison(found, tuned), benchmark_text.latencies(found)),
        )
    if found.measurement.failures:
        raise typer.Exit(ExitCode.FAILED)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


@contextmanager
def _local_load_generator(model: Model, access: Access) -> Iterator[LoadGenerator]:
    from inference_blueprints.measure.benchmarking.load_generators import LocalLoadGenerator
    from inference_blueprints.serving.resolved import shape_of

    yield LocalLoadGenerator(access, shape_of(model.weights))


@contextmanager
def _cluster_load_generator(
    blueprint: Blueprint, plan: ModelPlan, access: Access, image: str | None
) -> Iterator[ClusterLoadGenerator]:
    """Send requests from a Job; the cluster's token is in a temporary folder until the end."""
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.benchmark_job.cluster_job import ClusterLoadGenerator
    from inference_blueprints.operate.benchmark_job.job_objects import IMAGE
    from inference_blueprints.operate.kubernetes import connect

    account = Account(blueprint.spec.environment.region)
    with tempfile.TemporaryDirectory() as folder:
        yield ClusterLoadGenerator(
            lambda: connect(account, blueprint.metadata.name, Path(folder)),
            plan.deployments[0],
            access,
            image or IMAGE,
            _say,
        )


def _print_manifest(asked: LoadTest, plan: ModelPlan, access: Access, image: str | None) -> None:
    """Print the Job's manifest without the key.

    asked: Requests with prompts of one word per token.
    """
    import yaml

    from inference_blueprints.operate.benchmark_job.cluster_job import models_namespace, objects
    from inference_blueprints.operate.benchmark_job.job_objects import IMAGE

    manifests = objects(asked, models_namespace(plan.deployments[0]), image or IMAGE, access)
    print(yaml.safe_dump_all(manifests, sort_keys=False), end="")
    _say("this manifest has no key, and its prompts have one word per token; a real run counts tokens")


def _print(title: str, tables: Sequence[TextTable]) -> None:
    from rich.console import Console
    from rich.text import Text

    from inference_blueprints.report.tables import print_rows

    console = Console()
    console.print(Text(title, style="bold"))
    for table in tables:
        print_rows(table, console)
        for note in table.notes:
            console.print(Text(note))
