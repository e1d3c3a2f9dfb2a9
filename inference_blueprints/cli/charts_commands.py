"""Commands about third-party Helm charts: charts fetch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.lock_commands import OwnFile
from inference_blueprints.cli.options import Output, OutputOption, print_json

if TYPE_CHECKING:
    from inference_blueprints.loading import LoadedBlueprint
    from inference_blueprints.operate.versions import Archive

app = typer.Typer(help="Keep third-party Helm charts next to a blueprint.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    """Add the group `charts` to the command line."""
    root.add_typer(app, name="charts")


@app.callback()
def charts() -> None:
    """Keep third-party Helm charts next to a blueprint."""


@app.command()
def fetch(
    file: OwnFile,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="FOLDER", help="Folder for the charts. Default: `charts` next to FILE."),
    ] = None,
    record: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--record", help="Pin the digests of the downloaded charts in the lock.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Download the charts of a platform. Its deployment then needs no chart repository."""
    from inference_blueprints.operate.versions import fetch as fetch_archives
    from inference_blueprints.operate.versions import own_file
    from inference_blueprints.spec.lock.adjacent_files import CHARTS_FOLDER

    path = own_file(file)
    loaded = load(file)
    archives = fetch_archives(loaded.blueprint.releases.registry_charts, to or path.parent / CHARTS_FOLDER)
    lock = _record(loaded, path, archives) if record else None
    if output is Output.JSON:
        charts = [_as_dict(archive) for archive in archives]
        print_json({"charts": charts, "lock": None if lock is None else str(lock)})
        return
    for archive in archives:
        origin = "downloaded" if archive.is_new else "already present"
        known = "matches the pinned digest" if archive.chart.digest else "no pinned digest to compare with"
        print(f"{archive.path}: {origin}, {archive.digest}, {known}")
    if lock is not None:
        print(f"wrote {lock}")


def _as_dict(archive: Archive) -> dict[str, str | bool]:
    return {
        "name": archive.chart.name,
        "version": archive.chart.version,
        "path": str(archive.path),
        "digest": archive.digest,
        "isNew": archive.is_new,
        "isPinned": bool(archive.chart.digest),
    }


def _record(loaded: LoadedBlueprint, path: Path, archives: list[Archive]) -> Path:
    """Pin the digests of the downloaded charts, and return the lock's path."""
    from inference_blueprints.operate.versions import running_lock
    from inference_blueprints.spec.lock.lock import Pin, lock_path
    from inference_blueprints.spec.lock.lock_text import lock_text, write_text

    pins = {archive.chart.name: Pin(archive.chart.version, archive.digest) for archive in archives}
    lock = running_lock(loaded)
    write_text(lock_path(path), lock_text(replace(lock, charts={**lock.charts, **pins})))
    return lock_path(path)
