"""Bakes that are started, followed and told, against a state machine that says what it is told to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml
from botocore.exceptions import ClientError

from inference_blueprints.loading import load_blueprint, parse_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.image_cache.snapshot_baker import STEPS, Baked, Baker
from inference_blueprints.operate.image_cache.snapshot_status import wanted_snapshots
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.plan import build_plan
from inference_catalog import image_cache
from inference_catalog.releases import NodeImage
from inference_constructs.capacity.image_baking_states import BakingResources, baking_definition
from inference_contracts.errors import UserError
from tests.unit.operate.test_image_cache_status import WANTED

MACHINE = "arn:aws:states:us-west-2:123456789012:stateMachine:baker"
RUNNING = {"status": "RUNNING"}
DONE = {"status": "SUCCEEDED", "output": '{"snapshotId": "snap-0a1b2c3d"}'}


class FakeStates:
    """Step Functions with one state machine.

    ends: What each look at a pool's execution answers, by pool and in turn.
    entered: States that the newest events name, by look.
    """

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []
        self.under_way: list[str] = []
        self.ends: dict[str, list[dict[str, Any]]] = {}
        self.entered: list[str] = []

    def get_paginator(self, operation: str) -> FakeStates:
        assert operation == "list_executions"
        return self

    def paginate(self, **asked: str) -> Iterator[dict[str, Any]]:
        assert asked == {"stateMachineArn": MACHINE, "statusFilter": "RUNNING"}
        for name in self.under_way:
            yield {"executions": [{"name": name, "executionArn": arn(name)}]}

    def start_execution(self, **asked: Any) -> dict[str, str]:
        self.started.append(asked)
        return {"executionArn": arn(asked["name"])}

    def describe_execution(self, *, executionArn: str) -> dict[str, Any]:  # noqa: N803
        return self.ends[executionArn.rpartition(":")[2].partition("_")[0]].pop(0)

    def get_execution_history(self, **_: Any) -> dict[str, Any]:
        name = self.entered.pop(0)
        return {"events": [{"type": "TaskScheduled"}, {"stateEnteredEventDetails": {"name": name}}]}


class FakeCloudFormation:
    """One stack, or none."""

    def __init__(self) -> None:
        self.stack: dict[str, Any] | None = {
            "StackStatus": "CREATE_COMPLETE",
            "Outputs": [
                {"OutputKey": image_cache.STATE_MACHINE_OUTPUT, "OutputValue": MACHINE},
                {"OutputKey": image_cache.BOTTLEROCKET_OUTPUT, "OutputValue": WANTED.bottlerocket},
            ],
        }

    def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803
        if StackName != "try-ImageCache" or self.stack is None:
            message = f"Stack with id {StackName} does not exist"
            raise ClientError({"Error": {"Code": "ValidationError", "Message": message}}, "DescribeStacks")
        return {"Stacks": [self.stack]}


def arn(name: str) -> str:
    return f"arn:aws:states:us-west-2:123456789012:execution:baker:{name}"


@pytest.fixture
def states() -> FakeStates:
    return FakeStates()


@pytest.fixture
def cloudformation() -> FakeCloudFormation:
    return FakeCloudFormation()


@pytest.fixture(autouse=True)
def _clients(
    account: Account,
    states: FakeStates,
    cloudformation: FakeCloudFormation,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clients = {"stepfunctions": states, "cloudformation": cloudformation}
    monkeypatch.setattr(account, "client", clients.__getitem__)


def baker(account: Account) -> Baker:
    return Baker(account, "try", blueprint="a.yaml")


def test_what_is_started_says_what_the_pool_needs(account: Account, states: FakeStates) -> None:
    states.ends["l40s"] = [DONE]
    said: list[str] = []
    assert list(baker(account).bake([WANTED], said.append)) == [Baked("l40s", "snap-0a1b2c3d")]
    [started] = states.started
    assert started["stateMachineArn"] == MACHINE
    assert json.loads(started["input"]) == {
        "pool": "l40s",
        "architecture": "amd64",
        "images": ["nvcr.io/nvidia/engine:1.6.1"],
        "imagesDigest": WANTED.images_digest,
        "sizeGib": 200,
    }
    assert said == ["l40s: baking nvcr.io/nvidia/engine:1.6.1"]


def test_its_name_can_be_the_token_of_its_instance(account: Account, states: FakeStates) -> None:
    longest = replace(WANTED, pool="p" * 40)
    states.ends[longest.pool] = [DONE]
    list(baker(account).bake([longest], lambda _: None))
    assert len(states.started[0]["name"]) <= 64


def test_steps_are_told_once_each(account: Account, states: FakeStates) -> None:
    states.ends["l40s"] = [RUNNING, RUNNING, RUNNING, RUNNING, DONE]
    states.entered = ["StartInstance", "WaitForImages", "AreImagesThere", "WaitForImages"]
    said: list[str] = []
    list(baker(account).bake([WANTED], said.append))
    assert said[1:] == ["l40s: starting an instance", "l40s: pulling the images"]


def test_every_step_is_a_state_of_the_machine() -> None:
    definition = baking_definition(BakingResources({}, "pull", {}, {}))
    assert STEPS.keys() <= definition["States"].keys()


def test_pools_are_baked_at_once_and_one_s_failure_is_its_own(account: Account, states: FakeStates) -> None:
    other = replace(WANTED, pool="quad")
    failed = {"status": "FAILED", "error": "NotBaked", "cause": "the images were not pulled"}
    states.ends = {"l40s": [RUNNING, failed], "quad": [RUNNING, RUNNING, DONE]}
    states.entered = ["PullImages"] * 3
    baked = list(baker(account).bake([WANTED, other], lambda _: None))
    assert len(states.started) == 2
    assert baked == [Baked("l40s", None, "the images were not pulled"), Baked("quad", "snap-0a1b2c3d")]


@pytest.mark.parametrize("status", ["ABORTED", "TIMED_OUT"])
def test_an_end_from_outside_may_leave_an_instance(account: Account, states: FakeStates, status: str) -> None:
    states.ends["l40s"] = [{"status": status}]
    [baked] = baker(account).bake([WANTED], lambda _: None)
    assert baked.snapshot_id is None
    assert "its instance may still run" in baked.failure
    assert f"({status})" in baked.failure


def test_what_is_baked_already_is_followed(account: Account, states: FakeStates) -> None:
    states.ends["l40s"] = [DONE, DONE]
    list(baker(account).bake([WANTED], lambda _: None))
    states.under_way = ["l40s_0123456789ab_1", states.started[0]["name"]]
    said: list[str] = []
    list(baker(account).bake([WANTED], said.append))
    assert (len(states.started), said) == (1, ["l40s: a bake is already running"])


@pytest.mark.parametrize("change", [{"images": ("nvcr.io/nvidia/engine:2.0",)}, {"size_gib": 300}])
def test_what_is_baked_otherwise_is_not(account: Account, states: FakeStates, change: dict[str, Any]) -> None:
    states.ends["l40s"] = [DONE, DONE]
    list(baker(account).bake([WANTED], lambda _: None))
    states.under_way = [states.started[0]["name"]]
    list(baker(account).bake([replace(WANTED, **change)], lambda _: None))
    assert len(states.started) == 2


def test_without_the_stack_there_is_nothing_to_bake_with(
    account: Account, cloudformation: FakeCloudFormation
) -> None:
    cloudformation.stack = None
    with pytest.raises(
        UserError, match=r"the stack try-ImageCache, .* run `blueprints deploy a\.yaml` first"
    ):
        baker(account)


def test_a_stack_that_failed_cannot_bake(account: Account, cloudformation: FakeCloudFormation) -> None:
    cloudformation.stack = {"StackStatus": "ROLLBACK_COMPLETE"}
    with pytest.raises(UserError, match=r"try-ImageCache is ROLLBACK_COMPLETE and cannot bake"):
        baker(account)


def test_another_bottlerocket_is_deployed_first(account: Account, states: FakeStates) -> None:
    other = replace(WANTED, bottlerocket="aws-k8s-1.36/v1.66.0")
    with pytest.raises(
        UserError, match=r"bakes with Bottlerocket aws-k8s-1.35/v1.66.0, the nodes have aws-k8s-1"
    ):
        list(baker(account).bake([WANTED, other], lambda _: None))
    assert states.started == []


def test_a_pool_that_runs_nothing_has_no_image(account: Account, states: FakeStates) -> None:
    with pytest.raises(UserError, match="pool 'l40s' has no workers"):
        list(baker(account).bake([replace(WANTED, images=())], lambda _: None))
    assert states.started == []


def document(**fields: Any) -> str:
    loaded = yaml.safe_load((blueprints_directory() / "quickstart-g6e.yaml").read_text())
    loaded["spec"]["pools"][0].update(fields)
    return yaml.safe_dump(loaded)


def test_what_is_wanted_is_what_the_plan_says() -> None:
    text = document(imageAcceleration={"ebsSnapshot": {"id": "snap-0a1b2c3d"}}, disk={"sizeGib": 300})
    blueprint = parse_blueprint(text, "a.yaml").blueprint
    [wanted] = wanted_snapshots(blueprint, build_plan(blueprint), ["l40s"])
    assert (wanted.pool, wanted.named, wanted.architecture) == ("l40s", "snap-0a1b2c3d", "amd64")
    assert wanted.size_gib == 300
    assert [image.partition(":")[0] for image in wanted.images] == ["nvcr.io/nvidia/ai-dynamo/vllm-runtime"]
    assert wanted.bottlerocket == f"aws-k8s-1.35/{blueprint.releases.bottlerocket}"


def test_a_pool_that_a_lock_holds_needs_what_its_nodes_boot() -> None:
    blueprint = parse_blueprint(document(imageAcceleration={"ebsSnapshot": {}}), "a.yaml").blueprint
    held = {"l40s": NodeImage("1.34", "v1.60.0", "v20261119")}
    blueprint = blueprint.with_releases(replace(blueprint.releases, held_pools=held))
    [wanted] = wanted_snapshots(blueprint, build_plan(blueprint))
    assert wanted.bottlerocket == "aws-k8s-1.34/v1.60.0"


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ("l40", "got 'l40', the only pool is 'l40s'; did you mean 'l40s'?"),
        (
            "l40s",
            "pool 'l40s' has no `ebsSnapshot`; add `imageAcceleration: {ebsSnapshot: {}}` to it",
        ),
    ],
)
def test_a_pool_that_asks_for_none_is_told(pool: str, message: str) -> None:
    blueprint = load_blueprint("quickstart-g6e").blueprint
    assert wanted_snapshots(blueprint, build_plan(blueprint)) == []
    with pytest.raises(UserError) as raised:
        wanted_snapshots(blueprint, build_plan(blueprint), [pool])
    assert str(raised.value).startswith(message)
