"""A platform on ECS whose hosts change: kind, purchase, pools, tags and replicas, one after the other.

The emulator refuses what ECS refuses: a provider that services use cannot leave, and a name is given once.
"""

from __future__ import annotations

import copy
import io
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, Phase, given, settings
from rich.console import Console

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes.deployment_steps import deploy_in_steps
from inference_blueprints.operate.ecs_cluster import unprotect_hosts
from inference_blueprints.operate.removal.platform_removal import Removal
from inference_catalog.tags import PLATFORM_TAG
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import bootstrap
from tests.templates.conftest import BASE
from tests.templates.ecs_strategies import Document, ecs_lives
from tests.templates.strategies import ACCOUNT, PLATFORM

REGION = "us-west-2"
ENVIRONMENT = {"region": REGION, "account": ACCOUNT, "dataRemoval": "destroy"}
#: Number of lives. Ten take longer than a run of continuous integration has: set LIVES_ON_ECS for more.
LIVES = int(os.environ.get("LIVES_ON_ECS", "1"))
STEPS = 4
PROVIDER, GROUP = "AWS::ECS::CapacityProvider", "AWS::AutoScaling::AutoScalingGroup"
pytestmark = pytest.mark.lives


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    tmp_path = tmp_path_factory.mktemp("emulator")
    with (
        Emulator(tmp_path / "emulator", region=REGION, account=ACCOUNT) as emulator,
        pytest.MonkeyPatch.context() as patch,
    ):
        for name, value in {**emulator.environment(), "HOME": str(tmp_path)}.items():
            patch.setenv(name, value)
        bootstrap(emulator, log_path=tmp_path / "bootstrap.log", on_line=lambda _: None)
        yield emulator


class Platform:
    """A platform whose file changes."""

    def __init__(self, emulator: Emulator, folder: Path) -> None:
        self._folder = folder
        self._ecs = emulator.client("ecs")
        self._account = Account(REGION)
        # No task runs here, so nothing has to end before the stacks.
        self.removal = Removal(
            self._account, PLATFORM, blueprint=str(folder / "life.yaml"), say=lambda _: None
        )
        self.document = copy.deepcopy(dict(BASE))
        self.document["spec"]["cluster"] = {"ecs": {}}
        self.document["spec"]["environment"] = dict(ENVIRONMENT)

    @property
    def pool(self) -> dict[str, Any]:
        pool: dict[str, Any] = self.document["spec"]["pools"][0]
        return pool

    def deploy(self) -> str:
        """Deploy the file, check that every stack is complete, and return what was said."""
        file = self._folder / "life.yaml"
        file.write_text(yaml.safe_dump(self.document, sort_keys=False), encoding="utf-8")
        said = io.StringIO()
        output = str(self._folder / "cdk.out")
        options = ["--require-approval", "never", "--output", output, "--ci", "--no-notices"]
        deploy_in_steps(str(file), PLATFORM, self._account, options, Console(file=said, width=200))
        states = {stack.name: stack.status for stack in self.removal.stacks()}
        assert set(states.values()) <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}, states
        return said.getvalue()

    def providers(self) -> set[str]:
        """Return the capacity providers of pools: those of the template, which are all that services use."""
        template = json.loads((self._folder / "cdk.out" / f"{PLATFORM}-Capacity.template.json").read_text())
        named = {
            str(each["Properties"]["Name"])
            for each in template["Resources"].values()
            if each["Type"] == PROVIDER
        }
        resources = self._account.client("cloudformation").list_stack_resources(
            StackName=f"{PLATFORM}-Capacity"
        )["StackResourceSummaries"]
        owned = {
            each["PhysicalResourceId"]
            for each in resources
            # A stack still lists what it has deleted.
            if each["ResourceType"] == PROVIDER and each["ResourceStatus"] != "DELETE_COMPLETE"
        }
        assert owned == named
        # CloudFormation completes an update also if it could not delete what the template has no more.
        groups = self._account.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
        kept = {
            each["PhysicalResourceId"]
            for each in resources
            if each["ResourceType"] == GROUP and not each["ResourceStatus"].startswith("DELETE_")
        }
        assert {each["AutoScalingGroupName"] for each in groups} == kept, "hosts without an owner stay"
        listed = self._ecs.list_services(cluster=PLATFORM)["serviceArns"]
        used = {
            item["capacityProvider"]
            for part in (listed[start : start + 10] for start in range(0, len(listed), 10))
            for service in self._ecs.describe_services(cluster=PLATFORM, services=part)["services"]
            for item in service.get("capacityProviderStrategy", ())
        }
        assert used - {"FARGATE"} <= owned
        return owned

    def prune(self) -> None:
        """Delete the stacks of models that the file does not have."""
        self.removal.prune(self.removal.unnamed_stacks())

    def destroy(self) -> None:
        """Delete all stacks, after the protection of hosts, as `blueprints destroy` does."""
        unprotect_hosts(self._account, PLATFORM, tag=PLATFORM_TAG)
        self.removal.destroy()
        assert self.removal.stacks() == []


@pytest.mark.timeout(900)
def test_hosts_change_one_after_the_other(emulator: Emulator, tmp_path: Path) -> None:
    """It turns red if a change of hosts needs more than one `deploy`, or leaves old hosts."""
    platform = Platform(emulator, tmp_path)
    spec = platform.document["spec"]
    platform.deploy()
    assert platform.providers() == {"managed-try-l40s"}
    spec["cluster"] = {"ecs": {"managedInstances": "never"}}
    # A group has a host from the start, which is protected until the group is removed.
    platform.pool["nodes"]["min"] = 1
    assert "managed-try-l40s and their hosts stay until services have moved" in platform.deploy()
    assert platform.providers() == {"pool-try-l40s"}
    platform.pool["purchase"] = {"spot": {}}
    platform.deploy()
    assert platform.providers() == {"pool-try-l40s-spot"}
    platform.pool["purchase"] = {"spot": {"onDemandFallback": True}}
    assert "stay until" not in platform.deploy(), "nothing leaves"
    assert platform.providers() == {"pool-try-l40s", "pool-try-l40s-spot"}
    spec["environment"]["tags"] = {"Cost Center": "42", "team/owner": "search"}
    spec["models"][0]["deployments"][0]["aggregated"]["replicas"] = 3
    assert "stay until" not in platform.deploy(), "nothing leaves"
    # A pool goes, another one comes, and its hosts are of the other kind.
    spec["cluster"] = {"ecs": {}}
    platform.pool.update(name="other", purchase={"onDemand": {}}, nodes={"max": 4})
    spec["models"][0]["deployments"][0]["aggregated"]["pool"] = "other"
    platform.deploy()
    assert platform.providers() == {"managed-try-other"}
    platform.destroy()


@pytest.mark.timeout(900 * LIVES)
@settings(
    max_examples=LIVES,
    database=None,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)
@given(documents=ecs_lives(ENVIRONMENT, steps=STEPS))
def test_any_blueprint_on_ecs_follows_any_other(
    documents: list[Document], emulator: Emulator, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """It turns red if ECS or CloudFormation refuses a change of a drawn life, or old hosts stay."""
    platform = Platform(emulator, tmp_path_factory.mktemp("life"))
    for platform.document in documents:
        waits = platform.deploy().rstrip().endswith("end with `blueprints prune`")
        platform.prune()
        if waits:
            platform.deploy()
        platform.providers()
    platform.destroy()
