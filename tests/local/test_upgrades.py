"""Platforms of earlier releases, as they were deployed, become platforms of this one.

`scripts/record_release.py` recorded the releases. The emulator refuses what AWS refuses.
"""

from __future__ import annotations

import io
from collections import Counter
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
from tests.local.batch_client import has_ended, line, rows, wait
from tests.local.upgraded_job import HeldModel, UpgradedJob
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


def old_code(assembly: Path, folder: Path) -> Path:
    """Return a folder with the package of the old release's workers."""
    [worker] = [each for each in assembly.iterdir() if (each / "worker" / "__main__.py").exists()]
    folder.mkdir()
    (folder / "batch").symlink_to(worker)
    return folder


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    with (
        Emulator(
            tmp_path / "emulator", region=REGION, enforces_iam=bool(__import__("os").environ.get("IAM"))
        ) as emulator,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in {**emulator.environment(), "HOME": str(tmp_path)}.items():
            patch.setenv(name, value)
        bootstrap(emulator, log_path=tmp_path / "bootstrap.log", on_line=lambda _: None)
        yield emulator


def test_batch_of_the_first_release_is_upgraded_while_a_job_runs(emulator: Emulator, tmp_path: Path) -> None:
    release = RELEASES["9971fa9"]
    platform = Platform(emulator, release, "batch-g6e", tmp_path)
    blueprint = load_blueprint("batch-g6e").blueprint
    model = HeldModel(answers=60)
    job = UpgradedJob(emulator, blueprint, tmp_path, model)
    with job.workers(old_code(tmp_path / "old", tmp_path / "code"), {}):
        batch = job.submit([line(f"line-{number}") for number in range(200)], queue="nightly")
        assert model.reached.wait(120), "the job never came to the model"
        said = platform.upgrade()
        print("\n".join(l for l in said.splitlines() if not l.startswith("batch-")))
        model.released.set()
        ended = wait(job.client, batch, has_ended)
    print(ended)
    answers = rows(job.client, ended.output_file_id)
    assert ended.status == "completed"
    assert Counter(row["custom_id"] for row in answers) == Counter(f"line-{each}" for each in range(200))
    print("\n".join(l for l in platform.upgrade().splitlines() if not l.startswith("batch-")))
    with job.workers(None, {}):
        batch = job.submit([line(f"line-{number}") for number in range(200)], queue="nightly")
        ended = wait(job.client, batch, has_ended)
    assert ended.status == "completed"
    model.close()
