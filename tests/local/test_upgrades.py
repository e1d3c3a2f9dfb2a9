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

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.data_checks import DATA_TYPES
from inference_blueprints.operate.changes.deployment_steps import deploy_in_steps
from inference_blueprints.operate.removal.platform_removal import Removal
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import DeployError, bootstrap, deploy
from tests.local.batch_client import has_ended, line, rows, wait
from tests.local.denials import Denials
from tests.local.upgraded_job import HeldModel, UpgradedJob
from tests.releases.recorded_releases import recorded_releases

REGION = "us-west-2"
LINES = 200
BEFORE = 60
_BATCH_BUCKET = "Batch14E90808"
pytestmark = [pytest.mark.lives, pytest.mark.timeout(1200)]
RELEASES = {release.commit: release for release in recorded_releases()}


class Platform:
    """A platform of an earlier release in an account of its own."""

    def __init__(self, emulator: Emulator, commit: str, blueprint: str, folder: Path) -> None:
        self.emulator = emulator
        self.blueprint = load_blueprint(blueprint).blueprint
        self.name = self.blueprint.metadata.name
        self.account = Account(REGION)
        self.assembly = RELEASES[commit].assembly(blueprint, folder / "old")
        self._file = blueprint
        self._folder = folder

    def deploy_old(self) -> None:
        """Deploy the earlier release."""
        deploy(
            self.emulator,
            self.assembly,
            log_path=self._folder / "old.log",
            on_line=lambda _: None,
            on_event=lambda _: None,
        )

    def upgrade(self, *, expires_existing: bool = False) -> list[str]:
        """Deploy this release, and return what was found, each line as often as it was said."""
        said = io.StringIO()
        deploy_in_steps(
            self._file,
            self.name,
            self.account,
            ["--require-approval", "never", "--output", str(self._folder / "new"), "--ci", "--no-notices"],
            Console(file=said, width=200),
            expires_existing=expires_existing,
        )
        (self._folder / "new.log").write_text(said.getvalue())
        found = [each for each in said.getvalue().splitlines() if each.startswith(("held ", "warning "))]
        assert {stack.status for stack in self.removal.stacks()} <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
        return found

    @property
    def removal(self) -> Removal:
        return Removal(self.account, self.name, blueprint=self._file, say=lambda _: None)

    def data(self) -> dict[str, str]:
        """Return the physical ID of everything that holds data, by stack and logical ID."""
        pages = self.emulator.client("cloudformation").get_paginator("list_stack_resources")
        return {
            f"{stack.name}/{each['LogicalResourceId']}": each["PhysicalResourceId"]
            for stack in self.removal.stacks()
            for page in pages.paginate(StackName=stack.stack_id)
            for each in page["StackResourceSummaries"]
            if each["ResourceType"] in DATA_TYPES
        }

    def bucket(self) -> str:
        """Return the bucket of batch."""
        return self.data()[f"{self.name}-Data/{_BATCH_BUCKET}"]

    def expirations(self) -> set[str]:
        """Return the prefixes whose objects expire. The emulator does not carry rules of templates out."""
        cloudformation = self.emulator.client("cloudformation")
        template = cloudformation.get_template(StackName=f"{self.name}-Data")["TemplateBody"]
        [bucket] = [each for name, each in template["Resources"].items() if name == _BATCH_BUCKET]
        rules = bucket["Properties"]["LifecycleConfiguration"]["Rules"]
        return {rule.get("Prefix", "") for rule in rules if "ExpirationInDays" in rule}


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    with Emulator(tmp_path / "emulator", region=REGION) as emulator, pytest.MonkeyPatch.context() as patch:
        for name, value in {**emulator.environment(), "HOME": str(tmp_path)}.items():
            patch.setenv(name, value)
        bootstrap(emulator, log_path=tmp_path / "bootstrap.log", on_line=lambda _: None)
        yield emulator


@pytest.fixture
def model() -> Iterator[HeldModel]:
    model = HeldModel(answers=BEFORE)
    yield model
    model.close()


def old_code(assembly: Path, folder: Path) -> Path:
    """Return a folder with the packages of the old release's workers."""
    found = [each for each in assembly.iterdir() if list(each.glob("**/worker/__main__.py"))]
    # The code of functions has that of workers, too, with their configuration.
    worker = min(found, key=lambda each: (each / "configuration.json").exists())
    if (worker / "batch").is_dir():
        return worker
    folder.mkdir()
    (folder / "batch").symlink_to(worker)
    return folder


