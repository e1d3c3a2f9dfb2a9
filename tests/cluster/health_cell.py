"""GPU health on a real control plane: its very handlers, as a member of the group of its access entry."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3
import pytest

from gpu_health import fault_alarms, minute
from gpu_health.case_store import CaseStore
from gpu_health.health_platform import health_platform
from inference_catalog.gpu_faults import gpu_faults_file
from inference_contracts import health_names, operations_names
from inference_decisions.repairs.repair_case import RepairCase
from inference_local.control_plane.control_plane import ControlPlane
from operations.kubernetes_api import KubernetesApi, eks_api
from operations.operations_table import OperationsTable
from tests.cluster.deaths import Deaths, intercept
from tests.cluster.simulated_ec2 import CREDENTIALS, REGION, SimulatedEc2
from tests.runtime.gpu_health.fake_cluster import FakeCluster
from tests.runtime.gpu_health.world import (
    PARAMETER,
    PLATFORM,
    QUIET,
    TABLE,
    create_table,
    xid_event,
)
from tests.runtime.operations.fresh_process import begin_anew
from tests.templates.support import Templates


@dataclass
class HealthCell:
    """The cell of a test."""

    api: KubernetesApi
    """The API server, with the permissions of GPU health."""
    patch: pytest.MonkeyPatch
    section: dict[str, Any]
    """The section `gpuHealth` of the blueprint."""
    deaths: Deaths = field(default_factory=Deaths)

    def hardware(self, node: str) -> None:
        """Let an alarm report a fatal XID of a node now."""
        fault_alarms.handle(xid_event(node, at=time.time()), None)

    def minute(self) -> None:
        """Let the minute's function run."""
        minute.handle({}, None)

    def settings(self, **changes: Any) -> None:
        """Change the section of the blueprint."""
        self.patch.setenv(health_names.HEALTH_SETTINGS, json.dumps({**self.section, **changes}))
        health_platform.cache_clear()

    def freeze(self, value: str) -> None:
        boto3.client("ssm").put_parameter(Name=PARAMETER, Value=value, Type="String", Overwrite=True)

    def survives(self, act: Callable[[], object]) -> bool:
        """Call a function in a new process, and return whether the process lived on."""
        health_platform.cache_clear()
        return self.deaths.survived(act)

    @property
    def messages(self) -> list[str]:
        """What people were told."""
        return self.deaths.messages

    @property
    def _table(self) -> OperationsTable:
        return OperationsTable(boto3.resource("dynamodb").Table(TABLE), PLATFORM, operations_names.MAIN_CELL)

    def case(self, node: str) -> RepairCase | None:
        """Return the case of a node by its name."""
        found = [each for each in CaseStore(self._table).cases(time.time()) if each.node == node]
        return found[0] if found else None

    def at(self, node: str) -> tuple[str, str]:
        """Return state and reason of a node's case."""
        case = self.case(node)
        return ("", "") if case is None else (case.state, case.reason)

    def places(self) -> dict[str, list[str]]:
        """Return the nodes that hold places of replacements, by pool."""
        return dict(CaseStore(self._table).places(time.time())[0])

    def states(self, node: str) -> list[str]:
        """Return the states that the audit records of a node tell, each once."""
        records = [each.content for each in self._table.list("audit#", time.time())]
        return list(dict.fromkeys(each["to"] for each in records if each["node"] == node))


@contextmanager
def health_cell(
    control_plane: ControlPlane,
    token: str,
    ec2: SimulatedEc2,
    templates: Templates,
    patch: pytest.MonkeyPatch,
) -> Iterator[HealthCell]:
    """Give the functions their environment: the section of a blueprint, and AWS that is simulated.

    control_plane: The cluster.
    token: Bearer token of the group of GPU health. It stands for the signed request that names its role.
    ec2: Where AWS answers.
    templates: Templates of the platform.
    patch: Undoes it.
    """
    begin_anew(patch, {**CREDENTIALS, **QUIET, "AWS_DEFAULT_REGION": REGION})
    patch.setenv("AWS_ENDPOINT_URL", ec2.endpoint_url)
    patch.setattr("operations.kubernetes_api.cluster_token", lambda *_: token)
    patch.setattr("gpu_health.health_platform._faults", lambda: gpu_faults_file().read_text("utf-8"))
    authority = base64.b64encode(control_plane.authority.certificate.read_bytes()).decode()
    section = _section(templates)
    create_table()
    boto3.client("ssm").put_parameter(Name=PARAMETER, Value="none", Type="String", Overwrite=True)
    # It has no metrics: what is decided here follows from events and from what the API server says.
    with FakeCluster() as cloudwatch:
        for name, value in {
            operations_names.PLATFORM: PLATFORM,
            operations_names.CELL: operations_names.MAIN_CELL,
            operations_names.TABLE: TABLE,
            operations_names.FREEZE_PARAMETER: PARAMETER,
            operations_names.TOPIC_ARN: boto3.client("sns").create_topic(Name="people")["TopicArn"],
            operations_names.CLUSTER: PLATFORM,
            operations_names.CLUSTER_ENDPOINT: control_plane.address,
            operations_names.CLUSTER_AUTHORITY: authority,
            operations_names.METRICS_ENDPOINT: cloudwatch.address,
            health_names.HEALTH_SETTINGS: json.dumps(section),
        }.items():
            patch.setenv(name, value)
        health_platform.cache_clear()
        cell = HealthCell(eks_api(PLATFORM, control_plane.address, authority), patch, section)
        intercept(patch, cell.deaths)
        yield cell
    boto3.client("dynamodb").delete_table(TableName=TABLE)
    health_platform.cache_clear()


def _section(templates: Templates) -> dict[str, Any]:
    """Return the section `gpuHealth` as the template gives it to the functions."""
    (text,) = {
        each["Environment"]["Variables"][health_names.HEALTH_SETTINGS]
        for each in templates.properties("AWS::Lambda::Function", "Operations")
        if health_names.HEALTH_SETTINGS in each["Environment"]["Variables"]
    }
    section: dict[str, Any] = json.loads(text)
    return section
