"""Why tasks of a service on Amazon ECS have no host, in the words of AWS.

ECS says nothing for 10 to 30 minutes: a task of a capacity provider waits in PROVISIONING meanwhile
(aws/containers-roadmap#2381), and CloudFormation waits for the service (as in
aws-samples/cost-effective-aws-deployment-of-comfyui#39). The group's activities have EC2's reason at once.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError

from inference_blueprints.operate.aws.account import Account, describe_error
from inference_blueprints.operate.cloudformation.stack_events import advice
from inference_blueprints.operate.ecs_cluster import EcsObject, cluster_exists, hosts, services

#: Beginnings of the names of Fargate's capacity providers, which have no hosts of the account.
_FARGATE: Final = "FARGATE"
#: Words of events about a task that does not start, and of the event after which older ones are no longer
#: true (Amazon ECS Developer Guide, "Service event messages").
_FAILURES: Final = ("was unable to", "is unable to", "failed to launch a task")
_STEADY: Final = "has reached a steady state"
#: Tasks of each kind that are read: half of what a call describes (API Reference, DescribeTasks).
_TASKS: Final = 50
#: Newest activities of a group that are read. It tries again and again, and each attempt is one.
_ACTIVITIES: Final = 20
#: Time after which a task without a host, or a host that did not join, is a reason by itself, in seconds. A
#: host pulls its images before it joins.
_WAITS_SECONDS: Final = 120.0
_JOINS_SECONDS: Final = 900.0
#: Parts of a reason that are not the same each time: minutes, counts, identifiers of tasks and hosts.
_CHANGES: Final = re.compile(r"\b\d+\b|\b[0-9a-f]{32}\b|\bi-[0-9a-f]+\b")
#: Time between two questions of a deployment, in seconds.
_POLL_SECONDS: Final = 20.0


def problem_of(service: EcsObject) -> str:
    """Return what is wrong with a service; empty if nothing is.

    service: As ECS describes it.
    """
    primary = next((each for each in service["deployments"] if each["status"] == "PRIMARY"), None)
    state = primary.get("rolloutState", "COMPLETED") if primary else "COMPLETED"
    if state == "FAILED":
        return "its deployment failed"
    if service["runningCount"] < service["desiredCount"]:
        return f"{service['runningCount']} of {service['desiredCount']} tasks run"
    return "" if state == "COMPLETED" else "its deployment is not completed"


def reasons_of(account: Account, cluster: str, service: EcsObject) -> list[str]:
    """Return why tasks of a service have no host, or do not start. Empty if AWS says nothing.

    service: As ECS describes it, with a problem.
    """
    tasks = _tasks(account, cluster, str(service["serviceName"]))
    failed = [each for each in tasks if each.get("stopCode") == "TaskFailedToStart"]
    live = [each for each in tasks if each.get("desiredStatus") != "STOPPED"]
    waiting = [each for each in live if each["lastStatus"] == "PROVISIONING"]
    found: list[str] = []
    if waiting or len(live) < min(service["desiredCount"], _TASKS):
        found += _of_capacity(account, cluster, service, waiting)
    found += [f"a task did not start: {each.get('stoppedReason', 'ECS gives no reason')}" for each in failed]
    found += _of_events(service.get("events", []))
    return list(dict.fromkeys(found))


def _of_capacity(
    account: Account, cluster: str, service: EcsObject, waiting: Sequence[EcsObject]
) -> Iterator[str]:
    """Yield why the capacity providers of a service have no host for its tasks."""
    names = [
        str(each["capacityProvider"])
        for each in service.get("capacityProviderStrategy") or []
        if not each["capacityProvider"].startswith(_FARGATE)
    ]
    if not names:
        return
    joined = hosts(account, cluster)
    groups = _groups(account, names)
    starting: list[str] = []
    for group in groups:
        yield from _failed_launches(account, str(group["AutoScalingGroupName"]))
        present = [str(each["InstanceId"]) for each in group["Instances"]]
        known = {each.get("ec2InstanceId") for each in joined}
        missing = [each for each in present if each not in known]
        starting += missing
        yield from _lost(account, missing)
        if waiting and present and not missing and len(present) >= group["MaxSize"]:
            name = group["AutoScalingGroupName"]
            yield f"{name} has its {group['MaxSize']} hosts, the nodes.max of its pool, and they are full"
    longest = max((_seconds_since(each["createdAt"]) for each in waiting), default=0.0)
    if longest > _WAITS_SECONDS:
        of_providers = sum(each.get("capacityProviderName") in names for each in joined)
        state = f"{of_providers} hosts of {', '.join(names)} are in the cluster"
        if groups:
            state += f", {len(starting)} start and pull their images before they join"
        yield f"{len(waiting)} tasks wait for a host, the first for {longest / 60:.0f} minutes; {state}"


def _groups(account: Account, providers: Sequence[str]) -> list[EcsObject]:
    """Return the Auto Scaling groups of capacity providers. Managed Instances have none."""
    if not providers:
        return []
    described = account.client("ecs").describe_capacity_providers(capacityProviders=list(providers))
    names = [
        each["autoScalingGroupProvider"]["autoScalingGroupArn"].rpartition("autoScalingGroupName/")[2]
        for each in described["capacityProviders"]
        if "autoScalingGroupProvider" in each
    ]
    if not names:
        return []
    client = account.client("autoscaling")
    return list(client.describe_auto_scaling_groups(AutoScalingGroupNames=names)["AutoScalingGroups"])


def _failed_launches(account: Account, group: str) -> Iterator[str]:
    """Yield why a group started no host since the last one that it started.

    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_Activity.html: the newest activity comes
    first, and `StatusMessage` is EC2's answer.
    """
    activities = account.client("autoscaling").describe_scaling_activities(
        AutoScalingGroupName=group, MaxRecords=_ACTIVITIES
    )["Activities"]
    for activity in activities:
        if not activity.get("Description", "").startswith("Launching"):
            continue
        if activity["StatusCode"] == "Successful":
            return
        if activity["StatusCode"] in ("Failed", "Cancelled"):
            words = activity.get("StatusMessage") or activity["Description"]
            yield f"EC2 starts no host for {group}: {words}"


def _lost(account: Account, instances: Sequence[str]) -> Iterator[str]:
    """Yield hosts that had time to join the cluster, and did not."""
    for instance, seconds in _ages(account, instances):
        if seconds > _JOINS_SECONDS:
            yield (
                f"host {instance} runs for {seconds / 60:.0f} minutes and did not join the cluster; "
                f"`aws ec2 get-console-output --latest --instance-id {instance} --output text` shows why"
            )


def _ages(account: Account, instances: Sequence[str]) -> Iterator[tuple[str, float]]:
    """Yield hosts with the seconds since their start. A filter leaves out hosts that have ended since."""
    if not instances:
        return
    answer = account.client("ec2").describe_instances(
        Filters=[{"Name": "instance-id", "Values": list(instances)}]
    )
    for reservation in answer["Reservations"]:
        for instance in reservation["Instances"]:
            yield str(instance["InstanceId"]), _seconds_since(instance["LaunchTime"])


def _tasks(account: Account, cluster: str, service: str) -> list[EcsObject]:
    """Return tasks of a service, those that stopped within the last hour among them.

    One page of each is enough: tasks of a service wait, or fail, for the same reason.
    """
    client = account.client("ecs")
    arns = [
        arn
        for wanted in ("RUNNING", "STOPPED")
        for arn in client.list_tasks(
            cluster=cluster, serviceName=service, desiredStatus=wanted, maxResults=_TASKS
        )["taskArns"]
    ]
    if not arns:
        return []
    described: list[EcsObject] = client.describe_tasks(cluster=cluster, tasks=list(dict.fromkeys(arns)))[
        "tasks"
    ]
    return described


def _of_events(events: Sequence[Any]) -> Iterator[str]:
    """Yield events about tasks without a place, the newest first, since the service was steady."""
    for event in events:
        message = str(event["message"])
        if _STEADY in message:
            return
        if any(words in message for words in _FAILURES):
            yield message


def _seconds_since(moment: datetime) -> float:
    return (datetime.now(UTC) - moment).total_seconds()


class WatchedServices:
    """Says why services have no hosts while CloudFormation waits for them. A context manager.

    account: Account and region. Only read.
    cluster: Name of the cluster, which may not exist yet.
    name_or_path: The blueprint, for commands in messages.
    say: Called with each line for the user, from a thread of its own.
    """

    def __init__(self, account: Account, cluster: str, name_or_path: str, say: Callable[[str], None]) -> None:
        self._account = account
        self._cluster = cluster
        self._name = name_or_path
        self._say = say
        self._said: set[str] = set()
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="ecs-reasons", daemon=True)

    def __enter__(self) -> WatchedServices:
        # boto3 creates clients only in one thread at a time.
        for service in ("ecs", "autoscaling", "ec2"):
            self._account.client(service)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def look(self) -> None:
        """Ask once, and say what was not said before."""
        if not cluster_exists(self._account, self._cluster):
            return
        for service in services(self._account, self._cluster):
            problem = problem_of(service)
            for reason in reasons_of(self._account, self._cluster, service) if problem else ():
                self._tell(f"{service['serviceName']}: {problem}", reason)

    def _tell(self, what: str, reason: str) -> None:
        # A reason with a time, or about another task or host, is the same one.
        key = f"{what.partition(':')[0]}: {_CHANGES.sub('', reason)}"
        if key in self._said:
            return
        self._said.add(key)
        self._say(f"{what}: {reason}")
        if todo := advice(reason, self._name):
            self._say(f"what to do: {todo}")

    def _run(self) -> None:
        while not self._ends.wait(_POLL_SECONDS):
            try:
                self.look()
            except (BotoCoreError, ClientError) as error:
                self._tell("services", f"could not be asked: {describe_error(error)}")
