"""Commands about snapshots with container images: image-cache bake, image-cache status."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.options import ExitCode, NameOrPath, Output, OutputOption, print_json
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.image_cache.snapshot_baker import Baked
    from inference_blueprints.operate.image_cache.snapshot_status import WantedSnapshot

app = typer.Typer(help="Make EBS snapshots with container images.", no_args_is_help=True)


def register(root: typer.Typer) -> None:
    """Add the group `image-cache` to the command line."""
    root.add_typer(app, name="image-cache")


Pools = Annotated[
    list[str] | None,
    typer.Option("--pool", help="Only this pool; repeatable. Default: all pools with `ebsSnapshot`."),
]
Write = Annotated[bool, typer.Option("--write", help="Write the snapshot IDs into the blueprint.")]


@app.command()
def bake(
    name_or_path: NameOrPath,
    pools: Pools = None,
    write: Write = False,  # noqa: FBT002 - an option
    output: OutputOption = Output.TEXT,
) -> None:
    """Bake the images of each pool into a snapshot. An EC2 instance of the account pulls them."""
    from inference_blueprints.operate.image_cache.snapshot_baker import Baker
    from inference_blueprints.spec.source import shipped

    if write and name_or_path in shipped():
        raise UserError(
            f"{name_or_path}: got --write for a shipped blueprint, which is not changed; copy it with "
            f"`blueprints init {name_or_path} FILE`, and bake for FILE"
        )
    platform, account, wanted = _wanted(name_or_path, pools or [])
    if not wanted:
        raise UserError(
            "no pool has `ebsSnapshot`; add `imageAcceleration: {ebsSnapshot: {}}` to a pool and deploy"
        )
    baker = Baker(account, platform, blueprint=name_or_path)
    baked = []
    try:
        for each in baker.bake(wanted, _say):
            baked.append(each)
            if write and each.snapshot_id:
                _write_id(Path(name_or_path), each.pool, each.snapshot_id)
    except KeyboardInterrupt:
        _say("the bakes continue without this command; run it again to follow them")
        raise
    _report(baked, name_or_path, written=write, output=output)


@app.command()
def status(name_or_path: NameOrPath, output: OutputOption = Output.TEXT) -> None:
    """Show whether snapshots have the images of the plan. The exit code is 1 if one does not."""
    from dataclasses import asdict
    from datetime import UTC, datetime

    from inference_blueprints.operate.aws.account import readable_errors
    from inference_blueprints.operate.image_cache.snapshot_status import snapshot_status

    platform, account, wanted = _wanted(name_or_path, [])
    with readable_errors():
        found = [snapshot_status(account, platform, each, now=datetime.now(UTC)) for each in wanted]
    if output is Output.JSON:
        print_json([asdict(each) for each in found])
    elif not found:
        print("no pool has `ebsSnapshot`")
    else:
        for each in found:
            print(each)
    if any(each.state != "current" for each in found):
        raise typer.Exit(ExitCode.FAILED)


def _wanted(name_or_path: str, pools: list[str]) -> tuple[str, Account, list[WantedSnapshot]]:
    """Return the platform's name, its account and the snapshots that its pools need."""
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.image_cache.snapshot_status import wanted_snapshots
    from inference_blueprints.serving.plan import build_plan

    blueprint = load(name_or_path).blueprint
    wanted = wanted_snapshots(blueprint, build_plan(blueprint), pools)
    environment = blueprint.spec.environment
    account = Account(environment.region)
    if wanted:
        account.demand(environment.account)
    return blueprint.metadata.name, account, wanted


def _write_id(path: Path, pool: str, snapshot_id: str) -> None:
    """Write a snapshot's ID into the file and leave every other byte unchanged."""
    from inference_blueprints.spec.text_edit import with_snapshot

    try:
        text = path.read_bytes().decode()
        path.write_bytes(with_snapshot(text, str(path), pool, snapshot_id).encode())
    except OSError as error:
        raise UserError(
            f"{path}: cannot be written: {error.strerror}; add `id: {snapshot_id}` to pool '{pool}' by hand"
        ) from error


def _report(baked: list[Baked], name_or_path: str, *, written: bool, output: Output) -> None:
    """Print the snapshot IDs, where to write them or that they are written, and the failures."""
    from dataclasses import asdict

    if output is Output.JSON:
        print_json([asdict(each) for each in baked])
    else:
        for each in baked:
            if each.snapshot_id:
                print(f"{each.pool}: imageAcceleration: {{ebsSnapshot: {{id: {each.snapshot_id}}}}}")
        if any(each.snapshot_id for each in baked):
            place = f"written to {name_or_path}" if written else f"add this to {name_or_path}"
            print(f"{place}; then run `blueprints deploy {name_or_path}`")
    failed = [f"{each.pool}: {each.failure}" for each in baked if each.snapshot_id is None]
    for line in failed:
        _say(line)
    if failed:
        raise typer.Exit(ExitCode.FAILED)


def _say(line: str) -> None:
    """Print progress and failures on standard error, so that standard output holds the result only."""
    print(line, file=sys.stderr, flush=True)
