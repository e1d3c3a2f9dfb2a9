"""The command upgrade."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
from typer.testing import CliRunner, Result

from inference_blueprints.cli.main import command_line
from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.platform_change import Held, PlatformChange
from inference_blueprints.operate.changes.process_changes import changed_processes
from inference_blueprints.operate.ownership import platform_operation
from inference_blueprints.operate.ownership.platform_table import (
    ConditionFailedError,
    PlatformOwner,
    PlatformRecord,
    RunningOperation,
)
from inference_blueprints.operate.upgrade import upgrade_checks
from inference_blueprints.operate.versions import keep_lock
from inference_blueprints.spec.lock.lock import Lock, Pin, lock_path
from inference_blueprints.spec.lock.lock_text import lock_text
from inference_blueprints.spec.source import shipped
from inference_catalog.catalogue import shipped as catalogue
from inference_contracts.errors import BlueprintError, UserError
from tests.releases.recorded_releases import recorded_releases
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


def run(*words: str, command: str = "upgrade") -> Result:
    return CliRunner().invoke(command_line(), [command, *words])


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


def test_changes_stand_beside_the_errors_of_a_blueprint_that_does_not_fit_them(
    file: Path, cluster: MakeCluster
) -> None:
    """Errors alone do not say to what the blueprint does not fit. The lock is one that nothing runs here."""
    cluster()
    file.write_text(
        file.read_text().replace(
            "  deployments:", "  engine: {vllm: {args: {old-flag: 1}}}\n    deployments:"
        )
    )
    lock = Lock(release="0.0.1", kubernetes="1.35", engines={"vllm": Pin("1.0.0")})
    lock_path(file).write_text(lock_text(lock))
    refused = run(str(file), "--to", "1.36")
    assert isinstance(refused.exception, BlueprintError)
    assert "old-flag" in str(refused.exception)
    assert re.search(r"Kubernetes +1\.35 +1\.36", refused.stdout)
    assert re.search(r"engine vllm +1\.0\.0 +\d", refused.stdout)
    as_json = run(str(file), "--output", "json")
    document = json.loads(as_json.stdout)
    assert (as_json.exit_code, document["valid"]) == (1, False)
    assert "old-flag" in document["errors"][0]["message"]
    assert "engine vllm" in [each["part"] for each in document["changes"]]


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


def a_former_release(edit: str = "") -> PlatformChange:
    """Return a deployed platform of a former release, and the same one with an edited argument."""
    [release] = [each for each in recorded_releases() if each.commit == "95795729"]
    old = release.templates("ecs-g6e")
    new = json.loads(json.dumps(old).replace('"--max-num-seqs", "32"', f'"--max-num-seqs", "{edit or 32}"'))
    return PlatformChange(cast("Account", None), {}, old, new)


@pytest.mark.parametrize("edit", ["48", ""])
def test_the_document_has_the_arguments_that_differ(
    tmp_path: Path, cluster: MakeCluster, monkeypatch: pytest.MonkeyPatch, edit: str
) -> None:
    """A document with other data than the text, or an observation with more fields, turns this red."""
    file = tmp_path / "mine.yaml"
    file.write_text(shipped()["ecs-g6e"].read_text())
    monkeypatch.setattr(upgrade_checks, "read_change", lambda *_arguments: a_former_release(edit))
    monkeypatch.setattr(upgrade_checks, "check_change", lambda each: list(changed_processes(each)))
    document = json.loads(run(str(file), "--output", "json").stdout)
    assert {frozenset(each) for each in document["observations"]} == {
        frozenset({"check", "severity", "message", "command"})
    }
    text = run(str(file)).stdout
    if not edit:
        assert document["processes"] == []
        assert "processes: no process of a model changes, so none restarts" in text
        return
    assert document["processes"] == [
        {
            "model": "qwen3-8b",
            "deployment": "main",
            "role": "worker",
            "arguments": [{"name": "--max-num-seqs", "old": "32", "new": "48"}],
            "parts": [],
            "effect": "restarts",
            "why": "its 2 workers restart one after the other",
        }
    ]
    said = "model 'qwen3-8b' deployment 'main' (worker): --max-num-seqs 32 -> 48; its 2 workers restart one"
    assert said in " ".join(text.split())
    assert "stacks can be updated in one step" in text


@pytest.mark.parametrize("command", ["upgrade", "deploy"])
def test_a_deployment_that_runs_and_no_longer_fits_is_an_error_before_anything_changes(
    file: Path, cluster: MakeCluster, table: FakeTable, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """The catalogue's weights become larger, as when a release of this library corrects them."""
    cluster()
    keep_lock(load_blueprint(str(file)), file)
    before = file.read_text(), lock_path(file).read_text()
    known = catalogue().models
    larger = replace(known["Qwen/Qwen3-8B"], weight_bytes=60 * 10**9)
    monkeypatch.setitem(catalogue().__dict__, "models", {**known, "Qwen/Qwen3-8B": larger})
    refused = run(str(file), *(["--apply"] if command == "upgrade" else []), command=command)
    assert isinstance(refused.exception, BlueprintError)
    [problem] = refused.exception.problems
    assert "tensorParallelSize" in problem.path
    assert re.search(r"Qwen/Qwen3-8B does not fit: each l40s needs .* for weights", problem.message)
    assert (file.read_text(), lock_path(file).read_text(), table.changes) == (*before, [])
