"""A platform that asks for a snapshot, through the commands: deployed, baked, written, current, taken away.

The emulator's instances have no agent and no data volume, so the three states of the deployed machine that
look at those are told what they see; everything else is as it was deployed.
"""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inference_blueprints.resources import blueprints_directory
from inference_local.emulator.emulator import Emulator
from tests.local.conftest import BLUEPRINTS

pytestmark = pytest.mark.lives

REGION = "us-west-2"
MINE = [{"Name": "tag:inference-blueprints:platform", "Values": ["quickstart"]}]


class Platform:
    """One account and one blueprint file."""

    def __init__(self, directory: Path, emulator: Emulator) -> None:
        self.file = directory / "shop.yaml"
        self.directory = directory
        self.emulator = emulator
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in {"BLUEPRINT", "AWS_PROFILE"}},
            **emulator.environment(),
            "HOME": str(directory),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
        }

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BLUEPRINTS), *words],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def succeed(self, *words: str) -> str:
        result = self.run(*words)
        assert result.returncode == 0, f"{words}: {result.stdout}{result.stderr}"
        return result.stdout

    def instances(self) -> list[str]:
        reservations = self.emulator.client("ec2").describe_instances(Filters=MINE)["Reservations"]
        return [each["State"]["Name"] for reservation in reservations for each in reservation["Instances"]]

    def snapshots(self) -> list[str]:
        found = self.emulator.client("ec2").describe_snapshots(OwnerIds=["self"], Filters=MINE)["Snapshots"]
        return [each["SnapshotId"] for each in found]

    def tell_the_agent_s_part(self) -> None:
        """Put what the emulator has not in the place of what would ask for it."""
        states = self.emulator.client("stepfunctions")
        [machine] = states.list_state_machines()["stateMachines"]
        definition = json.loads(
            states.describe_state_machine(stateMachineArn=machine["stateMachineArn"])["definition"]
        )
        volume = self.emulator.client("ec2").create_volume(AvailabilityZone="us-west-2a", Size=200)
        seen: dict[str, dict[str, Any]] = {
            "PullImages": {"commandId": "c-1"},
            "LookAtCommand": {"status": "Success", "failure": ""},
            "LookAtInstance": {"status": "stopped", "volumeId": volume["VolumeId"]},
        }
        for name, values in seen.items():
            then = definition["States"][name]["Next"]
            definition["States"][name] = {"Type": "Pass", "Assign": values, "Next": then}
        states.update_state_machine(
            stateMachineArn=machine["stateMachineArn"], definition=json.dumps(definition)
        )


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    directory = tmp_path_factory.mktemp("image-cache")
    with Emulator(directory / "emulator", region=REGION) as emulator:
        request = urllib.request.Request(  # noqa: S310 - our own emulator
            f"{emulator.endpoint_url}/_ministack/config", data=b'{"stepfunctions._SFN_WAIT_SCALE": 0}'
        )
        urllib.request.urlopen(request, timeout=10).close()  # noqa: S310 - the same
        platform = Platform(directory, emulator)
        text = (blueprints_directory() / "quickstart-g6e.yaml").read_text()
        platform.file.write_text(
            text.replace("nodes: {max: 2}", "nodes: {max: 2}, imageAcceleration: {ebsSnapshot: {}}")
        )
        platform.succeed("bootstrap", str(platform.file))
        platform.succeed("deploy", str(platform.file), "--require-approval", "never")
        yield platform


@pytest.mark.timeout(900)
def test_from_no_snapshot_to_one_that_is_current_and_back(platform: Platform) -> None:
    file, before = str(platform.file), platform.file.read_text()
    assert "{ebsSnapshot: {}}" in before

    absent = platform.run("image-cache", "status", file)
    assert (absent.returncode, absent.stdout[:6]) == (1, "absent")

    failed = platform.run("image-cache", "bake", file, "--write")
    assert failed.returncode == 1
    assert "l40s: sendCommand: Ssm." in failed.stderr
    assert platform.file.read_text() == before
    assert (platform.instances(), platform.snapshots()) == (["terminated"], [])

    platform.tell_the_agent_s_part()
    baked = platform.succeed("image-cache", "bake", file, "--write")
    [snapshot] = platform.snapshots()
    assert f"l40s: imageAcceleration: {{ebsSnapshot: {{id: {snapshot}}}}}" in baked
    assert platform.file.read_text() == before.replace("ebsSnapshot: {}", f"ebsSnapshot: {{id: {snapshot}}}")
    assert set(platform.instances()) == {"terminated"}

    [current] = json.loads(platform.succeed("image-cache", "status", file, "--output", "json"))
    assert (current["state"], current["snapshot_id"]) == ("current", snapshot)

    said = platform.succeed("destroy", file, "--yes")
    assert f"snapshot {snapshot}: deleting, because no stack owns it" in said
    assert platform.snapshots() == []


def test_a_shipped_blueprint_is_not_written(platform: Platform) -> None:
    refused = platform.run("image-cache", "bake", "quickstart-g6e", "--write")
    assert refused.returncode == 1
    assert (
        "got --write for a shipped blueprint, which is not changed; copy it with `blueprints init"
        in refused.stderr
    )