def test_the_first_release_is_upgraded_while_a_job_runs(
    emulator: Emulator, tmp_path: Path, model: HeldModel
) -> None:
    """EKS refused an association and CloudFormation a log group; KEDA was uninstalled, and the job denied."""
    platform = Platform(emulator, "9971fa9", "batch-g6e", tmp_path)
    platform.deploy_old()
    platform.emulator.client("s3").put_object(Bucket=platform.bucket(), Key="nightly/ads/old", Body=b"x")
    before = platform.data()
    job = UpgradedJob(emulator, platform.blueprint, tmp_path, model)
    with job.workers(old_code(platform.assembly, tmp_path / "code")):
        batch = job.submit([line(f"line-{number}") for number in range(LINES)], queue="nightly")
        assert model.reached.wait(120), "the job never came to the model"
        with Denials(emulator, platform.name) as denials:
            found = platform.upgrade()
        model.released.set()
        ended = wait(job.client, batch, has_ended)
    assert denials.seen == set()
    assert any("1 job runs, so this stack stays as it is" in each for each in found), found
    assert any("release keda/keda stays in batch-Batch" in each for each in found), found
    _assert_whole(job, ended)

    with Denials(emulator, platform.name) as denials:
        found = platform.upgrade()
    assert denials.seen == set()
    assert [each for each in found if "running jobs: batch-Batch: roles" in each], found
    assert "keda" in {release.name for release in emulator.recorded_releases()}
    assert platform.expirations().isdisjoint({"jobs/", "nightly/"}), "results of a job were there before"
    policy = emulator.client("s3").get_bucket_policy(Bucket=platform.bucket())["Policy"]
    assert "/inference-blueprints/batch/batch/*" in policy, "the isolation of teams came at last"
    assert platform.data().items() >= before.items()
    with job.workers():
        batch = job.submit([line(f"line-{number}") for number in range(LINES)], queue="nightly")
        _assert_whole(job, wait(job.client, batch, has_ended))
    assert {each.status for each in job.client.batches.list()} == {"completed"}, "old jobs are listed, too"

    assert platform.upgrade(expires_existing=True) == []
    assert platform.expirations() >= {"jobs/", "nightly/"}


def test_a_job_of_the_last_release_ends_with_new_workers(
    emulator: Emulator, tmp_path: Path, model: HeldModel
) -> None:
    """A field of a document that only one of two releases knows would fail every shard."""
    platform = Platform(emulator, "95795729", "batch-g6e", tmp_path)
    platform.deploy_old()
    before = platform.data()
    job = UpgradedJob(emulator, platform.blueprint, tmp_path, model)
    with job.workers(old_code(platform.assembly, tmp_path / "code")):
        batch = job.submit([line(f"line-{number}") for number in range(LINES)], queue="nightly")
        assert model.reached.wait(120), "the job never came to the model"
        with Denials(emulator, platform.name) as denials:
            found = platform.upgrade()
        # Functions are new before the workers are, so workers of the old release take shards of new ones.
        mixed = job.submit([line(f"line-{number}") for number in range(LINES)], queue="nightly")
        model.released.set()
        _assert_whole(job, wait(job.client, mixed, has_ended))
    assert denials.seen == set()
    assert [each for each in found if each.startswith("held")] == []
    with job.workers():
        _assert_whole(job, wait(job.client, batch, has_ended))
    assert platform.data().items() >= before.items()


@pytest.mark.parametrize(
    ("commit", "blueprint"),
    [
        ("9971fa9", "p5en-disaggregated"),
        ("95795729", "p5en-disaggregated"),
        ("95795729", "streaming-g6e"),
        ("95795729", "capacity-and-health"),
    ],
)
def test_other_platforms_are_upgraded_by_one_command(
    emulator: Emulator, tmp_path: Path, commit: str, blueprint: str
) -> None:
    """What AWS refuses, or what loses data, would stop the command or change an identifier."""
    platform = Platform(emulator, commit, blueprint, tmp_path)
    platform.deploy_old()
    before = platform.data()
    platform.upgrade()
    assert platform.data().items() >= before.items()
    assert platform.upgrade() == [], "nothing is left to do"


def test_a_first_deployment_on_ecs_that_failed_is_taken_over(emulator: Emulator, tmp_path: Path) -> None:
    """Its stacks can only be deleted, and names that they left would be refused."""
    platform = Platform(emulator, "95795729", "ecs-g6e", tmp_path)
    with pytest.raises(DeployError):
        platform.deploy_old()
    failed = {stack.name for stack in platform.removal.stacks() if stack.status == "ROLLBACK_COMPLETE"}
    assert failed
    platform.upgrade()
    assert platform.upgrade() == []


def _assert_whole(job: UpgradedJob, ended: object) -> None:
    """Every line has one answer."""
    assert getattr(ended, "status", None) == "completed", ended
    answers = rows(job.client, getattr(ended, "output_file_id", None))
    assert Counter(row["custom_id"] for row in answers) == Counter(f"line-{each}" for each in range(LINES))
