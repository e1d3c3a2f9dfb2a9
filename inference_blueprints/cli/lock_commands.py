"""Commands about the lock of a blueprint."""

from __future__ import annotations

from typing import Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load

OwnFile = Annotated[str, typer.Argument(metavar="FILE", help="YAML file of a blueprint of yours.")]


def register(app: typer.Typer) -> None:
    """Add this module's commands to the command line.

    Parameters
    ----------
    app
        The command line's root.
    """
    app.command("lock")(lock)


def lock(
    file: OwnFile,
    check: Annotated[  # noqa: FBT002 - an option
        bool, typer.Option("--check", help="Write nothing; the exit code is 1 if something is not pinned.")
    ] = False,
) -> None:
    """Pin charts, images, the nodes' system and Kubernetes beside FILE; what is pinned stays as it is."""
    from inference_blueprints.deployment.locking import keep_lock, own_file, running_lock
    from inference_blueprints.spec.lock.differences import differences
    from inference_blueprints.spec.lock.lock import lock_path

    path = own_file(file)
    loaded = load(file)
    changes = differences(loaded.lock, running_lock(loaded)) if check else keep_lock(loaded, path)
    for change in changes:
        print(f"{change.part}: {change.new or 'no longer used'}")
    if not changes:
        print(f"{lock_path(path)}: pins everything that is known")
    elif check:
        print(f"{lock_path(path)}: does not pin what is listed above; run `blueprints lock {file}`")
        raise typer.Exit(1)
    else:
        print(f"wrote {lock_path(path)}")
