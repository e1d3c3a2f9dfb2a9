"""The table, the freeze switch and the clients that controllers share."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from inference_decisions.capacity_shift.shift_answer import (
    DeploymentDecision,
    DeploymentForecast,
    ShiftDecision,
    ShiftReason,
)
from inference_decisions.capacity_shift.shift_view import DeploymentState, ShiftState
from operations.freeze_switch import read_freeze
from operations.kubernetes_api import KubernetesApi
from operations.operations_errors import KubernetesError, MetricsError, TableError, VersionConflictError
from operations.operations_table import AuditRecord, OperationsTable
from operations.promql import function_promql, name_matchers
from tests.runtime.gpu_health.fake_cluster import FakeCluster, node_object
from tests.runtime.gpu_health.world import TABLE, create_table
from tests.runtime.operations.fresh_process import NOBODY, begin_anew

NOW = 1_800_000_000.0


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    begin_anew(monkeypatch, NOBODY)
    with mock_aws():
        yield


@pytest.fixture
def table(aws: None) -> OperationsTable:
    create_table()
    return OperationsTable(boto3.resource("dynamodb").Table(TABLE), "chat", "main")


def test_of_two_writes_of_one_version_one_is_stored(table: OperationsTable) -> None:
    assert table.write("case#a", {"by": 1}, version=0, now=NOW) == 1
    with pytest.raises(VersionConflictError):
        table.write("case#a", {"by": 2}, version=0, now=NOW)
    assert table.write("case#a", {"by": 3}, version=1, now=NOW) == 2
    with pytest.raises(VersionConflictError):
        table.write("case#a", {"by": 4}, version=1, now=NOW)
    stored = table.read("case#a", NOW)
    assert stored is not None
    assert (stored.content, stored.version) == ({"by": 3}, 2)


def test_a_throttled_write_is_no_write_of_somebody_else(
    table: OperationsTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Red if a run believes that another one has decided, and changes nothing, because DynamoDB throttled it
    (Amazon DynamoDB API Reference, TransactWriteItems: reasons of a cancelled transaction)."""
    for code, reasons in (
        ("TransactionCanceledException", ["None", "ThrottlingError"]),
        ("TransactionCanceledException", ["ProvisionedThroughputExceeded", "None"]),
        ("ProvisionedThroughputExceededException", []),
        ("ThrottlingException", []),
        ("RequestLimitExceeded", []),
        ("AccessDeniedException", []),
    ):
        answer: dict[str, Any] = {
            "Error": {"Code": code, "Message": "m"},
            "CancellationReasons": [{"Code": each} for each in reasons],
        }

        def fail(answer: dict[str, Any] = answer, **_: object) -> None:
            raise ClientError(answer, "TransactWriteItems")

        monkeypatch.setattr(table._table.meta.client, "transact_write_items", fail)
        with pytest.raises(TableError):
            table.write("case#a", {}, version=0, now=NOW)
    monkeypatch.undo()


def test_an_expired_record_is_none_and_can_be_written_anew(table: OperationsTable) -> None:
    table.write("case#a", {}, version=0, now=NOW, expires=NOW + 10)
    with pytest.raises(VersionConflictError):
        table.write("case#a", {}, version=0, now=NOW)
    assert table.read("case#a", NOW + 10) is None
    assert list(table.list("case#", NOW + 10)) == []
    assert table.write("case#a", {}, version=0, now=NOW + 10) == 1


def test_an_audit_record_is_written_with_its_record_or_not_at_all(table: OperationsTable) -> None:
    audit = AuditRecord("gpu-health", {"to": "done"}, NOW)
    table.write("case#a", {}, version=0, now=NOW, audit=audit)
    with pytest.raises(VersionConflictError):
        table.write("case#a", {}, version=0, now=NOW, audit=audit)
    table.audit(AuditRecord("gpu-health", {"to": "later"}, NOW + 1))
    assert [each.content["to"] for each in table.list("audit#gpu-health#", NOW)] == ["done", "later"]


def test_the_decision_about_two_thousand_roles_is_stored_and_read_as_it_was(table: OperationsTable) -> None:
    """Red if it is stored as text: 709 bytes of each role exceed an item's 400 KB, and nothing is lent."""
    reasons = tuple(
        ShiftReason(code, f"demand of 17.{code} requests in flight within 600 s needs 3 workers of 8.0")
        for code in ("forecast", "lowers_slowly", "lends_slowly")
    )
    names = [f"qwen3-{number * 7919 % 100_000}b-main-worker" for number in range(2000)]
    decision = ShiftDecision(
        decided_at=NOW,
        carried_out=True,
        deployments=tuple(
            DeploymentDecision(
                name=name,
                floor=number % 11,
                batch_places=number % 16,
                lent=number / 2000,
                reasons=reasons,
                forecast=DeploymentForecast(
                    level=number * math.pi, soon=number * math.e, later=number / 7, season=number / 3
                ),
            )
            for number, name in enumerate(names)
        ),
        pools=(),
        state=ShiftState(
            decided_at=NOW,
            deployments={name: DeploymentState(floor=number % 11) for number, name in enumerate(names)},
        ),
    )
    record = {"state": decision.state.as_item(), "ceilings": dict.fromkeys(names, 8)}
    assert len(json.dumps(decision.as_record())) > 1_000_000
    table.write("shift", record, version=0, now=NOW, audit=AuditRecord("shift", decision.as_record(), NOW))
    stored = table.read("shift", NOW)
    assert stored is not None
    assert stored.content == json.loads(json.dumps(record))
    [audit] = table.list("audit#", NOW)
    assert audit.content == json.loads(json.dumps(decision.as_record()))


