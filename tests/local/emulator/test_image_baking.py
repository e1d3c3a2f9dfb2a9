"""The state machine that bakes images, run by the emulator: EC2 is the emulator's, the agent is told.

The emulator's instances have neither an agent nor a data volume. What Systems Manager says of the one, and
where the other is, is given in the format of AWS Step Functions Local's mocked service integrations.
"""

import json
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from inference_catalog import image_cache
from inference_constructs.capacity.image_baking_states import BakingResources, baking_definition
from inference_local.emulator.emulator import Emulator

ROLE = "arn:aws:iam::123456789012:role/baker"
PLATFORM = "inference-blueprints:platform"
CASE = "told"
INPUT = {
    "pool": "l40s",
    "architecture": "arm64",
    "images": ["nvcr.io/nvidia/engine:1.6.1"],
    "imagesDigest": "0a1b2c3d",
    "sizeGib": 300,
}
SENT = {"Command": {"CommandId": "c-1"}}

Answers = dict[str, dict[str, Any]]


def command(status: str, errors: str = "") -> dict[str, str]:
    return {"Status": status, "StandardErrorContent": errors}


def fails(code: str) -> dict[str, Any]:
    return {"Throw": {"Error": code, "Cause": f"told to: {code}"}}


def returns(*answers: Any) -> dict[str, Any]:
    return {str(number): {"Return": answer} for number, answer in enumerate(answers)}


@dataclass(frozen=True)
class Bake:
    """How an execution ended, the states that it went through, and what it left."""

    status: str
    error: str
    cause: str
    output: dict[str, str]
    states: list[str]
    instances: list[dict[str, Any]]
    snapshots: list[dict[str, Any]]


