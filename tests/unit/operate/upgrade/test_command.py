"""The command upgrade."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from inference_blueprints.cli.main import command_line
from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.platform_change import Held, PlatformChange
from inference_blueprints.operate.ownership import platform_operation
from inference_blueprints.operate.ownership.platform_table import (
    ConditionFailedError,
    PlatformOwner,
    PlatformRecord,
    RunningOperation,
)
from inference_blueprints.operate.upgrade import upgrade_checks
from inference_blueprints.spec.lock.lock import lock_path
from inference_blueprints.spec.source import shipped
from inference_contracts.errors import UserError
from tests.unit.operate.upgrade.conftest import MakeCluster
from tests.unit.operate.upgrade.fake_eks import insight


class FakeTable:
    """The account's table of platforms, in which one platform may have an owner."""

    def __init__(self) -> None:
        self.record = PlatformRecord()
        self.changes: list[str] = []

    def read(self, _platform: str) -> PlatformRecord:
        return self.record

    def begin(
        self, _platform: str, note: RunningOperation, *, identity: str | None, **_options: object
    ) -> None:
        if self.record.owner is not None and self.record.owner.identity != identity:
            raise ConditionFailedError
        self.changes.append(note.command)

    def end(self, _platform: str, _beat: str, *, forget: bool) -> None:
        self.changes.append(f"end, {forget=}")


@pytest.fixture(autouse=True)
def table(account: Account, monkeypatch: pytest.MonkeyPatch) -> FakeTable:
    fake = FakeTable()
    monkeypatch.setattr(platform_operation, "PlatformTable", lambda _account: fake)
    monkeypatch.setattr(type(account), "caller", "arn:aws:iam::123456789012:user/ann")
    return fake


def run(*words: str) -> Result:
    return CliRunner().invoke(command_line(), ["upgrade", *words])


def test_the_command_shows_and_writes_only_when_told(
    file: Path, cluster: MakeCluster, table: FakeTable
) -> None:
    cluster(nodegroups={"system": ("1.35", "ACTIVE")}, insights=[insight("a", "PASSING")])
    before = file.read_text()
    shown = run(str(file), "--to", "1.36")
    assert (shown.exit_code, file.read_text(), lock_path(file).exists()) == (0, before, False)
    assert re.search(r"Kubernetes +1\.35 +1\.36", shown.stdout)
    assert "1. control plane: 1.35 to 1.36" in shown.stdout
    assert table.changes == []
    written = run(str(file), "--to", "1.36", "--apply")
    assert table.changes == ["upgrade", "end, forget=True"]
    assert written.stdout.splitlines()[-1].endswith(f"next: blueprints deploy {file}")
    assert load_blueprint(str(file)).blueprint.spec.cluster.eks.version == "1.36"  # type: ignore[union-attr]


def test_an_error_keeps_the_command_from_writing(file: Path, cluster: MakeCluster) -> None:
    cluster(status="UPDATING")
    before = file.read_text()
    refused = run(str(file), "--to", "1.36", "--apply")
    assert isinstance(refused.exception, UserError)
    assert "nothing was written" in str(refused.exception)
    as_json = run(str(file), "--to", "1.36", "--apply", "--output", "json")
    assert as_json.exit_code == 1
    assert {each["severity"] for each in json.loads(as_json.stdout)["observations"]} >= {"error"}
    assert (file.read_text(), lock_path(file).exists()) == (before, False)


@pytest.mark.parametrize("options", [(), ("--apply",)])
def test_the_platform_of_another_file_is_not_upgraded(
    file: Path, cluster: MakeCluster, table: FakeTable, options: tuple[str, ...]
) -> None:
    """An upgrade that never looks at the owner turns this red."""
    cluster(nodegroups={"system": ("1.35", "ACTIVE")}, insights=[insight("a", "PASSING")])
    table.record = PlatformRecord(PlatformOwner("1" * 32, "other.yaml", "bob", "yesterday"))
    refused = run(str(file), "--to", "1.36", *options)
    assert "belongs to another blueprint (other.yaml" in str(refused.exception)
    assert (lock_path(file).exists(), table.changes) == (False, [])


def test_shipped_blueprints_are_not_upgraded(cluster: MakeCluster) -> None:
    assert "`blueprints init quickstart-g6e" in str(run("quickstart-g6e").exception)


def test_a_platform_on_ecs_has_the_findings_of_its_templates(
    tmp_path: Path, cluster: MakeCluster, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refusal turns this red, and so do checks that ask EKS, which answers nothing here."""
    file = tmp_path / "mine.yaml"
    file.write_text(shipped()["ecs-g6e"].read_text())
    held = Held("hosts", "ecs-g6e-Capacity", "a host would be lost", lambda _template: None)
    monkeypatch.setattr(upgrade_checks, "check_change", lambda _change: [held])
    change = PlatformChange(account, {}, {"ecs-g6e-Capacity": {}}, {})
    monkeypatch.setattr(upgrade_checks, "read_change", lambda *_arguments: change)
    written = run(str(file), "--apply", "--output", "json")
    assert written.exit_code == 0, written.exception
    document = json.loads(written.stdout)
    [seen] = document["observations"]
    assert (seen["check"], seen["severity"]) == ("templates", "warning")
    assert seen["message"] == "held by deploy: ecs-g6e-Capacity: a host would be lost"
    assert not any("Kubernetes" in change["part"] for change in document["changes"])
    assert not any("Karpenter" in step or "control plane" in step for step in document["steps"])
    assert lock_path(file).exists()
    assert "runs on ECS: there is no Kubernetes version" in str(run(str(file), "--to", "1.36").exception)
