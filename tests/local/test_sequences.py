"""Random lives of a platform: anything that may change does, deployment after deployment.

The lives are the same in every run. ``LIVES`` is their number; ``make check-lives`` takes more.
"""

from __future__ import annotations

import copy
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.cloudformation.deployed_stacks import physical_ids
from inference_blueprints.operate.cloudformation.stack_events import resource_counts
from inference_blueprints.operate.removal.platform_removal import Removal
from inference_blueprints.synthesis import synthesise
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import bootstrap, deploy
from inference_local.emulator.records import EmulatorRecords
from tests.local.inventory import inventory
from tests.templates.conftest import BASE
from tests.templates.strategies import ACCOUNT, PLATFORM, Document, lives
from tests.templates.support import Templates, text

REGION = "us-west-2"
LIVES = int(os.environ.get("LIVES", "1"))
STEPS = 3
PARTITIONS = 48
SAVED = "huggingface/saved"
pytestmark = pytest.mark.lives


class Life:
    """One platform in one account, deployed again and again."""

    def __init__(self, emulator: Emulator, folder: Path) -> None:
        self._emulator = emulator
        self._folder = folder
        self._removal = Removal(Account(REGION), PLATFORM, blueprint="life.yaml", say=lambda _: None)
        self._storage = emulator.client("s3")
        # A life that failed before this one has left its stacks.
        self._removal.destroy()
        self._before = inventory(emulator)
        self._namespaces: set[str] = set()
        self._retained: set[str] = set()

    def step(self, document: Document) -> None:
        """Deploy a blueprint, prune, and compare the account with the templates."""
        folder = self._folder / f"step-{len(list(self._folder.iterdir()))}"
        folder.mkdir()
        # A topic never loses partitions. `blueprints deploy` keeps them, and this test uses the CDK alone.
        for job in document["spec"].get("streaming", ()):
            job["events"]["partitions"] = PARTITIONS
        (folder / "life.yaml").write_text(yaml.safe_dump(document, sort_keys=False))
        synthesise(str(folder / "life.yaml"), folder / "cdk.out")
        deploy(
            self._emulator,
            folder / "cdk.out",
            log_path=folder / "deploy.log",
            on_line=lambda _: None,
            on_event=lambda _: None,
        )
        named = resource_counts(folder / "cdk.out")
        self._removal.prune([stack for stack in self._removal.stacks() if stack.name not in named])
        templates = Templates(folder / "cdk.out")
        self._compare_stacks(templates)
        self._compare_cluster(templates)
        owned = physical_ids(self._emulator.client("cloudformation"), self._removal.stacks())
        left = inventory(self._emulator) - self._before - self._retained - owned
        assert sorted(left) == [], "no stack owns these"

    def save(self) -> None:
        """Put something into the bucket that outlives deployments."""
        self._storage.put_object(Bucket=self._bucket(), Key=SAVED, Body=b"weights")

    def has_saved(self) -> bool:
        """Whether it is still there."""
        count: int = self._storage.list_objects_v2(Bucket=self._bucket(), Prefix=SAVED)["KeyCount"]
        return count == 1

    def remove(self) -> set[str]:
        """Take every stack away, and return what stays."""
        kept = {
            each.physical_id
            for each in self._removal.destroy()
            # The emulator makes no snapshot of a cache that is deleted.
            if not each.resource_type.startswith("last snapshot")
        }
        assert self._removal.stacks() == []
        return kept

    def destroy(self, document: Document) -> None:
        """Take everything away but data that the blueprint keeps, or that an earlier step or life left."""
        owned = physical_ids(self._emulator.client("cloudformation"), self._removal.stacks())
        left_before = self._before | (self._retained - owned)
        kept = self.remove()
        if document["spec"]["environment"].get("dataRemoval", "retain") == "retain":
            assert kept != set()
        else:
            assert kept <= left_before
        left = inventory(self._emulator) - self._before
        # The emulator derives names from stacks: a table may have the name of one that an earlier life left.
        assert kept - self._before <= left <= kept | self._retained
        assert list(self._records().objects()) == []
        assert self._records().releases() == ()

    def _records(self) -> EmulatorRecords:
        return EmulatorRecords(self._emulator.records_directory / PLATFORM)

    def _bucket(self) -> str:
        cloudformation = self._emulator.client("cloudformation")
        [stack] = cloudformation.describe_stacks(StackName=f"{PLATFORM}-Data")["Stacks"]
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack["Outputs"]}
        return str(outputs["WeightsBucketName"])

    def _compare_stacks(self, templates: Templates) -> None:
        """Each stack has the resources of its template, and there is no other stack."""
        cloudformation = self._emulator.client("cloudformation")
        stacks = {stack.name.removeprefix(f"{PLATFORM}-"): stack for stack in self._removal.stacks()}
        assert stacks.keys() == templates.by_stack.keys()
        assert {stack.status for stack in stacks.values()} <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
        pages = cloudformation.get_paginator("list_stack_resources")
        for name, stack in stacks.items():
            there = {
                each["LogicalResourceId"]: each["PhysicalResourceId"]
                for page in pages.paginate(StackName=stack.stack_id)
                for each in page["StackResourceSummaries"]
            }
            resources = templates.by_stack[name]["Resources"]
            assert there.keys() == resources.keys()
            # A later step may take these out of a stack, and they stay in the account.
            self._retained |= {
                there[key] for key, each in resources.items() if each.get("DeletionPolicy") == "Retain"
            }

    def _compare_cluster(self, templates: Templates) -> None:
        """The cluster has the objects and releases of the templates, as they are there, and no others."""
        records = self._records()
        releases = records.releases()
        of_releases = {path for release in releases for path in release.objects}
        recorded = {path: _sorted(item) for path, item in records.objects()}
        wanted = {
            records.path_of(item, item["metadata"].get("namespace")): _sorted(item)
            for stack in templates.by_stack
            for item in templates.manifests(stack)
        }
        # Helm makes the namespace of a release and leaves it behind: those of earlier steps stay too.
        self._namespaces |= {f"_cluster/namespace-{release.namespace}.yaml" for release in releases}
        assert recorded.keys() - of_releases - self._namespaces == wanted.keys() - self._namespaces
        assert [path for path, item in wanted.items() if not _equal(item, recorded[path])] == []
        charts = {
            release: json.loads(text(chart["Properties"].get("Values", "{}")))
            for stack in templates.by_stack
            for release, chart in templates.charts(stack).items()
        }
        assert {release.name for release in releases} == charts.keys()
        assert [
            release.name
            for release in releases
            if not _equal(_sorted(charts[release.name]), _sorted(release.values))
        ] == []


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    folder = tmp_path_factory.mktemp("sequences")
    with (
        Emulator(folder / "emulator", region=REGION, account=ACCOUNT) as emulator,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in emulator.environment().items():
            patch.setenv(name, value)
        bootstrap(emulator, log_path=folder / "bootstrap.log", on_line=lambda _: None)
        yield emulator


@pytest.mark.timeout(600 * LIVES)
@settings(
    max_examples=LIVES,
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
)
@given(documents=lives(REGION, steps=STEPS))
def test_any_blueprint_follows_any_other_and_nothing_stays(
    documents: list[Document], emulator: Emulator, tmp_path_factory: pytest.TempPathFactory
) -> None:
    life = Life(emulator, tmp_path_factory.mktemp("life"))
    for document in documents:
        life.step(document)
        if document is documents[0]:
            life.save()
        assert life.has_saved(), "data of a bucket is lost"
    life.destroy(documents[-1])


@pytest.mark.timeout(900)
def test_gpu_health_comes_changes_and_goes(
    emulator: Emulator, tmp_path_factory: pytest.TempPathFactory
) -> None:
    life = Life(emulator, tmp_path_factory.mktemp("health"))
    document = copy.deepcopy(dict(BASE))
    document["spec"] |= {"observability": {}, "gpuHealth": {"action": "observe"}}
    document["spec"]["environment"] = {"region": REGION, "account": ACCOUNT, "dataRemoval": "destroy"}
    life.step(document)
    document["spec"]["gpuHealth"]["action"] = "replace"
    document["spec"]["pools"][0]["repairedBy"] = "gpuHealth"
    life.step(document)
    del document["spec"]["gpuHealth"], document["spec"]["pools"][0]["repairedBy"]
    life.step(document)
    life.destroy(document)


def _equal(wanted: str, found: str) -> bool:
    """Compare what a template says with what came of it. References and digests may be anything here."""
    pattern = ".*".join(re.escape(part) for part in re.split(r"\$\{[^}]*\}|ASSET", wanted))
    return re.fullmatch(pattern, found) is not None


def _sorted(mapping: Mapping[str, object]) -> str:
    return json.dumps(dict(mapping), sort_keys=True)
