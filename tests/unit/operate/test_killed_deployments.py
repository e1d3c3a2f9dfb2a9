"""`deploy` is ended by kill -9 at every place: the same command completes, and `destroy` leaves nothing."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from botocore.client import BaseClient

from inference_blueprints.cli.deploy_commands import deploy
from inference_blueprints.cli.removal_commands import destroy
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes import deployment_steps
from inference_blueprints.operate.changes.platform_change import Held, PlatformChange
from inference_blueprints.operate.cloudformation.deployed_stacks import is_changing
from inference_blueprints.operate.ownership.platform_table import PlatformRecord, PlatformTable
from inference_blueprints.operate.removal import platform_removal
from inference_blueprints.operate.removal.platform_removal import Retained
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.spec.lock.lock import lock_path
from inference_blueprints.spec.lock.lock_text import write_text
from tests.unit.operate.fake_cloudformation import FakeCloudFormation, write_assembly

STACKS = ("try-Data", "try-Cluster", "try-Model-a")
#: Its resource `Late` may come only when `Early` is deployed.
STEPPED = "try-Model-a"
#: Calls of AWS that change something, besides those of CloudFormation.
WRITES = ("Create", "Update", "Put", "Delete")


class KilledError(BaseException):
    """The end of a process by kill -9: nothing catches it, and nothing of the process acts after it."""


class Machine:
    """The machine of an operator, which ends a process after some of its steps.

    account: CloudFormation, which goes on without the process.
    """

    def __init__(self, cloudformation: FakeCloudFormation, file: Path) -> None:
        self.cloudformation, self.file = cloudformation, file
        self._left: int | None = None

    def step(self, act: Callable[[], Any]) -> Any:
        """Do something that changes the account or a file, unless the process has ended."""
        if self._left == 0:
            raise KilledError
        if self._left is not None:
            self._left -= 1
        return act()

    def killed_after(self, steps: int, command: Callable[[], None]) -> bool:
        """Run a command, end it after some steps, and return whether it was ended."""
        self._left = steps
        try:
            command()
        except KilledError:
            return True
        finally:
            self._left = None
        return False

    def deploy(self) -> None:
        deploy(str(self.file), [], expire_existing=False, output=None)

    def destroy(self) -> None:
        destroy(str(self.file), yes=True)

    def synthesise(self, *_: object) -> Path:
        """Write the assembly, and take a step in the middle of it."""
        folder = Path("cdk.out")
        templates = {name: {"Resources": {"Early": {"Type": "AWS::SNS::Topic"}}} for name in STACKS}
        templates[STEPPED]["Resources"]["Late"] = {"Type": "AWS::SNS::Topic"}
        self.step(lambda: shutil.rmtree(folder, ignore_errors=True))
        folder.mkdir(exist_ok=True)
        self.step(lambda: write_assembly(folder, templates))
        hashes = {}
        for name in STACKS:
            file = folder / f"{name}.template.json"
            hashes[name] = hashlib.sha256(file.read_bytes()).hexdigest()
            assets = {"files": {hashes[name]: {"source": {"path": file.name}}}}
            (folder / f"{name}.assets.json").write_text(json.dumps(assets), encoding="utf-8")
        return folder

    def run_cdk(self, _name: str, assembly: Path, *_: object) -> None:
        """Deploy each stack as the CDK does: a change set, its execution, and waiting for its end."""
        changed = self.cloudformation
        for name in STACKS:
            template = json.loads((assembly / f"{name}.template.json").read_text(encoding="utf-8"))
            status = changed.status(name)
            # ansible-collections/amazon.aws#1910: a stack that changes is refused.
            assert status is None or not is_changing(status), f"{name} is in {status} state"
            if status is None:
                self.step(lambda name=name: changed.add(name, status="REVIEW_IN_PROGRESS"))  # type: ignore[misc]
            elif status != "REVIEW_IN_PROGRESS" and changed.templates.get(name) == template:
                continue
            kind = "CREATE" if status in (None, "REVIEW_IN_PROGRESS") else "UPDATE"
            self.step(lambda name=name, kind=kind: changed.add(name, status=f"{kind}_IN_PROGRESS"))  # type: ignore[misc]
            changed.templates[name] = template
            self.step(lambda name=name, kind=kind: changed.add(name, status=f"{kind}_COMPLETE"))  # type: ignore[misc]


def held_once(change: PlatformChange) -> list[Held]:
    """Hold the resource that may come only when another one is deployed."""
    if "Early" in change.deployed.get(STEPPED, {}).get("Resources", {}):
        return []
    return [Held("order", STEPPED, "Late waits", lambda template: template["Resources"].pop("Late"))]


@pytest.fixture
def machine(account: Account, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    blueprint = yaml.safe_load((blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8"))
    blueprint["metadata"]["name"] = "try"
    file = tmp_path / "try.yaml"
    file.write_text(yaml.safe_dump(blueprint), encoding="utf-8")
    fake = FakeCloudFormation()
    made = Machine(fake, file)
    client, plain = Account.client, cast("Any", BaseClient)._make_api_call

    def counted(service: Any, operation: str, parameters: dict[str, Any]) -> Any:
        def act() -> Any:
            return plain(service, operation, parameters)

        return made.step(act) if operation.startswith(WRITES) else act()

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        Account, "client", lambda self, name: fake if name == "cloudformation" else client(self, name)
    )
    monkeypatch.setattr(BaseClient, "_make_api_call", counted)
    monkeypatch.setattr(
        "inference_blueprints.operate.versions.write_text",
        lambda *given: made.step(lambda: write_text(*given)),
    )
    monkeypatch.setattr(deployment_steps, "synthesise_for_deploy", made.synthesise)
    monkeypatch.setattr(deployment_steps, "deploy_assembly", made.run_cdk)
    monkeypatch.setattr(deployment_steps, "check_change", held_once)
    monkeypatch.setattr(platform_removal, "DRAIN_SECONDS", 0.0)
    return made


@pytest.mark.thorough
@pytest.mark.parametrize("following", ["deploy", "destroy"])
def test_killed_after_any_step_the_next_command_completes(
    machine: Machine, account: Account, following: str
) -> None:
    """It turns red if a killed `deploy` leaves a lock, a note, half an assembly or a stack with which the
    same command does not complete, or a stack that `destroy` does not find and bill on."""
    table, steps = PlatformTable(account), 0
    while machine.killed_after(steps, machine.deploy):
        getattr(machine, following)()
        left = {name: machine.cloudformation.status(name) for name in machine.cloudformation.names()}
        if following == "deploy":
            assert left.keys() == set(STACKS), steps
            assert all(str(status).endswith("E_COMPLETE") for status in left.values()), steps
            assert "Late" in machine.cloudformation.templates[STEPPED]["Resources"], steps
            record = table.read("try")
            assert record.operation is None, steps
            assert record.owner is not None, steps
            assert record.owner.identity in lock_path(machine.file).read_text(encoding="utf-8"), steps
            machine.destroy()
        assert machine.cloudformation.names() == [], steps
        assert table.read("try") == PlatformRecord(), steps
        lock_path(machine.file).unlink(missing_ok=True)
        machine.cloudformation.templates.clear()
        steps += 1
    # The lock, the owner, two of the assembly, three stacks with three each, one with two, and the end.
    assert steps > 14


def test_what_a_rolled_back_creation_kept_is_named(machine: Machine, account: Account) -> None:
    """It turns red if a key is billed that CloudFormation kept when it rolled a creation back, and that no
    later stack and no later deletion knows (aws/serverless-application-model#1819)."""
    key = account.client("kms").create_key()["KeyMetadata"]["KeyId"]
    machine.cloudformation.rolled_back = {"try-Data": [("AWS::KMS::Key", key), ("AWS::SNS::Topic", "gone")]}
    machine.cloudformation.add("try-Data", status="ROLLBACK_COMPLETE")
    removal = platform_removal.Removal(account, "try", blueprint="try.yaml", say=lambda _: None)
    assert removal.destroy() == [Retained("try-Data", "AWS::KMS::Key", key)]
    assert removal.destroy() == [Retained("try-Data", "AWS::KMS::Key", key)]
