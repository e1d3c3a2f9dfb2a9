"""A cluster of the emulator with hosts of one pool, through boto3."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from inference_local.emulator.emulator import Emulator

IMAGE = "registry.example/engine"
CLUSTER = "platform"
POOL = "pool-gpu"
HOST_TYPE = "g6e.12xlarge"  # four GPUs
PATIENCE_SECONDS = 120.0


def eventually(happened: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (result := happened()):
        assert time.monotonic() < deadline, f"no {what} in time"
        time.sleep(0.1)
    return result


class RunningCluster:
    """Makes task definitions and services, and looks at them."""

    def __init__(self, emulator: Emulator) -> None:
        self.emulator = emulator
        self.ecs = emulator.client("ecs")
        self.directory = emulator.tasks_directory
        self.ecs.create_cluster(clusterName=CLUSTER)
        emulator.client("ec2").create_launch_template(
            LaunchTemplateName="gpu", LaunchTemplateData={"InstanceType": HOST_TYPE}
        )
        self._providers = ["FARGATE"]
        self.add_pool("gpu", hosts=3)

    def add_pool(self, group: str, *, hosts: int) -> str:
        """Add a group of hosts with a capacity provider, and return the provider's name."""
        groups = self.emulator.client("autoscaling")
        groups.create_auto_scaling_group(
            AutoScalingGroupName=group, MinSize=0, MaxSize=hosts, AvailabilityZones=["us-west-2a"],
            LaunchTemplate={"LaunchTemplateName": "gpu", "Version": "$Latest"},
        )  # fmt: skip
        found = groups.describe_auto_scaling_groups(AutoScalingGroupNames=[group])["AutoScalingGroups"]
        provider = {
            "autoScalingGroupArn": found[0]["AutoScalingGroupARN"],
            "managedScaling": {"status": "ENABLED"},
        }
        name = f"pool-{group}"
        self.ecs.create_capacity_provider(name=name, autoScalingGroupProvider=provider)
        self._providers.insert(0, name)
        self.ecs.put_cluster_capacity_providers(
            cluster=CLUSTER, capacityProviders=self._providers, defaultCapacityProviderStrategy=[]
        )
        return name

    def register(self, family: str, program: str, *, image: str = IMAGE, **keys: Any) -> str:
        """Register a task definition whose container runs a Python program."""
        container = {
            "name": "main",
            "image": f"{image}:1",
            "memory": 1024,
            "command": [sys.executable, "-u", "-c", program],
            **keys,
        }
        answer = self.ecs.register_task_definition(
            family=family,
            networkMode="host",
            requiresCompatibilities=["EC2"],
            executionRoleArn="arn:aws:iam::000000000000:role/execution",
            containerDefinitions=[container],
        )
        return str(answer["taskDefinition"]["taskDefinitionArn"])

    def create(self, name: str, task_definition: str, desired: int = 1, **keys: Any) -> None:
        self.ecs.create_service(
            cluster=CLUSTER,
            serviceName=name,
            taskDefinition=task_definition,
            desiredCount=desired,
            **{"capacityProviderStrategy": [{"capacityProvider": POOL, "weight": 1}], **keys},
        )

    def service(self, name: str) -> dict[str, Any]:
        return dict(self.ecs.describe_services(cluster=CLUSTER, services=[name])["services"][0])

    def tasks(self, name: str, status: str = "RUNNING") -> list[dict[str, Any]]:
        arns = self.ecs.list_tasks(cluster=CLUSTER, serviceName=name, desiredStatus=status)["taskArns"]
        return list(self.ecs.describe_tasks(cluster=CLUSTER, tasks=arns)["tasks"]) if arns else []

    def running(self, name: str, number: int) -> list[dict[str, Any]]:
        """Wait until a number of tasks run."""

        def look() -> list[dict[str, Any]]:
            found = [task for task in self.tasks(name) if task["lastStatus"] == "RUNNING"]
            return found if len(found) == number else []

        return list(eventually(look, f"{number} running tasks of {name}: {self.service(name)['events'][:3]}"))

    def steady(self, name: str) -> dict[str, Any]:
        """Wait until a service has one deployment, which is completed."""

        def look() -> dict[str, Any] | None:
            service = self.service(name)
            states = [each["rolloutState"] for each in service["deployments"]]
            return service if states == ["COMPLETED"] else None

        return dict(eventually(look, f"steady service {name}"))

    def delete(self, name: str) -> None:
        """Delete a service and wait until its tasks have ended."""
        self.ecs.delete_service(cluster=CLUSTER, service=name, force=True)
        eventually(
            lambda: not self.ecs.describe_services(cluster=CLUSTER, services=[name])["services"], "end"
        )

    def processes(self, task: dict[str, Any]) -> dict[str, int]:
        return dict(self.emulator.task_fault("Processes", task=identifier(task["taskArn"]))["processes"])

    def log(self, task: dict[str, Any], container: str = "main") -> str:
        family = task["taskDefinitionArn"].rpartition("/")[2].partition(":")[0]
        path: Path = self.directory / "logs" / f"{family}-{identifier(task['taskArn'])[:8]}-{container}.log"
        return path.read_text() if path.exists() else ""


def identifier(arn: str) -> str:
    return arn.rpartition("/")[2]
