"""The command that pins versions: lock."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.options import ExitCode, Output, OutputOption, print_json

OwnFile = Annotated[str, typer.Argument(metavar="FILE", help="YAML file of your own blueprint.")]


def register(app: typer.Typer) -> None:
    """Add this module's commands to the command line."""
    app.command("lock")(lock)


def lock(
    file: OwnFile,
    check: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--check", help="Write nothing; the exit code is 1 if a version is not pinned.")
    ] = False,
    output: OutputOption = Output.TEXT,
) -> None:
    """Pin a blueprint's versions in a lock next to FILE. Existing pins stay."""
    from inference_blueprints.operate.versions import complete_lock, keep_lock, own_file
    from inference_blueprints.spec.lock.lock import differences, lock_path

    path = own_file(file)
    loaded = load(file)
    changes = differences(loaded.lock, complete_lock(loaded)) if check else keep_lock(loaded, path)
    if output is Output.JSON:
        print_json(
            {
                "lock": str(lock_path(path)),
                "changes": [asdict(change) for change in changes],
                "written": bool(changes) and not check,
            }
        )
        if changes and check:
            raise typer.Exit(ExitCode.FAILED)
        return
    for change in changes:
        print(f"{change.part}: {change.new or 'no longer used'}")
    if not changes:
        print(f"{lock_path(path)}: every known version is pinned")
    elif check:
        print(f"{lock_path(path)}: the versions above are not pinned; run `blueprints lock {file}`")
        raise typer.Exit(ExitCode.FAILED)
    else:
        print(f"wrote {lock_path(path)}")