def test_audit_records_of_one_run_are_in_the_order_in_which_it_wrote_them(table: OperationsTable) -> None:
    for number in range(12):
        table.audit(AuditRecord("gpu-health", {"number": number}, NOW))
    assert [each.content["number"] for each in table.list("audit#", NOW)] == [*range(12)]


@pytest.mark.parametrize(
    ("value", "health", "shift"),
    [
        ("none", False, False),
        ("health", True, False),
        ("shift", False, True),
        ("all", True, True),
        ("yes", True, True),
        (None, True, True),
    ],
)
def test_a_switch_freezes_whom_it_names_and_everybody_if_it_cannot_be_read(
    aws: None, value: str | None, *, health: bool, shift: bool
) -> None:
    ssm = boto3.client("ssm")
    if value is not None:
        ssm.put_parameter(Name="/frozen", Value=value, Type="String")
    assert read_freeze(ssm, "/frozen", "health").frozen == health
    assert read_freeze(ssm, "/frozen", "shift").frozen == shift


def test_the_client_of_kubernetes_reads_changes_and_deletes() -> None:
    with FakeCluster() as cluster:
        cluster.add_node(node_object("a", created=NOW))
        api = KubernetesApi(cluster.address, lambda: "token")
        assert api.get("/api/v1/nodes/none") is None
        assert [each["metadata"]["name"] for each in api.list("/api/v1/nodes")] == ["a"]
        claims = "/apis/karpenter.sh/v1/nodeclaims"
        with pytest.raises(KubernetesError) as refused:
            api.delete(f"{claims}/claim-a", uid="another")
        assert refused.value.status == 409
        assert api.delete(f"{claims}/claim-a", uid="uid-claim-a")
        assert not api.delete(f"{claims}/none", uid="any")


def test_the_client_of_kubernetes_knows_how_far_the_clocks_differ() -> None:
    with FakeCluster() as cluster:
        api = KubernetesApi(cluster.address, lambda: "token")
        list(api.list("/api/v1/nodes"))
        assert api.clock_skew_seconds == 0
        cluster.skew = 300
        list(api.list("/api/v1/nodes"))
        assert abs(api.clock_skew_seconds - 300) < 3


def test_an_api_server_that_is_away_is_an_error_without_a_status() -> None:
    with FakeCluster() as cluster:
        address = cluster.address
    with pytest.raises(KubernetesError) as away:
        KubernetesApi(address, lambda: "token", timeout_seconds=1).get("/api/v1/nodes/a")
    assert away.value.status == 0


def test_a_query_is_tried_again_while_the_account_asks_too_much(aws: None) -> None:
    waits = list[float]()
    with FakeCluster() as cluster:
        cluster.failing["POST /api/v1/query"] = 429

        def wait(seconds: float) -> None:
            waits.append(seconds)
            cluster.failing.clear()

        query = 'count by (node) (last_over_time(DCGM_FI_DEV_GPU_UTIL{node=~"a"}[2m]))'
        cluster.samples.nodes["a"] = {"gpus": 8.0}
        (series,) = function_promql(cluster.address, wait=wait).instant(query, NOW)
        assert (series.labels, series.points) == ({"node": "a"}, ((NOW, 8.0),))
        assert len(waits) == 1
        cluster.failing["POST /api/v1/query"] = 400
        with pytest.raises(MetricsError, match="400"):
            function_promql(cluster.address, wait=wait).instant(query, NOW)
        assert len(waits) == 1


def test_a_query_names_as_many_pods_as_its_length_allows() -> None:
    names = [f"{number:058}.a-b" for number in range(250)]
    matchers = list(name_matchers("pod", names))
    patterns = [json.loads(matcher.removeprefix("pod=~")) for matcher in matchers]
    found = [pattern.split("|") for pattern in patterns]
    assert [len(each) for each in found] == [120, 120, 10]
    assert [name.replace("[.]", ".") for each in found for name in each] == names
    assert not any(re.fullmatch(pattern, names[0].replace(".", "x")) for pattern in patterns)
    # The longest query of a metric that CloudWatch documents, that of an alarm.
    assert all(len(matcher) < 10_000 - 500 for matcher in matchers)
    assert list(name_matchers("pod", [])) == []
