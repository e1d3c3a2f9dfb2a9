"""Platforms of earlier releases, as they were deployed, become platforms of this one.

`scripts/record_release.py` recorded the releases. The emulator refuses what AWS refuses.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from inference_blueprints.deployment.aws.account import Account
from inference_blueprints.deployment.changes.deployment_steps import deploy_in_steps
from inference_blueprints.deployment.removal.platform_removal import Removal
from inference_blueprints.loading import load_blueprint
from inference_blueprints.local.emulator.emulator import Emulator
from inference_blueprints.local.emulator.emulator_deploy import bootstrap, deploy
from tests.releases.recorded_releases import RecordedRelease, recorded_releases

REGION = "us-west-2"
pytestmark = pytest.mark.lives
RELEASES = {release.commit: release for release in recorded_releases()}


class Platform:
    """A platform of an earlier release in an account of its own."""

    def __init__(self, emulator: Emulator, release: RecordedRelease, blueprint: str, folder: Path) -> None:
        self.emulator = emulator
        self.name = load_blueprint(blueprint).blueprint.metadata.name
        self._blueprint = blueprint
        self._folder = folder
        self.account = Account(REGION)
        assembly = release.assembly(blueprint, folder / "old")
        deploy(
            emulator,
            assembly,
            log_path=folder / "old.log",
            on_line=lambda _: None,
            on_event=lambda _: None,
        )

    def upgrade(self, *, expires_existing: bool = False) -> str:
        """Deploy this release, and return what was said."""
        said = io.StringIO()
        deploy_in_steps(
            self._blueprint,
            self.name,
            self.account,
            ["--require-approval", "never", "--output", str(self._folder / "new"), "--ci", "--no-notices"],
            Console(file=said, width=200),
            expires_existing=expires_existing,
        )
        return said.getvalue()


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    with Emulator(tmp_path / "emulator", region=REGION) as emulator, pytest.MonkeyPatch.context() as patch:
        for name, value in {**emulator.environment(), "HOME": str(tmp_path)}.items():
            patch.setenv(name, value)
        bootstrap(emulator, log_path=tmp_path / "bootstrap.log", on_line=lambda _: None)
        yield emulator


def test_batch_of_the_first_release_is_upgraded(emulator: Emulator, tmp_path: Path) -> None:
    platform = Platform(emulator, RELEASES["9971fa9"], "batch-g6e", tmp_path)
    print(platform.upgrade())
    removal = Removal(platform.account, platform.name, blueprint="x", say=lambda _: None)
    print(removal.stacks())
    assert {stack.status for stack in removal.stacks()} == {"UPDATE_COMPLETE"}
    assert "keda" in {release.name for release in emulator.recorded_releases()}
