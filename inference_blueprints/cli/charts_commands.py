"""Commands about the charts of others: charts fetch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.lock_commands import OwnFile

if TYPE_CHECKING:
    from inference_blueprints.deployment.chart_archives import Archive
    from inference_blueprints.loading import LoadedBlueprint

app = typer.Typer(help="Charts of other projects, kept beside a blueprint.", no_args_is_help=True)


@app.callback()
def charts() -> None:
    """Charts of other projects, kept beside a blueprint."""


@app.command()
def fetch(
    file: OwnFile,
    to: Annotated[
        Path | None,
        typer.Option(
            "--to", metavar="FOLDER", help="Another folder than `charts` beside FILE, to be carried."
        ),
    ] = None,
    record: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--record", help="Pin in the lock what is fetched, where no digest is known.")
    ] = False,
) -> None:
    """Download the charts that a platform installs, so that its deployment needs no repository of charts."""
    from inference_blueprints.deployment.chart_archives import fetch as fetch_archives
    from inference_blueprints.deployment.locking import own_file
    from inference_blueprints.spec.lock.beside import CHARTS_FOLDER

    path = own_file(file)
    loaded = load(file)
    archives = fetch_archives(loaded.blueprint.releases.registry_charts, to or path.parent / CHARTS_FOLDER)
    for archive in archives:
        words = "fetched" if archive.is_new else "is there"
        known = "as pinned" if archive.chart.digest else "no digest to check it with is known"
        print(f"{archive.path}: {words}, {archive.digest}, {known}")
    if record:
        _record(loaded, path, archives)


def _record(loaded: LoadedBlueprint, path: Path, archives: list[Archive]) -> None:
    """Pin the digests of what is there."""
    from inference_blueprints.deployment.locking import running_lock
    from inference_blueprints.spec.lock.lock import Pin, lock_path
    from inference_blueprints.spec.lock.writing import lock_text, write_text

    pins = {archive.chart.name: Pin(archive.chart.version, archive.digest) for archive in archives}
    lock = running_lock(loaded)
    write_text(lock_path(path), lock_text(replace(lock, charts={**lock.charts, **pins})))
    print(f"wrote {lock_path(path)}")
