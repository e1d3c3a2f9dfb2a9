"""GPU health and the floors of the capacity shift against the stand-ins for ECS, Auto Scaling and its floors.

The function of GPU health runs in this process. Its PromQL gets the GPUs that exporters would list.
"""

from __future__ import annotations

import base64
import json
import os
import re
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

import boto3
import pytest
from capacity_shift.cluster_numbers import LiveWorkers
from capacity_shift.ecs_numbers import EcsNumbers

from gpu_health import minute
from gpu_health.health_platform import health_platform
from gpu_health.health_run import begin
from inference_catalog.gpu_faults import gpu_faults_file
from inference_contracts import health_names, operations_names
from inference_contracts.ecs_names import POOL_ATTRIBUTE, capacity_provider
from inference_contracts.shift_names import ShiftedWorkers
from inference_contracts.task_tags import LABEL_TAGS
from inference_decisions.repairs.repair_case import Evidence
from inference_local.controllers.controller_outcomes import OperationsRecords
from operations import aws_clients
from tests.local.ecs.running_cluster import CLUSTER, HOST_TYPE, POOL, RunningCluster, eventually, identifier
from tests.local.ecs.test_running_tasks import WAITS
from tests.runtime.gpu_health.world import PARAMETER, QUIET, TABLE, create_table
from tests.runtime.operations.fresh_process import begin_anew

_POOL, _GPUS, _MINUTE = "l40s", 4, 60.0
_SERVICE = "controlled"
_HOST = re.compile(r"i-[0-9a-f]+")


