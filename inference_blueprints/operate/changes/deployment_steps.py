"""Deploys a platform in as many steps as its deployed templates need."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from inference_blueprints.operate.aws.account import Account, readable_errors
from inference_blueprints.operate.changes.change_checks import check_change
from inference_blueprints.operate.changes.platform_change import (
    Finding,
    Held,
    PlatformChange,
    Prepared,
    read_change,
)
from inference_blueprints.operate.changes.process_changes import ProcessChange, ProcessResult
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.cloudformation.cdk_deploy import deploy_assembly, synthesise_for_deploy
from inference_blueprints.operate.cloudformation.deployed_stacks import settle
from inference_blueprints.operate.ecs_reasons import WatchedServices
from inference_contracts.errors import UserError

# A cloud assembly with edited templates, for one step of a deployment.

_MANIFEST = "manifest.json"
_CLUSTER = "AWS::ECS::Cluster"


def write_step(assembly: Path, folder: Path, held: Iterable[Held]) -> None:
    """Write an assembly in which some changes are held.

    The CDK uploads a template under its hash, and not at all if the bucket has that hash. So an edited
    template gets a new one.

    assembly: The assembly with all changes. It stays as it is.
    folder: A new folder on the same file system.
    """
    shutil.copytree(assembly, folder, copy_function=_link)
    manifest = (folder / _MANIFEST).read_text("utf-8")
    by_stack: dict[str, list[Held]] = {}
    for each in held:
        by_stack.setdefault(each.stack, []).append(each)
    for stack, changes in by_stack.items():
        path = folder / f"{stack}.template.json"
        template: dict[str, Any] = json.loads(path.read_text("utf-8"))
        for change in changes:
            change.edit(template)
        text = json.dumps(template, indent=1)
        _replace(path, text)
        assets = folder / f"{stack}.assets.json"
        document = json.loads(assets.read_text("utf-8"))
        [old] = [name for name, each in document["files"].items() if each["source"]["path"] == path.name]
        new = hashlib.sha256(text.encode()).hexdigest()
        _replace(assets, assets.read_text("utf-8").replace(old, new))
        manifest = manifest.replace(old, new)
    _replace(folder / _MANIFEST, manifest)


def _link(source: str, target: str) -> None:
    """Link a file, because assets are large."""
    os.link(source, target)


def _replace(path: Path, text: str) -> None:
    """Write a file that may be a link: the other file stays."""
    path.unlink()
    path.write_text(text, "utf-8")


def deploy_in_steps(
    name_or_path: str,
    platform: str,
    account: Account,
    arguments: Sequence[str],
    console: Console,
    *,
    expires_existing: bool = False,
) -> list[ProcessChange]:
    """Compare what is deployed with what would be, and deploy it if nothing is refused.

    A change that would break what runs is held in the first step, and made in the next one when its reason
    is gone. What is still held after a step that changed nothing of it, such as a role of a running job, is
    left to a later deployment.

    name_or_path: Name of a shipped blueprint, or path of a YAML file.
    platform: `metadata.name`.
    account: Account and region. Only read, apart from what the CDK does.
    arguments: Arguments for ``cdk deploy``.
    console: Console for the findings and the progress.
    expires_existing: Whether the user agrees that objects that exist are deleted by a new rule.
    Returns: The processes of models that changed.
    Raises UserError if something is refused, with everything that is, before anything is changed; or if the
        deployment fails.
    """
    assembly = synthesise_for_deploy(name_or_path, arguments)
    say = partial(console.print, markup=False, highlight=False, soft_wrap=True)
    with readable_errors():
        settle(account.client("cloudformation"), platform, say)
    steps: list[set[str]] = []
    changed: list[ProcessChange] = []
    while True:
        change = read_change(account, platform, assembly, expires_existing=expires_existing)
        found = check_change(change)
        refuse(found)
        if not steps:
            changed = [each.change for each in found if isinstance(each, ProcessResult)]
        held = [finding for finding in found if isinstance(finding, Held)]
        keys = {str(each) for each in held}
        for finding in found:
            if not steps or isinstance(finding, Prepared) or (isinstance(finding, Held) and keys in steps):
                say(str(finding))
        if keys in steps:
            return changed
        for each in found:
            if isinstance(each, Prepared):
                each.act()
        with _watched(account, platform, name_or_path, change, say):
            _deploy_step(name_or_path, assembly, held, arguments, console)
        if not held:
            return changed
        steps.append(keys)


def refuse(found: Sequence[Finding]) -> None:
    """Stop if something must not be deployed. Raises UserError with every error, one line each."""
    errors = [str(each) for each in found if isinstance(each, CheckResult) and each.severity == "error"]
    if errors:
        raise UserError("\n".join([*errors, "nothing was changed; fix the errors above, and deploy again"]))


def _watched(
    account: Account,
    platform: str,
    name_or_path: str,
    change: PlatformChange,
    say: Callable[[str], None],
) -> AbstractContextManager[object]:
    """Say why services on ECS have no hosts, while CloudFormation waits for them for up to three hours."""
    if all(
        resource["Type"] != _CLUSTER
        for template in change.new.values()
        for resource in template.get("Resources", {}).values()
    ):
        return nullcontext()
    return WatchedServices(account, platform, name_or_path, say)


def _deploy_step(
    name_or_path: str, assembly: Path, held: Sequence[Held], arguments: Sequence[str], console: Console
) -> None:
    if not held:
        deploy_assembly(name_or_path, assembly, arguments, console)
        return
    if any(each.imports for each in held):
        arguments = [*arguments, "--import-existing-resources"]
    with tempfile.TemporaryDirectory(prefix=f"{assembly.name}.", dir=assembly.resolve().parent) as folder:
        step = Path(folder, "cdk.out")
        write_step(assembly, step, held)
        deploy_assembly(name_or_path, step, arguments, console)
