"""Commands that turn a blueprint into CloudFormation and deploy it: synth, bootstrap, deploy, diff."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from inference_blueprints.cli.blueprint_commands import load
from inference_blueprints.cli.options import (
    ExitCode,
    NameOrPath,
    Output,
    OutputOption,
    option_value,
    print_json,
)
from inference_contracts.errors import UserError

if TYPE_CHECKING:
    from inference_blueprints.loading import LoadedBlueprint
    from inference_blueprints.operate.aws.account import Account
    from inference_blueprints.operate.changes.process_changes import ProcessChange
    from inference_blueprints.spec.types import Blueprint

CdkArguments = Annotated[
    list[str] | None,
    typer.Argument(metavar="[CDK_ARGUMENTS]...", help="Arguments for the CDK command of the same name."),
]
CdkOutput = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="text|json|FOLDER",
        help="Format of the output; any other value is the CDK's folder for templates.",
    ),
]
_STACKS_THAT_DIFFER = re.compile(r"Number of stacks with differences: (\d+)")


def register(app: typer.Typer) -> None:
    """Add this module's commands to the command line."""
    app.command("synth")(synth)
    for command in (bootstrap, deploy, diff):
        app.command(command.__name__, context_settings={"ignore_unknown_options": True})(command)


def synth(
    name_or_path: NameOrPath,
    directory: Annotated[Path, typer.Option("--directory", help="Folder for the templates.")] = Path(
        "cdk.out"
    ),
    output: OutputOption = Output.TEXT,
) -> None:
    """Write a blueprint's CloudFormation templates. This needs no AWS account."""
    from inference_blueprints.synthesis import demand_folder, synthesise

    load(name_or_path)
    demand_folder(directory)
    templates = synthesise(name_or_path, directory)
    if output is Output.JSON:
        print_json({"directory": str(directory), "templates": [path.name for path in templates]})
    else:
        print(f"wrote {len(templates)} templates to {directory}:")
        print(*(f"  {path.name}" for path in templates), sep="\n")


def bootstrap(name_or_path: NameOrPath, cdk_arguments: CdkArguments = None, output: CdkOutput = None) -> None:
    """Prepare the blueprint's account and region for the CDK. Run it once, before the first `deploy`.

    This also creates what the platform needs and no stack may own: the table that says to whom each platform
    belongs, EC2's role for Spot Instances if a pool uses them, and API Gateway's role for logs if there are
    batch queues.
    """
    reader, words = _reader(output, cdk_arguments)
    loaded = load(name_or_path)
    account = _demand_account(loaded, words)
    command = _cdk("bootstrap", words)
    _demand_success(
        "bootstrap", _run(command, name_or_path, stdout=sys.stderr if reader is Output.JSON else None)
    )
    _prepare_account(account, loaded.blueprint, reader)
    if reader is Output.JSON:
        print_json({"region": account.region, "bootstrapped": True})


def _prepare_account(account: Account, blueprint: Blueprint, reader: Output) -> None:
    """Create what the platform needs in the account, no stack may own, and the account does not have."""
    from inference_blueprints.operate.aws.account import readable_errors
    from inference_blueprints.operate.aws.account_roles import (
        API_LOG_ROLE,
        SPOT_ROLE,
        ensure_api_log_role,
        ensure_spot_role,
        has_api,
        spot_pools,
    )
    from inference_blueprints.operate.ownership.platform_table import TABLE, PlatformTable

    stream = sys.stderr if reader is Output.JSON else sys.stdout
    with readable_errors():
        if PlatformTable(account).ensure():
            print(f"created the table {TABLE}, which says to which file each platform belongs", file=stream)
        if spot_pools(blueprint) and ensure_spot_role(account):
            print(f"created the role {SPOT_ROLE}, with which EC2 starts Spot Instances", file=stream)
        if has_api(blueprint) and ensure_api_log_role(account):
            print(f"gave API Gateway the role {API_LOG_ROLE}, with which it writes logs", file=stream)


def deploy(
    name_or_path: NameOrPath,
    cdk_arguments: CdkArguments = None,
    expire_existing: Annotated[  # noqa: FBT002 - an option
        bool,
        typer.Option(
            "--expire-existing", help="Agree that objects that exist are deleted by new expiration rules."
        ),
    ] = False,
    output: CdkOutput = None,
) -> None:
    """Deploy all stacks of a blueprint. This uses the pinned CDK CLI and your current AWS credentials.

    What AWS would refuse, and what would lose data, is an error before anything is changed. A change that
    would break what runs is made in a second step, or by a later deployment.
    """
    from inference_blueprints.operate.changes.deployment_steps import deploy_in_steps
    from inference_blueprints.operate.ownership.platform_operation import (
        demand_owner,
        file_identity,
        platform_operation,
    )
    from inference_blueprints.operate.versions import keep_lock, kept_lock
    from inference_blueprints.spec.lock.lock import lock_path
    from inference_blueprints.spec.source import find

    reader, words = _reader(output, cdk_arguments)
    loaded = load(name_or_path, show_warnings=True)
    account = _demand_account(loaded, words)
    path, platform = find(name_or_path), loaded.blueprint.metadata.name
    stream = sys.stderr if reader is Output.JSON else sys.stdout
    demand_owner(account, platform, file=path, identity=file_identity(account, path, loaded.lock))
    lock = lock_path(path) if keep_lock(loaded, path) else None
    if lock is not None:
        print(
            f"wrote {lock}, which pins the deployed versions and says to whom the platform belongs; "
            "keep it with the blueprint, also under version control",
            file=stream,
        )
    with platform_operation(
        account,
        platform,
        command="deploy",
        file=path,
        identity=file_identity(account, path, kept_lock(path)),
        say=lambda line: print(line, file=stream),
        owns=True,
    ):
        steps = partial(deploy_in_steps, name_or_path, platform, account, expires_existing=expire_existing)
        _deploy_stacks(name_or_path, words, reader, lock, steps)