class Exporters:
    """Answers PromQL with four GPUs of each host that is asked for, and three of the broken one."""

    def __init__(self) -> None:
        self.broken = ""
        exporters = self

        class _QueryHandler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
                result = exporters.answer(form["query"][0], form["time"][0])
                body = json.dumps({"status": "success", "data": {"result": result}}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Write no line per request."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), _QueryHandler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, query: str, at: str) -> list[dict[str, Any]]:
        return [
            {
                "metric": {"node": host, "what": "gpus"},
                "value": [float(at), str(_GPUS - (host == self.broken))],
            }
            for host in sorted(set(_HOST.findall(query)))
        ]


class FastClock:
    """A clock that a test moves on."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self._real = time.time

    def __call__(self) -> float:
        return self._real() + self.ahead


@pytest.fixture
def exporters() -> Iterator[Exporters]:
    made = Exporters()
    yield made
    made.server.shutdown()
    made.server.server_close()


@pytest.fixture
def clock(
    cluster: RunningCluster, exporters: Exporters, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FastClock]:
    """The clock of the function, whose environment is that of the emulator."""
    begin_anew(monkeypatch, {**cluster.emulator.environment(), **QUIET})
    create_table()
    boto3.client("ssm").put_parameter(Name=PARAMETER, Value="none", Type="String")
    settings = {
        "action": "replace",
        "repairedBy": {_POOL: "gpuHealth"},
        "maxUnhealthyPercent": 50,
        "replacementsPerHour": 4,
        "slowGpus": False,
        "accelerators": {HOST_TYPE: _GPUS},
    }
    environment = {
        operations_names.PLATFORM: CLUSTER,
        operations_names.CELL: operations_names.MAIN_CELL,
        operations_names.TABLE: TABLE,
        operations_names.FREEZE_PARAMETER: PARAMETER,
        operations_names.TOPIC_ARN: boto3.client("sns").create_topic(Name="operations")["TopicArn"],
        operations_names.ECS_CLUSTER: CLUSTER,
        operations_names.METRICS_ENDPOINT: f"http://127.0.0.1:{exporters.server.server_port}",
        health_names.HEALTH_SETTINGS: json.dumps(settings),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("gpu_health.health_platform._faults", lambda: gpu_faults_file().read_text("utf-8"))
    made = FastClock()
    monkeypatch.setattr(time, "time", made)
    health_platform.cache_clear()
    yield made
    boto3.client("dynamodb").delete_table(TableName=TABLE)
    boto3.client("ssm").delete_parameter(Name=PARAMETER)
    for cached in (aws_clients.client, aws_clients.resource, health_platform):
        cached.cache_clear()


def workers_with_a_pool(cluster: RunningCluster, pool: str = _POOL, service: str = _SERVICE) -> None:
    """Make a pool whose hosts say its name, and a service of workers on it."""
    provider = capacity_provider(CLUSTER, pool)
    attributes = json.dumps({POOL_ATTRIBUTE: pool})
    user_data = base64.b64encode(f"ECS_INSTANCE_ATTRIBUTES={attributes}\n".encode()).decode()
    cluster.emulator.client("ec2").create_launch_template(
        LaunchTemplateName=pool, LaunchTemplateData={"InstanceType": HOST_TYPE, "UserData": user_data}
    )
    groups = cluster.emulator.client("autoscaling")
    groups.create_auto_scaling_group(
        AutoScalingGroupName=pool, MinSize=0, MaxSize=4, AvailabilityZones=["us-west-2a"],
        LaunchTemplate={"LaunchTemplateName": pool, "Version": "$Latest"},
    )  # fmt: skip
    [group] = groups.describe_auto_scaling_groups(AutoScalingGroupNames=[pool])["AutoScalingGroups"]
    cluster.ecs.create_capacity_provider(
        name=provider,
        autoScalingGroupProvider={
            "autoScalingGroupArn": group["AutoScalingGroupARN"],
            "managedScaling": {"status": "ENABLED"},
        },
    )
    cluster.ecs.put_cluster_capacity_providers(
        cluster=CLUSTER, capacityProviders=[POOL, provider, "FARGATE"], defaultCapacityProviderStrategy=[]
    )
    labels = {"platform": CLUSTER, "release": "main", "role": "worker", "pool": pool}
    check = {"command": ["CMD-SHELL", "exit 0"], "interval": 5, "retries": 3}
    cluster.ecs.create_service(
        cluster=CLUSTER,
        serviceName=service,
        taskDefinition=cluster.register(
            service, WAITS, healthCheck=check, resourceRequirements=[{"type": "GPU", "value": "4"}]
        ),
        desiredCount=2,
        capacityProviderStrategy=[{"capacityProvider": provider, "weight": 1}],
        propagateTags="SERVICE",
        tags=[{"key": LABEL_TAGS[name], "value": value} for name, value in labels.items()],
    )


def test_a_host_that_loses_a_gpu_is_drained_and_replaced(
    cluster: RunningCluster, exporters: Exporters, clock: FastClock
) -> None:
    workers_with_a_pool(cluster)
    [task, other] = cluster.running(_SERVICE, 2)
    hosts = {each["containerInstanceArn"] for each in (task, other)}
    assert len(hosts) == 2
    [described] = cluster.ecs.describe_container_instances(
        cluster=CLUSTER, containerInstances=[task["containerInstanceArn"]]
    )["containerInstances"]
    exporters.broken = described["ec2InstanceId"]
    records = OperationsRecords(cluster.emulator.client("dynamodb"), TABLE, CLUSTER)

    def state() -> str:
        minute.handle({}, None)
        return next((each["state"] for each in records.cases() if each["node"] == exporters.broken), "")

    assert state() == "", "a host that boots has no GPUs yet"
    clock.ahead += 11 * _MINUTE
    assert state() == "suspected"
    clock.ahead += 3 * _MINUTE
    assert eventually(lambda: state() in ("draining", "replacing", "verifying", "done"), "drain")
    eventually(lambda: state() == "done", "replacement")
    eventually(
        lambda: (
            identifier(task["containerInstanceArn"])
            not in {
                identifier(arn)
                for arn in cluster.ecs.list_container_instances(cluster=CLUSTER)["containerInstanceArns"]
            }
        ),
        "end of the host",
    )
    now = {each["taskArn"] for each in cluster.running(_SERVICE, 2)}
    assert other["taskArn"] in now
    assert task["taskArn"] not in now
    [case] = records.cases()
    order = ("confirmed", "cordoned", "draining", "replacing", "done")
    assert [case["times"][each] for each in order] == sorted(case["times"][each] for each in order)
    assert [each["kind"] for each in case["evidence"]] == ["gpus_missing"]
    cluster.delete(_SERVICE)


def test_a_host_whose_fault_a_reboot_mends_is_rebooted_and_stays(
    cluster: RunningCluster, clock: FastClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if the host is terminated, or opened before its agent was away."""
    workers_with_a_pool(cluster, "rebooted", "rebooted")
    settings = {**json.loads(os.environ[health_names.HEALTH_SETTINGS]), "rebootsPerNodePerDay": 1}
    settings["repairedBy"] = {"rebooted": "gpuHealth"}
    monkeypatch.setenv(health_names.HEALTH_SETTINGS, json.dumps(settings))
    health_platform.cache_clear()
    [task, _] = cluster.running("rebooted", 2)

    def host() -> dict[str, Any]:
        found: dict[str, Any] = cluster.ecs.describe_container_instances(
            cluster=CLUSTER, containerInstances=[task["containerInstanceArn"]]
        )["containerInstances"][0]
        return found

    run = begin(health_platform(), clock)
    node = run.repairs.node(host()["ec2InstanceId"])
    assert node is not None
    evidence = Evidence(kind="xid", code="46", at=clock(), source="alarm", fatal=True)
    assert run.add(node, evidence, clock()) is not None
    records = OperationsRecords(cluster.emulator.client("dynamodb"), TABLE, CLUSTER)

    def case() -> dict[str, Any]:
        minute.handle({}, None)
        return next(each for each in records.cases() if each["node"] == node.name)

    # The stand-in boots in half a second, in which a function on a busy machine may not look once.
    cluster.emulator.task_fault("HoldReboots", cluster=CLUSTER, held=True)
    eventually(lambda: "away" in case()["times"], "host that is away")
    cluster.emulator.task_fault("HoldReboots", cluster=CLUSTER, held=False)
    eventually(lambda: case()["state"] == "done", "reboot")
    assert case()["reason"] == "rebooted"
    assert (host()["status"], host()["agentConnected"]) == ("ACTIVE", True)
    order = ("cordoned", "draining", "rebooting", "reboot_asked", "away", "done")
    times = [case()["times"][each] for each in order]
    assert times == sorted(times)
    assert task["taskArn"] not in {each["taskArn"] for each in cluster.running("rebooted", 2)}
    cluster.delete("rebooted")


def test_a_floor_of_the_shift_brings_tasks(cluster: RunningCluster) -> None:
    # API RegisterScalableTarget: a capacity below a new smallest one is raised. A lower one removes no task.
    cluster.create("floored", cluster.register("floored", WAITS))
    cluster.running("floored", 1)
    scaling = cluster.emulator.client("application-autoscaling")
    target = {
        "ServiceNamespace": "ecs",
        "ResourceId": f"service/{CLUSTER}/floored",
        "ScalableDimension": "ecs:service:DesiredCount",
    }
    scaling.register_scalable_target(**target, MinCapacity=1, MaxCapacity=4)
    numbers = EcsNumbers(CLUSTER, scaling, cluster.ecs)
    workers = ShiftedWorkers(
        name="floored",
        namespace="inference",
        release="main",
        role="worker",
        model="model",
        pool="gpu",
        least=1,
        most=4,
        capacity=1.0,
        accelerators=1,
    )
    numbers.set_floor(workers, 3)
    cluster.running("floored", 3)
    found = numbers.workers([workers])[workers.name]
    assert isinstance(found, LiveWorkers)
    assert (found.floor, found.replicas, found.current) == (3, 3, 3)
    numbers.set_floor(workers, 1)
    found = numbers.workers([workers])[workers.name]
    assert isinstance(found, LiveWorkers)
    assert (found.floor, found.replicas) == (1, 3)
    scaling.deregister_scalable_target(**target)
    cluster.delete("floored")
