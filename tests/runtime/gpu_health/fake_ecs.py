"""Amazon ECS, Auto Scaling and EC2 in the process, as far as GPU health asks them, beside a fake CloudWatch.

Requests and answers are held against the models of botocore. Hosts drain, and groups replace what they
terminate, as the documents say that the modules under test name. A host has room for one worker.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from botocore.client import BaseClient
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from inference_contracts.ecs_names import POOL_ATTRIBUTE
from inference_contracts.task_tags import LABEL_TAGS
from tests.runtime.gpu_health.fake_cluster import FakeCluster
from tests.runtime.gpu_health.world import HealthWorld

Json = dict[str, Any]

_ARN = "arn:aws:ecs:us-west-2:123456789012"
CLUSTER, POOL, GROUP, SERVICE = "chat", "h200", "group-h200", "main-worker"


@dataclass
class Host:
    """A container instance, and its EC2 instance."""

    name: str
    registered_at: float
    status: str = "ACTIVE"
    connected: bool = True
    gpus: int = 8
    attributes: dict[str, str] = field(default_factory=dict)
    provider: str = "pool-chat-h200"
    network: tuple[str, ...] = ("nn-1", "nn-2", "nn-3")
    """Layers of network nodes above its instance. None for a type without a topology."""
    checks: list[Json] = field(default_factory=list)
    instance: Json = field(default_factory=dict)

    @property
    def arn(self) -> str:
        return f"{_ARN}:container-instance/{CLUSTER}/uid-{self.name}"

    def described(self) -> Json:
        attributes = {"ecs.instance-type": "p5en.48xlarge", **self.attributes}
        return {
            "containerInstanceArn": self.arn,
            "ec2InstanceId": self.name,
            "capacityProviderName": self.provider,
            "status": self.status,
            "agentConnected": self.connected,
            "registeredAt": datetime.fromtimestamp(self.registered_at, UTC),
            "registeredResources": [
                {"name": "GPU", "type": "STRINGSET", "stringSetValue": [f"GPU-{n}" for n in range(self.gpus)]}
            ]
            if self.gpus
            else [],
            "attributes": [{"name": name, "value": value} for name, value in attributes.items()],
            "healthStatus": {"overallStatus": "OK", "details": self.checks},
        }


class FakeEcs(FakeCluster):
    """A cluster with one service of workers. Its tasks are `pods`, whose samples `report` writes."""

    def __init__(self) -> None:
        super().__init__()
        self.hosts: dict[str, Host] = {}
        self.group: set[str] = set()
        self.desired = 0
        self.wanted = 0
        #: Number of calls, by operation.
        self.asked: Counter[str] = Counter()
        #: Calls that changed something.
        self.changes: list[str] = []
        #: Whether tasks end as soon as their host drains, and whether a group starts another instance.
        self.tasks_end = self.starts = True
        #: Reason with which ECS refuses to drain.
        self.refuses = ""
        self.free_places = 0
        self.started = 0
        self.now = 0.0

    def add_host(self, host: Host, *, task: str = "") -> None:
        if host.provider == "pool-chat-h200":
            host.attributes.setdefault(POOL_ATTRIBUTE, POOL)
        self.hosts[host.name] = host
        self.samples.nodes[host.name] = {"gpus": float(host.gpus)}
        if task:
            self.pods[task] = {
                "host": host.arn,
                "health": "HEALTHY",
                "status": "RUNNING",
                "wanted": "RUNNING",
            }
            self.wanted = len(self.pods)

    def remove_host(self, name: str) -> None:
        """The instance is gone, with what ran on it."""
        host = self.hosts.pop(name)
        self.group.discard(name)
        self.samples.nodes.pop(name, None)
        self.pods = {key: task for key, task in self.pods.items() if task["host"] != host.arn}

    def end_tasks(self, host: Host) -> None:
        """The streams of a host's tasks have ended."""
        self.pods = {key: task for key, task in self.pods.items() if task["host"] != host.arn}

    def populate(self, now: float, *, hosts: int = 8) -> None:
        for number in range(hosts):
            self.add_host(Host(f"i-{number}", now - 86400), task=f"worker-{number}")
        self.group = set(self.hosts)
        self.desired = hosts

    def install(self, world: HealthWorld) -> None:
        """Answer for AWS."""
        plain = BaseClient._make_api_call
        answers = {
            "ListContainerInstances": self._list_hosts,
            "DescribeContainerInstances": self._describe_hosts,
            "ListTasks": self._list_tasks,
            "DescribeTasks": self._describe_tasks,
            "ListServices": self._list_services,
            "DescribeServices": self._describe_services,
            "UpdateContainerInstancesState": self._set_state,
            "PutAttributes": self._put_attributes,
            "DeleteAttributes": self._delete_attributes,
            "DescribeAutoScalingInstances": self._describe_group_members,
            "DescribeAutoScalingGroups": self._describe_groups,
            "TerminateInstanceInAutoScalingGroup": self._terminate,
            "DescribeInstances": self._describe_instances,
            "RebootInstances": self._reboot,
            "DescribeInstanceTopology": self._describe_topology,
            "DescribeCapacityReservations": self._describe_reservations,
        }

        def call(client: Any, operation: str, parameters: Json) -> Any:
            if operation not in answers:
                return plain(client, operation, parameters)
            if operation in world.failing:
                raise world.failing[operation]
            model = client.meta.service_model.operation_model(operation)
            _check(parameters, model.input_shape)
            self.now = world.now
            self.asked[operation] += 1
            answer = answers[operation](parameters)
            _check(answer, model.output_shape)
            if not operation.startswith(("Describe", "List")):
                self.changes.append(operation)
            world.calls.count(operation)
            if operation in world.lost:
                raise world.lost[operation]
            return answer

        world.patch.setattr(BaseClient, "_make_api_call", call)

    # --- Amazon ECS. ---

    def _list_hosts(self, asked: Json) -> Json:
        assert asked["cluster"] == CLUSTER
        subject, _, value = asked.get("filter", "").partition(" == ")
        assert subject in ("", "ec2InstanceId")
        found = [host.arn for host in self.hosts.values() if not value or host.name == value]
        first = int(asked.get("nextToken", 0))
        following = {"nextToken": str(first + 100)} if first + 100 < len(found) else {}
        return {"containerInstanceArns": found[first : first + 100], **following}

    def _describe_hosts(self, asked: Json) -> Json:
        assert asked["include"] == ["CONTAINER_INSTANCE_HEALTH"]
        found = [host for host in self.hosts.values() if host.arn in asked["containerInstances"]]
        return {"containerInstances": [host.described() for host in found], "failures": []}

    def _list_tasks(self, asked: Json) -> Json:
        found = [
            f"{_ARN}:task/{CLUSTER}/{name}"
            for name, task in self.pods.items()
            if task["wanted"] == asked["desiredStatus"]
            and task["host"].endswith(asked.get("containerInstance", ""))
        ]
        return {"taskArns": found}

    def _describe_tasks(self, asked: Json) -> Json:
        assert asked["include"] == ["TAGS"]
        labels = {"platform": "chat", "release": "main", "role": "worker", "pool": POOL}
        return {
            "tasks": [
                {
                    "taskArn": f"{_ARN}:task/{CLUSTER}/{name}",
                    "taskDefinitionArn": f"{_ARN}:task-definition/main-worker:7",
                    "containerInstanceArn": task["host"],
                    "lastStatus": task["status"],
                    "desiredStatus": task["wanted"],
                    "healthStatus": task["health"],
                    "tags": [{"key": LABEL_TAGS[label], "value": value} for label, value in labels.items()],
                }
                for name, task in self.pods.items()
                if f"{_ARN}:task/{CLUSTER}/{name}" in asked["tasks"]
            ],
            "failures": [],
        }

    def _list_services(self, asked: Json) -> Json:
        assert asked["cluster"] == CLUSTER
        return {"serviceArns": [f"{_ARN}:service/{CLUSTER}/{SERVICE}"]}

    def _describe_services(self, asked: Json) -> Json:
        assert asked["include"] == ["TAGS"]
        running = len(self.pods)
        return {
            "services": [
                {
                    "serviceName": SERVICE,
                    "status": "ACTIVE",
                    "desiredCount": self.wanted,
                    "runningCount": running,
                    "pendingCount": self.wanted - running,
                    "tags": [
                        {"key": LABEL_TAGS["role"], "value": "worker"},
                        {"key": LABEL_TAGS["pool"], "value": POOL},
                    ],
                }
            ],
            "failures": [],
        }

    def _set_state(self, asked: Json) -> Json:
        (host,) = (each for each in self.hosts.values() if each.arn.endswith(asked["containerInstances"][0]))
        if self.refuses:
            return {"containerInstances": [], "failures": [{"arn": host.arn, "reason": self.refuses}]}
        if asked["status"] == "DRAINING" and host.status != "ACTIVE":
            raise ClientError({"Error": {"Code": "InvalidParameterException", "Message": "not ACTIVE"}}, "x")
        host.status = asked["status"]
        if asked["status"] == "DRAINING" and self.tasks_end:
            self.end_tasks(host)
        return {"containerInstances": [host.described()], "failures": []}

    def _reboot(self, asked: Json) -> Json:
        """EC2 only queues the reboot, and refuses an instance that it does not know."""
        if missing := [each for each in asked["InstanceIds"] if each not in self.hosts]:
            error = {"Code": "InvalidInstanceID.NotFound", "Message": f"'{missing[0]}' does not exist"}
            raise ClientError({"Error": error}, "RebootInstances")
        return {}

    def _put_attributes(self, asked: Json) -> Json:
        (attribute,) = asked["attributes"]
        assert len(attribute["value"]) <= 128
        self._target(attribute).attributes[attribute["name"]] = attribute["value"]
        return {"attributes": asked["attributes"]}

    def _delete_attributes(self, asked: Json) -> Json:
        (attribute,) = asked["attributes"]
        self._target(attribute).attributes.pop(attribute["name"], None)
        return {"attributes": asked["attributes"]}

    def _target(self, attribute: dict[str, str]) -> Host:
        assert attribute["targetType"] == "container-instance"
        (host,) = (each for each in self.hosts.values() if each.arn.endswith(attribute["targetId"]))
        return host

    # --- EC2 Auto Scaling and EC2. ---

    def _describe_group_members(self, asked: Json) -> Json:
        found = [
            {
                "InstanceId": name,
                "AutoScalingGroupName": GROUP,
                "AvailabilityZone": "us-west-2a",
                "LifecycleState": "InService",
                "HealthStatus": "HEALTHY",
                "ProtectedFromScaleIn": True,
            }
            for name in asked["InstanceIds"]
            if name in self.group
        ]
        assert len(asked["InstanceIds"]) <= 50
        return {"AutoScalingInstances": found}

    def _describe_groups(self, asked: Json) -> Json:
        assert asked["AutoScalingGroupNames"] == [GROUP]
        group = {
            "AutoScalingGroupName": GROUP,
            "MinSize": 0,
            "MaxSize": 8,
            "DesiredCapacity": self.desired,
            "DefaultCooldown": 300,
            "AvailabilityZones": ["us-west-2a"],
            "HealthCheckType": "EC2",
            "CreatedTime": datetime.fromtimestamp(0, UTC),
            "Instances": [
                {
                    "InstanceId": name,
                    "AvailabilityZone": "us-west-2a",
                    "LifecycleState": "InService",
                    "HealthStatus": "Healthy",
                    "ProtectedFromScaleIn": True,
                }
                for name in sorted(self.group)
            ],
        }
        return {"AutoScalingGroups": [group]}

    def _terminate(self, asked: Json) -> Json:
        assert not asked["ShouldDecrementDesiredCapacity"]
        self.remove_host(asked["InstanceId"])
        if self.starts:
            self.start(self.now)
        return {}

    def start(self, now: float) -> str:
        """Start an instance of the group, on which the task that waits is placed."""
        self.started += 1
        name = f"i-new-{self.started}"
        self.add_host(Host(name, now + 1))
        self.group.add(name)
        if len(self.pods) < self.wanted:
            wanted = self.wanted
            self.add_host(self.hosts[name], task=f"worker-new-{self.started}")
            self.wanted = wanted
        return name

    def _describe_instances(self, asked: Json) -> Json:
        """A filter leaves out instances that are gone."""
        ((name, values),) = ((each["Name"], each["Values"]) for each in asked["Filters"])
        assert name == "instance-id"
        assert len(values) <= 200
        found = [{"InstanceId": each, **self.hosts[each].instance} for each in values if each in self.hosts]
        return {"Reservations": [{"Instances": found}]}

    def _describe_topology(self, asked: Json) -> Json:
        hosts = [self.hosts[name] for name in asked["InstanceIds"]]
        return {"Instances": [{"InstanceId": each.name, "NetworkNodes": [*each.network]} for each in hosts]}

    def _describe_reservations(self, asked: Json) -> Json:
        (name,) = asked["CapacityReservationIds"]
        place = {
            "CapacityReservationId": name,
            "State": "active",
            "AvailableInstanceCount": self.free_places,
        }
        return {"CapacityReservations": [place]}

    def draining(self) -> list[str]:
        return [name for name, host in self.hosts.items() if host.status == "DRAINING"]

    def terminations(self) -> int:
        return self.changes.count("TerminateInstanceInAutoScalingGroup")


def _check(value: Json, shape: Any) -> None:
    if shape is not None:
        report = ParamValidator().validate(value, shape)
        assert not report.has_errors(), report.generate_report()
