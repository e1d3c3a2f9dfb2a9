"""A cell whose GPUs are watched: a cluster, AWS, and a clock that stands until it is moved."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.client import BaseClient

from gpu_health import fault_alarms, minute
from gpu_health.case_store import CaseStore
from gpu_health.health_platform import health_platform
from inference_catalog.gpu_faults import gpu_faults_file
from inference_contracts import health_names, operations_names
from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql
from inference_decisions.repairs.repair_case import RepairCase
from operations import aws_clients
from operations.kubernetes_api import KubernetesApi
from operations.operations_table import OperationsTable
from tests.runtime.gpu_health.fake_cluster import FakeCluster, node_object, pod_object
from tests.runtime.operations.fresh_process import REGION

#: What a run writes to its log is not looked at.
QUIET = {"POWERTOOLS_METRICS_DISABLED": "true", "POWERTOOLS_LOG_LEVEL": "CRITICAL"}
TABLE = "operations"
PLATFORM = "chat"
NOW = 1_800_000_000.0
SETTINGS: dict[str, Any] = {
    "action": "replace",
    "repairedBy": {"h200": "gpuHealth"},
    "maxUnhealthyPercent": 50,
    "replacementsPerHour": 4,
    "slowGpus": True,
    "accelerators": {"p5en.48xlarge": 8},
}
PARAMETER = operations_names.freeze_parameter(PLATFORM, operations_names.MAIN_CELL)
PREFIX = health_names.hardware_alarm_prefix(PLATFORM, operations_names.MAIN_CELL)


#: How calls begin that change something.
_CHANGES = (
    *("PATCH", "POST", "DELETE", "TransactWriteItems", "Publish", "TerminateInstance"),
    *("PutAttributes", "DeleteAttributes", "UpdateContainerInstances", "RebootInstances"),
)


class KilledError(BaseException):
    """The process ended here. No `except Exception` of the code may catch it."""


@dataclass
class Calls:
    """Calls of a function that change something, after one of which its process ends.

    To be killed after a call that only reads is the same as to be killed after the change before it.
    """

    last: int = 0
    """Number of the call after which it ends; none is 0."""
    made: list[str] = field(default_factory=list)

    def count(self, name: str) -> None:
        if not name.startswith(_CHANGES):
            return
        self.made.append(name)
        if self.last and len(self.made) >= self.last:
            raise KilledError


@dataclass
class HealthWorld:
    """The cell of a test."""

    cluster: FakeCluster
    patch: pytest.MonkeyPatch
    topic: str
    now: float = NOW
    """The time."""
    platform: str = PLATFORM
    calls: Calls = field(default_factory=Calls)
    failing: dict[str, BaseException] = field(default_factory=dict)
    """Errors of AWS, by operation."""
    lost: dict[str, BaseException] = field(default_factory=dict)
    """Errors of AWS after it did what was asked: the answer was lost."""
    answers: dict[str, dict[str, Any]] = field(
        default_factory=lambda: {"DescribeAlarmContributors": {"AlarmContributors": []}}
    )
    """Answers of AWS that the emulation does not have, by operation."""
    messages: list[dict[str, Any]] = field(default_factory=list)

    def minute(self) -> None:
        """Let `minute` run."""
        minute.handle({}, None)

    def hardware(self, event: dict[str, Any]) -> Any:
        """Let `hardware` handle an event."""
        return fault_alarms.handle(event, None)

    def minutes(self, count: int) -> None:
        """Let minutes pass."""
        for _ in range(count):
            self.now += 60
            report(self.cluster, self.now)
            self.minute()

    def settings(self, **changes: Any) -> None:
        """Change the section of the blueprint."""
        self.patch.setenv(health_names.HEALTH_SETTINGS, json.dumps({**SETTINGS, **changes}))
        health_platform.cache_clear()

    def freeze(self, value: str) -> None:
        boto3.client("ssm").put_parameter(Name=PARAMETER, Value=value, Type="String", Overwrite=True)

    def store(self) -> CaseStore:
        table = boto3.resource("dynamodb").Table(TABLE)
        return CaseStore(OperationsTable(table, self.platform, operations_names.MAIN_CELL))

    def case(self, node: str) -> RepairCase | None:
        return self.store().read(f"uid-{node}", self.now)

    def state(self, node: str) -> str:
        case = self.case(node)
        return "" if case is None else case.state

    def lose_the_table(self) -> None:
        table = boto3.resource("dynamodb").Table(TABLE)
        for item in table.scan()["Items"]:
            table.delete_item(Key={name: item[name] for name in ("scope", "entry")})

    @contextmanager
    def killed_after(self, calls: int) -> Iterator[Calls]:
        """Let the process of a function end after some of its calls."""
        before, self.calls = self.calls, Calls(calls)
        try:
            yield self.calls
        except KilledError:
            assert calls
        finally:
            self.calls = before
            aws_clients.client.cache_clear()
            aws_clients.resource.cache_clear()
            health_platform.cache_clear()


def xid_event(
    node: str, code: str = "79", *, at: float, kind: str = "xid", state: str = "ALARM"
) -> dict[str, Any]:
    """An event of a contributor, as CloudWatch documents it.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/cloudwatch-and-eventbridge.html
    """
    return {
        "version": "0",
        "id": "6d226bbc-07f0-9a31-3359-1736968f8ded",
        "detail-type": "CloudWatch Alarm Contributor State Change",
        "source": "aws.cloudwatch",
        "account": "123456789012",
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
        "region": REGION,
        "resources": [f"arn:aws:cloudwatch:{REGION}:123456789012:alarm:{PREFIX}{kind}"],
        "detail": {
            "alarmName": f"{PREFIX}{kind}",
            "alarmContributor": {"id": "6d442278dba546f6", "attributes": {"node": node, "code": code}},
            "state": {
                "value": state,
                "reason": "Threshold Crossed",
                "timestamp": time.strftime("%Y-%m-%dT%H:%M:%S.000+0000", time.gmtime(at)),
            },
            "configuration": {"metrics": [], "description": ""},
        },
    }


def create_table() -> None:
    boto3.client("dynamodb").create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": operations_names.SCOPE_ATTRIBUTE, "KeyType": "HASH"},
            {"AttributeName": operations_names.ENTRY_ATTRIBUTE, "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"}
            for name in (operations_names.SCOPE_ATTRIBUTE, operations_names.ENTRY_ATTRIBUTE)
        ],
    )


def populate(cluster: FakeCluster, now: float, *, nodes: int = 8, racks: int = 4) -> None:
    """Put nodes with one worker each into a cluster, which report for ten minutes."""
    for number in range(nodes):
        name = f"node-{number}"
        cluster.add_node(
            node_object(name, created=now - 86400, rack=f"rack-{number % racks}"),
            pod_object(f"worker-{number}", name, ready=now - 80000),
        )


def report(
    cluster: FakeCluster, now: float, *, slow: dict[str, float] | None = None, minutes: int = 1
) -> None:
    """Let every worker report: slow ones are slower by a share."""
    for back in range(minutes):
        at = now - 25 - 60 * back
        for name in list(cluster.pods):
            slower = (slow or {}).get(name, 0.0)
            values = {
                health_names.WORKER_LOAD: 1000.0,
                health_names.WORKER_LATENCY: 0.02 * (1 + slower),
                health_names.WORKER_REQUESTS: 300.0,
                health_names.WORKER_FAILED: 0.0,
            }
            for series, value in values.items():
                cluster.samples.put(at, series, name, value)


@contextmanager
def prepared(
    cluster: FakeCluster, patch: pytest.MonkeyPatch, folder: Path, *, platform: str = PLATFORM
) -> Iterator[HealthWorld]:
    """Give the functions their environment. AWS has to be emulated already."""
    del folder
    create_table()
    topic = boto3.client("sns").create_topic(Name="operations")["TopicArn"]
    boto3.client("ssm").put_parameter(Name=PARAMETER, Value="none", Type="String")
    environment = {
        operations_names.PLATFORM: platform,
        operations_names.CELL: operations_names.MAIN_CELL,
        operations_names.TABLE: TABLE,
        operations_names.FREEZE_PARAMETER: PARAMETER,
        operations_names.TOPIC_ARN: topic,
        operations_names.CLUSTER: PLATFORM,
        operations_names.CLUSTER_ENDPOINT: cluster.address,
        operations_names.CLUSTER_AUTHORITY: "bm9uZQ==",
        operations_names.METRICS_ENDPOINT: cluster.address,
        health_names.HEALTH_SETTINGS: json.dumps(SETTINGS),
    }
    for name, value in environment.items():
        patch.setenv(name, value)
    patch.setattr("gpu_health.health_platform._faults", lambda: gpu_faults_file().read_text("utf-8"))
    world = HealthWorld(cluster, patch, topic, platform=platform)
    _intercept(world)
    yield world
    for cached in (aws_clients.client, aws_clients.resource, health_platform):
        cached.cache_clear()


def _intercept(world: HealthWorld) -> None:
    """Count calls, make them fail, and let the clock stand."""
    plain_aws, plain_api = BaseClient._make_api_call, KubernetesApi._ask
    plain_query = CloudWatchPromql._once

    def aws(client: Any, operation: str, parameters: Any) -> Any:
        if operation in world.failing:
            raise world.failing[operation]
        if operation == "Publish":
            world.messages.append(dict(parameters))
        if operation in world.answers:
            return world.answers[operation]
        answer = plain_aws(client, operation, parameters)
        world.calls.count(operation)
        if operation in world.lost:
            raise world.lost[operation]
        return answer

    def api(client: Any, method: str, path: str, *arguments: Any, **named: Any) -> Any:
        answer = plain_api(client, method, path, *arguments, **named)
        world.calls.count(f"{method} {path}")
        return answer

    world.patch.setattr(BaseClient, "_make_api_call", aws)
    world.patch.setattr(KubernetesApi, "_ask", api)
    world.patch.setattr(CloudWatchPromql, "_once", plain_query)
    world.patch.setattr(time, "time", lambda: world.now)
