"""Why services on ECS have no hosts: what AWS said is said, in its words, once, and what is past is not."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError
from rich.console import Console

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes import deployment_steps
from inference_blueprints.operate.changes.platform_change import PlatformChange
from inference_blueprints.operate.ecs_reasons import WatchedServices, reasons_of
from tests.unit.operate.ecs.test_ecs_checks import Answers

GROUP = "try-Capacity-Group"
QUOTA = (
    "Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested more vCPU capacity than "
    "your current vCPU limit of 0 allows for the instance bucket that the specified instance type belongs "
    "to. Launching EC2 instance failed."
)
UNPLACED = (
    "(service worker) was unable to place a task because no container instance met all of its requirements. "
    "Reason: No Container Instances were found in your capacity provider."
)
Facts = dict[tuple[str, str], dict[str, Any]]


def ago(minutes: float) -> datetime:
    return datetime.now(UTC) - timedelta(minutes=minutes)


def waiting() -> Answers:
    """A service of which one task has waited for a host for four minutes. AWS has said nothing yet."""
    answers = Answers()
    service = answers.answers["ecs", "describe_services"]["services"][0]
    service.update(
        runningCount=1, capacityProviderStrategy=[{"capacityProvider": "pool-try-l40s"}], events=[]
    )
    arn = f"arn:aws:autoscaling:us-west-2:111122223333:autoScalingGroup:1:autoScalingGroupName/{GROUP}"
    group = {"AutoScalingGroupName": GROUP, "MaxSize": 2, "Instances": [{"InstanceId": "i-1"}]}
    task = {"taskArn": "a/t2", "lastStatus": "PROVISIONING", "createdAt": ago(4), "desiredStatus": "RUNNING"}
    host = answers.answers["ecs", "describe_container_instances"]["containerInstances"][0]
    host["capacityProviderName"] = "pool-try-l40s"
    answers.answers |= {
        ("ecs", "describe_capacity_providers"): {
            "capacityProviders": [{"autoScalingGroupProvider": {"autoScalingGroupArn": arn}}]
        },
        ("ecs", "describe_tasks"): {"tasks": [task]},
        ("autoscaling", "describe_auto_scaling_groups"): {"AutoScalingGroups": [group]},
        ("autoscaling", "describe_scaling_activities"): {"Activities": []},
        ("ec2", "describe_instances"): {"Reservations": []},
    }
    return answers


def found(answers: Answers) -> list[str]:
    [service] = answers.answers["ecs", "describe_services"]["services"]
    return reasons_of(cast("Account", answers), "try", service)


def attempt(status: str, words: str = "") -> dict[str, Any]:
    return {"Description": "Launching a new EC2 instance", "StatusCode": status, "StatusMessage": words}


def group(facts: Facts) -> dict[str, Any]:
    return cast(
        "dict[str, Any]", facts["autoscaling", "describe_auto_scaling_groups"]["AutoScalingGroups"][0]
    )


STATE = (
    "1 tasks wait for a host, the first for 4 minutes; 1 hosts of pool-try-l40s are in the cluster, 0 start"
)
CASES: dict[str, tuple[tuple[str, ...], Callable[[Facts], object]]] = {
    "nothing is said": ((STATE,), lambda _: None),
    "EC2 refuses": (
        (f"EC2 starts no host for {GROUP}: {QUOTA}", STATE),
        # The group tries again and again, for the same reason.
        lambda facts: facts["autoscaling", "describe_scaling_activities"].update(
            Activities=[attempt("Failed", QUOTA), attempt("Failed", QUOTA)]
        ),
    ),
    "EC2 refused once": (
        (STATE,),
        lambda facts: facts["autoscaling", "describe_scaling_activities"].update(
            Activities=[attempt("Successful"), attempt("Failed", QUOTA)]
        ),
    ),
    "the group is full": (
        (f"{GROUP} has its 1 hosts, the nodes.max of its pool, and they are full", STATE),
        lambda facts: group(facts).update(MaxSize=1),
    ),
    "a host did not join": (
        ("host i-2 runs for 40 minutes and did not join the cluster; `aws ec2 get-console-output", "1 tasks"),
        lambda facts: (
            group(facts)["Instances"].append({"InstanceId": "i-2"}),
            facts["ec2", "describe_instances"].update(
                Reservations=[{"Instances": [{"InstanceId": "i-2", "LaunchTime": ago(40)}]}]
            ),
        ),
    ),
    "a task did not start": (
        (STATE, "a task did not start: TaskFailedToStart: RESOURCE:GPU"),
        lambda facts: facts["ecs", "describe_tasks"]["tasks"].append(
            {
                "taskArn": "a/t3",
                "lastStatus": "STOPPED",
                "desiredStatus": "STOPPED",
                "stopCode": "TaskFailedToStart",
                "stoppedReason": "TaskFailedToStart: RESOURCE:GPU",
            }
        ),
    ),
    "ECS says why": (
        (STATE, UNPLACED),
        lambda facts: facts["ecs", "describe_services"]["services"][0]["events"].append(
            {"message": UNPLACED}
        ),
    ),
    "ECS said why before the service was steady": (
        (STATE,),
        lambda facts: facts["ecs", "describe_services"]["services"][0]["events"].extend(
            [{"message": "(service worker) has reached a steady state."}, {"message": UNPLACED}]
        ),
    ),
    "the task has a host and loads its model": (
        (),
        lambda facts: facts["ecs", "describe_tasks"].update(
            tasks=[{"taskArn": f"a/t{each}", "lastStatus": "RUNNING"} for each in range(2)]
        ),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_reason_is_said(name: str) -> None:
    """It turns red if a reason of AWS is not said, or one that is past still is."""
    expected, change = CASES[name]
    answers = waiting()
    change(answers.answers)
    said = found(answers)
    assert len(said) == len(expected), said
    assert all(each.startswith(words) for each, words in zip(said, expected, strict=True)), said


def watched(answers: Answers, lines: list[str]) -> WatchedServices:
    return WatchedServices(cast("Account", answers), "try", "try.yaml", lines.append)


def test_a_deployment_says_a_reason_once_with_what_to_do() -> None:
    """It turns red if each question repeats what was said, or a user is not told what to do."""
    answers, lines = waiting(), cast("list[str]", [])
    answers.answers["autoscaling", "describe_scaling_activities"] = {"Activities": [attempt("Failed", QUOTA)]}
    watch = watched(answers, lines)
    watch.look()
    answers.answers["ecs", "describe_tasks"]["tasks"][0]["createdAt"] = ago(9)
    watch.look()
    assert [line.partition(": ")[0] for line in lines] == ["worker", "what to do", "worker"]
    assert QUOTA in lines[0]
    assert "`blueprints doctor try.yaml`" in lines[1]


def test_a_deployment_goes_on_if_aws_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It turns red if a refused question ends the deployment, or is repeated for hours."""
    lines: list[str] = []
    watch = watched(waiting(), lines)
    refused = ClientError({"Error": {"Code": "AccessDenied", "Message": "not allowed"}}, "DescribeServices")
    asked = iter([False, False, True])

    def look() -> None:
        raise refused

    monkeypatch.setattr(watch, "look", look)
    monkeypatch.setattr(watch._ends, "wait", lambda _: next(asked))
    watch._run()
    assert [line.partition(":")[0] for line in lines] == ["services", "what to do"]


