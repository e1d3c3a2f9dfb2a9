"""A platform's life in an account, through the commands: deployed, changed, pruned, destroyed."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints.resources import blueprints_directory
from inference_local.emulator.emulator import Emulator
from tests.local.conftest import BLUEPRINTS

REGION = "us-west-2"
SEED = 4
#: Orphans become children of this process (prctl(2)).
PR_SET_CHILD_SUBREAPER = 36
STEPS = 1
pytestmark = pytest.mark.lives
#: The command line with a lease of four seconds, so that a killed operation is replaced soon.
SHORT_LEASE = """
from inference_blueprints.operate.ownership import platform_operation as module
module.RENEW_SECONDS, module.LEASE_SECONDS, module._POLL_SECONDS = 0.5, 4.0, 0.5
from inference_blueprints.cli.main import main
main()
"""
FOUNDATIONS = {"Data", "Network", "Cluster", "Platform", "Capacity"}


class Life:
    """One account and one blueprint file that changes."""

    def __init__(self, directory: Path, emulator: Emulator) -> None:
        self.file = directory / "life.yaml"
        self.emulator = emulator
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in {"BLUEPRINT", "AWS_PROFILE"}},
            **emulator.environment(),
            "HOME": str(directory),
            "CDK_DISABLE_CLI_TELEMETRY": "true",
        }
        self.directory = directory

    def write(self, models: list[str], *, second_pool: bool = False) -> None:
        blueprint = yaml.safe_load((blueprints_directory() / "quickstart-g6e.yaml").read_text())
        [model], [pool] = blueprint["spec"]["models"], blueprint["spec"]["pools"]
        blueprint["metadata"]["name"] = "life"
        blueprint["spec"]["models"] = [{**model, "name": name} for name in models]
        pools = [{**pool, "nodes": {"max": 6}}]
        blueprint["spec"]["pools"] = [*pools, *([{**pools[0], "name": "second"}] if second_pool else [])]
        self.file.write_text(yaml.safe_dump(blueprint, sort_keys=False))

    def run(self, command: str, *options: str, file: Path | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BLUEPRINTS), command, str(file or self.file), *options],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def kill(self, command: str, *options: str, after: str) -> str:
        """Start a command, end it by SIGKILL at the first line with some words, and return that line.

        Its CDK command line ends when it prints the next line. Who waits for it is this process, because the
        first process of a container may not: the CDK takes one that nobody waits for as alive.
        """
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        process = subprocess.Popen(
            [sys.executable, "-c", SHORT_LEASE, command, str(self.file), *options],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert process.stdout is not None
        with process:
            line = next((each for each in process.stdout if after in each), "")
            process.kill()
        with contextlib.suppress(ChildProcessError):
            while True:
                os.waitpid(-process.pid, 0)
        assert line, f"{command} ended with code {process.returncode} before it said {after!r}"
        return line

    def repeat(self, command: str, *options: str) -> str:
        """Run a command again after it was killed. It must complete."""
        result = subprocess.run(
            [sys.executable, "-c", SHORT_LEASE, command, str(self.file), *options],
            cwd=self.directory,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
        return result.stdout

    def succeed(self, command: str, *options: str) -> str:
        result = self.run(command, *options)
        assert result.returncode == 0, f"{command}: {result.stdout}{result.stderr}"
        return result.stdout

    def stacks(self) -> dict[str, dict[str, Any]]:
        pages = self.emulator.client("cloudformation").get_paginator("describe_stacks").paginate()
        stacks = {stack["StackName"]: stack for page in pages for stack in page["Stacks"]}
        return {
            name.removeprefix("life-"): stack
            for name, stack in stacks.items()
            if name.startswith("life-") and stack["StackStatus"] != "DELETE_COMPLETE"
        }


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Life]:
    directory = tmp_path_factory.mktemp("life")
    with Emulator(directory / "emulator", region=REGION) as emulator:
        life = Life(directory, emulator)
        life.write(["a"])
        life.succeed("bootstrap")
        yield life


@pytest.mark.timeout(900)
def test_sections_go_off_and_on_and_everything_goes_at_last(life: Life) -> None:
    # Killed while CloudFormation changes a stack, which goes on: the same command completes.
    life.kill("deploy", "--require-approval", "never", after="CREATE_IN_PROGRESS")
    life.repeat("deploy", "--require-approval", "never")
    assert set(life.stacks()) == FOUNDATIONS | {"Model-a"}
    assert all(stack["StackStatus"].endswith("E_COMPLETE") for stack in life.stacks().values())

    other = life.directory / "other.yaml"
    other.write_text(life.file.read_text())
    for command in (("deploy",), ("destroy", "--yes"), ("prune", "--yes")):
        refused = life.run(*command, file=other)
        assert refused.returncode == 1
        assert f"belongs to another blueprint ({life.file.name}," in refused.stderr
    assert not other.with_name("other.lock.yaml").exists()

    choose = random.Random(SEED)  # noqa: S311 - a sequence that repeats
    for _ in range(STEPS):
        models = choose.sample(["a", "b", "c"], k=choose.randint(1, 2))
        life.write(models, second_pool=choose.random() < 0.5)
        life.succeed("deploy", "--require-approval", "never")
        life.succeed("prune", "--yes")
        stacks = life.stacks()
        assert set(stacks) == FOUNDATIONS | {f"Model-{name}" for name in models}
        assert all(stack["StackStatus"].endswith("E_COMPLETE") for stack in stacks.values())

    refused = life.run("destroy")
    assert refused.returncode == 1
    assert "add --yes" in refused.stderr
    assert set(life.stacks()) >= FOUNDATIONS

    # Killed while its last stack goes, whose key stays: the same command names it.
    life.kill("destroy", "--yes", after="life-Data: deleting")
    said = life.repeat("destroy", "--yes")
    assert life.stacks() == {}
    assert "kept: AWS::KMS::Key" in said
    assert "of life-Data: 1.00 USD a month" in said
    assert "life: deleted. What is listed as kept stays and is billed: 1.00 USD a month for 1 key" in said
    assert "life: nothing billable is left" not in said