def _deploy_stacks(
    name_or_path: str,
    words: list[str],
    reader: Output,
    lock: Path | None,
    deploy_stacks: Callable[..., list[ProcessChange]],
) -> None:
    """Run `cdk deploy`, and report its result."""
    from rich.console import Console

    if reader is Output.TEXT:
        deploy_stacks(words, Console())
        return
    with tempfile.TemporaryDirectory() as folder:
        asked = option_value(words, "--outputs-file", "-O")
        file = Path(asked or Path(folder, "outputs.json"))
        if asked is None:
            words = [*words, "--outputs-file", str(file)]
        # Without a terminal the CDK prints its own lines and asks no question.
        changed = deploy_stacks(words, Console(stderr=True, force_terminal=False))
        outputs = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    print_json(_deployed(name_or_path, outputs, lock, changed))


def _deployed(
    name_or_path: str, outputs: dict[str, Any], lock: Path | None, changed: Sequence[ProcessChange]
) -> dict[str, Any]:
    """Return the JSON document of a deployment; `outputs` has the CDK's outputs by stack and by name."""
    from inference_blueprints.loading import load_blueprint

    blueprint = load_blueprint(name_or_path).blueprint
    return {
        "platform": blueprint.metadata.name,
        "region": blueprint.spec.environment.region,
        "outputs": outputs,
        "processes": [asdict(each) for each in changed],
        "lock": None if lock is None else str(lock),
    }


def diff(name_or_path: NameOrPath, cdk_arguments: CdkArguments = None, output: CdkOutput = None) -> None:
    """Show what `deploy` would change. With --fail, the exit code is 1 if there are changes."""
    reader, words = _reader(output, cdk_arguments)
    loaded = load(name_or_path)
    if option_value(words, "--template") is None:  # else a file is compared, not the account
        _demand_account(loaded, words)
    command = _cdk("diff", words)
    code = (_print_diff if reader is Output.JSON else _run)(command, name_or_path)
    if code and "--fail" in words:
        raise typer.Exit(ExitCode.FAILED)
    _demand_success("diff", code)


def _print_diff(command: Sequence[str], name_or_path: str) -> int:
    """Run `cdk diff`, print its result as JSON, and return its exit code."""
    from inference_blueprints.synthesis import app_environment

    result = subprocess.run(
        command,
        env=app_environment(name_or_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print(result.stdout, end="", file=sys.stderr)
    counted = _STACKS_THAT_DIFFER.search(result.stdout)
    if counted is None:
        raise UserError(
            f"cdk diff ended with exit code {result.returncode} before it compared all stacks; "
            "the reason is in its messages above"
        )
    print_json({"stacksWithDifferences": int(counted[1]), "text": result.stdout})
    return result.returncode


def _reader(output: str | None, cdk_arguments: Sequence[str] | None) -> tuple[Output, list[str]]:
    """Return the output format and the arguments for the CDK, which has its own option `--output`."""
    words = list(cdk_arguments or [])
    if output is None or output in set(Output):
        return Output(output or Output.TEXT), words
    return Output.TEXT, [*words, "--output", output]


def _demand_account(loaded: LoadedBlueprint, cdk_arguments: Sequence[str]) -> Account:
    """Check that there are credentials for the blueprint's account, before the CDK starts."""
    from inference_blueprints.operate.aws.account import Account

    environment = loaded.blueprint.spec.environment
    account = Account(environment.region, option_value(cdk_arguments, "--profile"))
    account.demand(environment.account or account.number)
    return account


def _cdk(command: str, arguments: Sequence[str]) -> list[str]:
    """Return the command line of a CDK command."""
    from inference_blueprints.synthesis import app_command
    from inference_blueprints.tools import cdk

    return [*cdk(), command, "--app", app_command(), *arguments]


def _run(command: Sequence[str], name_or_path: str, stdout: Any = None) -> int:
    """Run a CDK command in this terminal, and return its exit code."""
    from inference_blueprints.synthesis import app_environment

    environment = app_environment(name_or_path)
    return subprocess.run(command, env=environment, stdout=stdout, check=False).returncode


def _demand_success(command: str, code: int) -> None:
    if code:
        raise UserError(f"cdk {command} ended with exit code {code}; the reason is in its messages above")