class Bakery:
    """Runs the state machine and looks at the account afterwards."""

    def __init__(self, emulator: Emulator, name: str) -> None:
        self._emulator = emulator
        self._name = name
        self._ec2 = emulator.client("ec2")
        self.volume = self._ec2.create_volume(AvailabilityZone="us-west-2a", Size=300)["VolumeId"]
        self.answers: Answers = {
            "PullImages": returns(SENT),
            "LookAtCommand": returns(command("InProgress"), command("Success")),
            "LookAtInstance": returns(self.instance("stopping"), self.instance("stopped")),
        }

    def instance(self, state: str) -> dict[str, Any]:
        devices = [
            {"DeviceName": "/dev/xvda", "Ebs": {"VolumeId": "vol-0root"}},
            {"DeviceName": "/dev/xvdb", "Ebs": {"VolumeId": self.volume}},
        ]
        return {"Reservations": [{"Instances": [{"State": {"Name": state}, "BlockDeviceMappings": devices}]}]}

    def bake(self) -> Bake:
        machine = self._create()
        states = self._emulator.client("stepfunctions")
        execution = states.start_execution(
            stateMachineArn=f"{machine}#{CASE}", name=f"{self._name}-1", input=json.dumps(INPUT)
        )["executionArn"]
        deadline = time.monotonic() + 240
        while (end := states.describe_execution(executionArn=execution))["status"] == "RUNNING":
            assert time.monotonic() < deadline, "the execution does not end"
            time.sleep(0.02)
        events = states.get_execution_history(executionArn=execution, maxResults=1000)["events"]
        entered = [event["stateEnteredEventDetails"]["name"] for event in events
                   if "stateEnteredEventDetails" in event]  # fmt: skip
        mine = [{"Name": f"tag:{PLATFORM}", "Values": [self._name]}]
        reservations = self._ec2.describe_instances(Filters=mine)["Reservations"]
        return Bake(
            status=end["status"],
            error=end.get("error", ""),
            cause=end.get("cause", ""),
            output=json.loads(end.get("output") or "{}"),
            states=entered,
            instances=[each for reservation in reservations for each in reservation["Instances"]],
            snapshots=self._ec2.describe_snapshots(OwnerIds=["self"], Filters=mine)["Snapshots"],
        )

    def _create(self) -> str:
        definition = baking_definition(
            BakingResources(
                launch_templates={
                    "amd64": {"LaunchTemplateId": "lt-0amd", "Version": "1"},
                    "arm64": {"LaunchTemplateId": "lt-0arm", "Version": "1"},
                },
                document_name="pull",
                tags={PLATFORM: self._name},
                snapshot_tags={
                    image_cache.BOTTLEROCKET_TAG: "aws-k8s-1.35/v1.66.0",
                    image_cache.SNAPSHOTTER_TAG: "soci",
                },
            )
        )
        self._configure(
            {
                "stepfunctions._SFN_WAIT_SCALE": 0,
                "stepfunctions._sfn_mock_config": {
                    "StateMachines": {
                        self._name: {"TestCases": {CASE: {state: state for state in self.answers}}}
                    },
                    "MockedResponses": self.answers,
                },
            }
        )
        created = self._emulator.client("stepfunctions").create_state_machine(
            name=self._name, definition=json.dumps(definition), roleArn=ROLE
        )
        return str(created["stateMachineArn"])

    def _configure(self, values: dict[str, Any]) -> None:
        request = urllib.request.Request(  # noqa: S310 - our own emulator
            f"{self._emulator.endpoint_url}/_ministack/config",
            data=json.dumps(values).encode(),
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as response:  # noqa: S310 - the same
            assert set(json.load(response)["applied"]) == set(values)


@pytest.fixture
def bakery(emulator: Emulator, request: pytest.FixtureRequest) -> Bakery:
    number = request.node.name.encode().hex()[-30:]
    return Bakery(emulator, f"try-{number}")


def has_ended(bake: Bake) -> bool:
    return [each["State"]["Name"] for each in bake.instances] == ["terminated"]


def test_a_bake_leaves_a_tagged_snapshot_and_no_instance(bakery: Bakery) -> None:
    bake = bakery.bake()
    assert bake.status == "SUCCEEDED", bake.cause
    [snapshot] = bake.snapshots
    assert bake.output == {"snapshotId": snapshot["SnapshotId"]}
    assert snapshot["VolumeId"] == bakery.volume
    assert snapshot["Description"] == "Images: nvcr.io/nvidia/engine:1.6.1"
    tags = {tag["Key"]: tag["Value"] for tag in snapshot["Tags"]}
    assert tags.pop(PLATFORM).startswith("try-")
    assert tags == {
        image_cache.POOL_TAG: "l40s",
        image_cache.IMAGES_TAG: "0a1b2c3d",
        image_cache.BOTTLEROCKET_TAG: "aws-k8s-1.35/v1.66.0",
        image_cache.SNAPSHOTTER_TAG: "soci",
    }
    assert has_ended(bake)


def test_it_waits_for_images_and_for_the_instance_to_stop(bakery: Bakery) -> None:
    states = bakery.bake().states
    assert states.count("LookAtCommand") == 2
    assert states.count("LookAtInstance") == 2
    assert states.index("TakeSnapshot") > max(
        n for n, state in enumerate(states) if state == "LookAtInstance"
    )


#: What goes wrong → which answers say so, what the user reads, and whether a snapshot had been begun.
FAILURES: dict[str, tuple[Callable[[Bakery], Answers], str]] = {
    "no agent": (
        lambda _: {"PullImages": {"0": fails("Ssm.InvalidInstanceIdException")}},
        "sendCommand: Ssm.",
    ),
    "a command that is forgotten": (
        lambda _: {"LookAtCommand": {"0": fails("Ssm.InvocationDoesNotExistException")}},
        "getCommandInvocation: Ssm.",
    ),
    "an image that there is not": (
        lambda _: {"LookAtCommand": returns(command("Pending"), command("Failed", "nvcr.io/x: not found"))},
        "the images were not pulled (Failed): nvcr.io/x: not found",
    ),
    "a pull without end": (
        lambda _: {"LookAtCommand": returns(command("TimedOut"))},
        "the images were not pulled (TimedOut): ",
    ),
    "no right to stop": (
        lambda _: {"StopInstance": {"0": fails("Ec2.Ec2Exception")}},
        "stopInstances: Ec2.Ec2Exception",
    ),
    "an instance that does not stop": (
        lambda bakery: {"LookAtInstance": {"0-2000": {"Return": bakery.instance("stopping")}}},
        "the instance did not stop",
    ),
    "no right to take snapshots": (
        lambda _: {"TakeSnapshot": {"0": fails("Ec2.Ec2Exception")}},
        "createSnapshot: Ec2.Ec2Exception",
    ),
    "a snapshot that fails": (
        lambda _: {"LookAtSnapshot": returns({"Snapshots": [{"State": "error"}]})},
        "the snapshot is error and not complete",
    ),
    "a snapshot without end": (
        lambda _: {"LookAtSnapshot": {"0-2000": {"Return": {"Snapshots": [{"State": "pending"}]}}}},
        "the snapshot is pending and not complete",
    ),
    "a snapshot that cannot be looked at": (
        lambda _: {"LookAtSnapshot": {"0": fails("Ec2.Ec2Exception")}},
        "describeSnapshots: Ec2.Ec2Exception",
    ),
}


@pytest.mark.parametrize("what", FAILURES)
def test_whatever_fails_the_instance_ends_and_no_snapshot_is_left(bakery: Bakery, what: str) -> None:
    answers, cause = FAILURES[what]
    bakery.answers |= answers(bakery)
    bake = bakery.bake()
    assert (bake.status, bake.error) == ("FAILED", "NotBaked")
    assert bake.cause.startswith(cause)
    assert has_ended(bake)
    assert bake.snapshots == []


def test_an_instance_that_does_not_start_is_not_waited_for(bakery: Bakery) -> None:
    bakery.answers["StartInstance"] = {"0": fails("Ec2.Ec2Exception")}
    bake = bakery.bake()
    assert bake.error == "NotBaked"
    assert bake.cause.startswith("runInstances: Ec2.Ec2Exception told to")
    assert bake.states == ["ReadInput", "StartInstance", "NotBaked"]


def test_an_instance_that_does_not_end_is_named(bakery: Bakery) -> None:
    bakery.answers["TerminateInstance"] = {"0": fails("Ec2.Ec2Exception")}
    bake = bakery.bake()
    assert bake.error == "InstanceLeft"
    [instance] = bake.instances
    assert bake.cause.startswith(f"{instance['InstanceId']} still runs, and is billed: terminateInstances: ")


def test_a_snapshot_that_cannot_be_taken_away_is_named(bakery: Bakery) -> None:
    bakery.answers["LookAtSnapshot"] = returns({"Snapshots": [{"State": "error"}]})
    bakery.answers["DeleteSnapshot"] = {"0": fails("Ec2.Ec2Exception")}
    bake = bakery.bake()
    assert bake.error == "SnapshotLeft"
    [snapshot] = bake.snapshots
    assert bake.cause.startswith(
        f"{snapshot['SnapshotId']} is incomplete, and is billed: the snapshot is error"
    )
    assert has_ended(bake)
