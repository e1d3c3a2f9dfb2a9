"""One bootstrapped emulator for all tests of this folder. Each test deploys stacks with unique names."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import bootstrap

REGION = "us-west-2"


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    run_directory = tmp_path_factory.mktemp("emulator")
    with Emulator(run_directory, region=REGION) as running:
        bootstrap(running, log_path=run_directory / "bootstrap.log", on_line=lambda _: None)
        yield running


@pytest.fixture(scope="session")
def client(emulator: Emulator) -> Callable[[str], Any]:
    return emulator.client


@pytest.fixture(scope="session")
def cluster(client: Callable[[str], Any]) -> str:
    """An EKS cluster that tests of single resources share. Their objects have different names."""
    role = "arn:aws:iam::123456789012:role/cluster"
    client("eks").create_cluster(name="shared", version="1.35", roleArn=role, resourcesVpcConfig={})
    return "shared"


@dataclass(frozen=True)
class StackEnd:
    """Final status of a stack, and the reasons of failed resources."""

    status: str
    reasons: tuple[str, ...]


Resources = dict[str, tuple[str, dict[str, Any]]]
ApplyStack = Callable[[str, Resources], StackEnd]


@pytest.fixture
def apply_stack(client: Callable[[str], Any]) -> ApplyStack:
    """Create or update a stack of plain resources (name to type and properties), without the CDK CLI."""
    cloudformation = client("cloudformation")
    known: set[str] = set()

    def apply(name: str, resources: Resources) -> StackEnd:
        template = {"Resources": {key: {"Type": kind, "Properties": properties}
                                  for key, (kind, properties) in resources.items()}}  # fmt: skip
        verb = "update" if name in known else "create"
        known.add(name)
        getattr(cloudformation, f"{verb}_stack")(StackName=name, TemplateBody=json.dumps(template))
        deadline = time.monotonic() + 120
        while (status := _status(cloudformation, name)).endswith("_IN_PROGRESS"):
            assert time.monotonic() < deadline, f"stack {name} is still {status}"
            time.sleep(0.05)
        events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
        failed = [event for event in events if event["ResourceStatus"].endswith("_FAILED")]
        return StackEnd(status, tuple(event["ResourceStatusReason"] for event in failed))

    return apply


def _status(cloudformation: Any, name: str) -> str:
    status: str = cloudformation.describe_stacks(StackName=name)["Stacks"][0]["StackStatus"]
    return status