@pytest.mark.parametrize(("kind", "watched_for"), [("AWS::ECS::Cluster", ["try"]), ("AWS::EKS::Cluster", [])])
def test_deploy_watches_only_platforms_on_ecs(
    monkeypatch: pytest.MonkeyPatch, kind: str, watched_for: list[str]
) -> None:
    """It turns red if `deploy` does not watch services, or asks ECS about a platform on EKS."""
    seen: list[str] = []
    settled: list[bool] = []

    class Watch:
        def __init__(self, _: Account, cluster: str, *__: object) -> None:
            seen.append(cluster)

        def __enter__(self) -> None:
            """Watch nothing."""

        def __exit__(self, *_: object) -> None:
            """End."""

    account = cast("Account", SimpleNamespace(client=lambda _: None))
    change = PlatformChange(account, {}, {}, {"try-Cluster": {"Resources": {"Cluster": {"Type": kind}}}})
    monkeypatch.setattr(deployment_steps, "WatchedServices", Watch)
    monkeypatch.setattr(deployment_steps, "settle", lambda *_: settled.append(True))
    monkeypatch.setattr(deployment_steps, "synthesise_for_deploy", lambda *_: Path("cdk.out"))
    monkeypatch.setattr(deployment_steps, "read_change", lambda *_, **__: change)
    monkeypatch.setattr(deployment_steps, "check_change", lambda _: [])
    monkeypatch.setattr(deployment_steps, "deploy_assembly", lambda *_: None)
    deployment_steps.deploy_in_steps("try.yaml", "try", account, [], Console())
    assert seen == watched_for
    assert settled, "CloudFormation may still change what a killed deployment has begun"
