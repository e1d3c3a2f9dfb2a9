"""The CDK command line as platform teams call it, in a shell where nothing is activated."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from inference_blueprints import tools
from inference_blueprints.resources import root
from inference_blueprints.spec.source import shipped
from inference_local.emulator.emulator import Emulator
from tests.local.conftest import BLUEPRINTS

REGION = "us-west-2"
STACKS = {"Data", "Network", "Cluster", "Platform", "Capacity", "Model-qwen3-8b"}


def run(*command: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    bare = {name: value for name, value in os.environ.items() if name not in {"BLUEPRINT", "VIRTUAL_ENV"}}
    return subprocess.run(
        [str(word) for word in command],
        cwd=root(),
        env={**bare, "PATH": "/usr/bin:/bin", **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def cdk(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(*tools.cdk(), *arguments, "--ci", "--no-notices", **environment)


@dataclass(frozen=True)
class Account:
    """An account that is bootstrapped for spot nodes."""

    environment: Mapping[str, str]
    """What leads commands to it."""
    output: str
    """What the first bootstrapping printed."""


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    directory = tmp_path_factory.mktemp("account")
    with Emulator(directory, region=REGION) as emulator:
        environment = {**emulator.environment(), "HOME": str(directory), "CDK_DISABLE_CLI_TELEMETRY": "true"}
        bootstrapped = run(BLUEPRINTS, "bootstrap", "spot-g6e", **environment)
        assert bootstrapped.returncode == 0, bootstrapped.stderr
        yield Account(environment, bootstrapped.stdout)


def test_cdk_synth_takes_the_blueprint_as_context(tmp_path: Path) -> None:
    result = cdk("synth", "-c", "blueprint=quickstart-g6e", "--quiet", "--output", tmp_path)
    assert result.returncode == 0, result.stderr
    templates = {path.name.removesuffix(".template.json") for path in tmp_path.glob("*.template.json")}
    assert templates == {f"quickstart-{stack}" for stack in STACKS}


def test_without_a_blueprint_cdk_shows_the_list(tmp_path: Path) -> None:
    result = cdk("synth", "--quiet", "--output", tmp_path)
    assert result.returncode == 1
    assert f"Shipped: {', '.join(shipped())}" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_broken_blueprint_shows_its_errors_in_cdk_too(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("apiVersion: 1\n")
    result = cdk("synth", "-c", f"blueprint={tmp_path / 'a.yaml'}", "--quiet", "--output", tmp_path / "out")
    assert result.returncode == 1
    assert "a.yaml:1:13: apiVersion:" in result.stderr
    assert "Traceback" not in result.stderr


def test_bootstrap_creates_the_role_for_spot_once(account: Account) -> None:
    assert "created the role AWSServiceRoleForEC2Spot" in account.output
    second = run(BLUEPRINTS, "bootstrap", "spot-g6e", **account.environment)
    assert second.returncode == 0, second.stderr
    assert "created the role" not in second.stdout


@pytest.mark.lives
def test_blueprints_deploy_and_cdk_deploy_are_the_same_app(account: Account) -> None:
    environment = account.environment
    first = run(BLUEPRINTS, "deploy", "quickstart-g6e", "--require-approval", "never", **environment)
    assert first.returncode == 0, first.stdout + first.stderr
    second = cdk("deploy", "--all", "--require-approval", "never", BLUEPRINT="quickstart-g6e", **environment)
    assert second.returncode == 0, second.stderr
    assert (second.stdout + second.stderr).count("(no changes)") == len(STACKS), second.stdout
