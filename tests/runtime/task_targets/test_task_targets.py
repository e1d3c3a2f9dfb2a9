"""Targets of Prometheus and published loads. Answers of AWS are held against botocore's models."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlparse

import boto3
import pytest
import urllib3
from botocore.stub import Stubber
from task_targets.__main__ import Rounds, server_of
from task_targets.cluster_tasks import ClusterTasks, LiveTask, TaskHost
from task_targets.load_publisher import Loads, embedded_lines, measure
from task_targets.prometheus_query import PrometheusError, number_of, query_number
from task_targets.scrape_targets import scrape_targets

from inference_contracts import scale_metrics
from inference_contracts.scale_metrics import PublishedRole, PublishedTrigger, roles_json
from inference_contracts.task_tags import (
    LABEL_TAGS,
    METRICS_ADDRESS_TAG,
    METRICS_JOB_TAG,
    METRICS_PORT_TAG,
)
from tests.runtime.operations.fresh_process import NOBODY

NOW = 1_800_000_000.0
CLUSTER = "chat"
TASKS = "arn:aws:ecs:us-west-2:111122223333:task/chat/"
HOST = "arn:aws:ecs:us-west-2:111122223333:container-instance/chat/h1"
SERVING = {
    "platform": "chat",
    "model": "qwen3-8b",
    "release": "qwen3-8b-main",
    "role": "worker",
    "pool": "l40s",
}
HOLDS = PublishedTrigger(name="tokens-in-flight", query="sum(tokens)", metric_type="AverageValue")
LATENCY = PublishedTrigger(name="time-to-first-token", query="p90", metric_type="Value")


def tags(**more: str) -> dict[str, str]:
    return {**{LABEL_TAGS[name]: value for name, value in SERVING.items()}, **more}


def as_list(found: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"key": key, "value": value} for key, value in found.items()]


def client(service: str) -> Any:
    return boto3.Session(region_name="us-west-2").client(service)


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Any, Stubber, Any, Stubber]]:
    for name, value in NOBODY.items():
        monkeypatch.setenv(name, value)
    ecs, ec2 = client("ecs"), client("ec2")
    with Stubber(ecs) as ecs_answers, Stubber(ec2) as ec2_answers:
        yield ecs, ecs_answers, ec2, ec2_answers
        ecs_answers.assert_no_pending_responses()
        ec2_answers.assert_no_pending_responses()


def lists(ecs: Stubber, running: list[str], ending: list[str]) -> None:
    for status, found in (("RUNNING", running), ("STOPPED", ending)):
        request = {"cluster": CLUSTER, "desiredStatus": status, "maxResults": 100}
        ecs.add_response("list_tasks", {"taskArns": [TASKS + each for each in found]}, request)


def describes(ecs: Stubber, tasks: list[dict[str, Any]]) -> None:
    request = {"cluster": CLUSTER, "tasks": [each["taskArn"] for each in tasks], "include": ["TAGS"]}
    ecs.add_response("describe_tasks", {"tasks": tasks}, request)


def fargate(name: str, status: str = "RUNNING", **more: str) -> dict[str, Any]:
    interface = {
        "type": "ElasticNetworkInterface",
        "details": [
            {"name": "subnetId", "value": "subnet-1"},
            {"name": "privateIPv4Address", "value": "10.0.0.7"},
        ],
    }
    return {
        "taskArn": TASKS + name,
        "lastStatus": status,
        "tags": as_list(tags(**more)),
        "attachments": [interface],
    }


def on_host(name: str, status: str = "RUNNING", **more: str) -> dict[str, Any]:
    return {
        "taskArn": TASKS + name,
        "lastStatus": status,
        "tags": as_list(tags(**more)),
        "containerInstanceArn": HOST,
    }


def hosts(ecs: Stubber, ec2: Stubber, **more: str) -> None:
    ecs.add_response(
        "describe_container_instances",
        {"containerInstances": [{"containerInstanceArn": HOST, "ec2InstanceId": "i-1"}]},
        {"cluster": CLUSTER, "containerInstances": [HOST]},
    )
    instance = {"InstanceId": "i-1", "InstanceType": "g6e.12xlarge", "PrivateIpAddress": "10.0.1.9", **more}
    ec2.add_response(
        "describe_instances", {"Reservations": [{"Instances": [instance]}]}, {"InstanceIds": ["i-1"]}
    )


class TestReading:
    def test_tasks_of_both_networks_and_those_that_drain(
        self, aws: tuple[Any, Stubber, Any, Stubber]
    ) -> None:
        ecs, ecs_answers, ec2, ec2_answers = aws
        lists(ecs_answers, ["a", "b"], ["c", "d"])
        describes(
            ecs_answers, [fargate("a"), on_host("b"), on_host("c", "STOPPING"), on_host("d", "STOPPED")]
        )
        hosts(ecs_answers, ec2_answers, InstanceLifecycle="spot")
        found = {each.identifier: each for each in ClusterTasks(CLUSTER, ecs, ec2).live()}
        assert {name: each.address for name, each in found.items()} == {
            "a": "10.0.0.7",
            "b": "10.0.1.9",
            "c": "10.0.1.9",
        }
        assert found["a"].host is None
        assert found["b"].host == TaskHost("i-1", "g6e.12xlarge", "10.0.1.9", "spot")

    def test_a_host_is_read_once(self, aws: tuple[Any, Stubber, Any, Stubber]) -> None:
        ecs, ecs_answers, ec2, ec2_answers = aws
        tasks = ClusterTasks(CLUSTER, ecs, ec2)
        lists(ecs_answers, ["b"], [])
        describes(ecs_answers, [on_host("b")])
        hosts(ecs_answers, ec2_answers, CapacityReservationId="cr-1")
        first = next(tasks.live())
        lists(ecs_answers, ["b"], [])
        describes(ecs_answers, [on_host("b")])
        assert next(tasks.live()) == first
        assert first.host is not None
        assert first.host.purchase == "reserved"

    def test_desired_counts_are_those_of_tagged_services(
        self, aws: tuple[Any, Stubber, Any, Stubber]
    ) -> None:
        ecs, ecs_answers, ec2, _ = aws
        arns = [f"arn:aws:ecs:us-west-2:111122223333:service/chat/s{place:02}" for place in range(12)]
        ecs_answers.add_response(
            "list_services", {"serviceArns": arns}, {"cluster": CLUSTER, "maxResults": 100}
        )
        services = [{"serviceArn": arn, "status": "ACTIVE", "desiredCount": 1} for arn in arns]
        services[0] |= {"tags": as_list(tags()), "desiredCount": 4}
        services[11] |= {"tags": as_list(tags() | {LABEL_TAGS["role"]: "frontend"}), "desiredCount": 2}
        services[1] |= {"tags": as_list(tags()), "desiredCount": 9, "status": "DRAINING"}
        for part in (slice(0, 10), slice(10, 12)):
            request = {"cluster": CLUSTER, "services": arns[part], "include": ["TAGS"]}
            ecs_answers.add_response("describe_services", {"services": services[part]}, request)
        wanted = ClusterTasks(CLUSTER, ecs, ec2).wanted()
        assert wanted == {("qwen3-8b-main", "worker"): 4, ("qwen3-8b-main", "frontend"): 2}


class TestTargets:
    def test_a_worker_has_the_labels_that_it_has_on_eks(self) -> None:
        host = TaskHost("i-1", "g6e.12xlarge", "10.0.1.9", "on-demand")
        task = LiveTask("t1", tags(**{METRICS_ADDRESS_TAG: "10.0.1.9:20003"}), "10.0.1.9", host)
        found = scrape_targets("chat", [task])
        labels = {**SERVING, "pod": "t1", "node": "i-1"}
        assert found.jobs["serving"] == [{"targets": ["10.0.1.9:20003"], "labels": labels}]

    def test_an_exporter_of_gpu_metrics_has_those_of_its_host(self) -> None:
        host = TaskHost("i-1", "g6e.12xlarge", "10.0.1.9", "spot")
        named = {
            LABEL_TAGS["platform"]: "chat",
            LABEL_TAGS["pool"]: "l40s",
            METRICS_JOB_TAG: "gpu",
            METRICS_PORT_TAG: "9400",
        }
        found = scrape_targets("chat", [LiveTask("t2", named, "10.0.1.9", host)])
        labels = {
            "platform": "chat",
            "pool": "l40s",
            "instance_type": "g6e.12xlarge",
            "purchase": "spot",
            "node": "i-1",
        }
        assert found.jobs == {"serving": [], "gpu": [{"targets": ["10.0.1.9:9400"], "labels": labels}]}

    def test_other_tasks_are_left_out_and_those_without_an_address_are_named(self) -> None:
        silent = LiveTask("t1", tags(), "10.0.1.9", None)
        foreign = LiveTask("t2", tags(**{LABEL_TAGS["platform"]: "other"}), "10.0.1.9", None)
        # The metrics server itself has the platform's tag, and no release.
        own = LiveTask("t3", {LABEL_TAGS["platform"]: "chat"}, "10.0.0.1", None)
        found = scrape_targets("chat", [silent, foreign, own])
        assert found.jobs["serving"] == []
        assert found.unaddressed == ("t1",)


ROLE = PublishedRole(release="qwen3-8b-main", role="worker", triggers=(HOLDS, LATENCY))
WANTED = {("qwen3-8b-main", "worker"): 8}


class TestLoads:
    @pytest.mark.parametrize(("load", "desired"), [(100.0, 4), (37.0, 3), (5.0, 1)])
    def test_target_tracking_asks_for_what_keda_asks_for(self, load: float, desired: int) -> None:
        role = PublishedRole(release="r", role="worker", triggers=(HOLDS,))
        loads = measure("chat", [role], {("r", "worker"): desired}, lambda _: load)
        [(_, metric)] = loads.values
        target = 10.0
        # Application Auto Scaling: new = desired x metric / target. KEDA: load / target.
        assert desired * metric / target == pytest.approx(load / target)

    def test_a_latency_counts_only_the_workers_that_serve(self) -> None:
        """4 of 8 wanted workers serve at twice the target: 8 are right, and not 16."""
        answers = {"sum(tokens)": 0.0, "p90": 400.0, 'sum(up{release="qwen3-8b-main",role="worker"})': 4.0}
        loads = measure("chat", [ROLE], WANTED, lambda query: answers[query])
        dimensions, metric = loads.values[1]
        assert dimensions == {
            "platform": "chat",
            "release": "qwen3-8b-main",
            "role": "worker",
            "trigger": "time-to-first-token",
        }
        assert 8 * metric / 200.0 == pytest.approx(8.0)

    def test_a_trigger_without_an_answer_is_not_published_as_zero(self) -> None:
        def query(text: str) -> float:
            if text == "p90":
                raise PrometheusError("0 series, must be one")
            return 16.0

        loads = measure("chat", [ROLE], WANTED, query)
        assert [value for _, value in loads.values] == [2.0]
        assert loads.unread == ("qwen3-8b-main worker time-to-first-token: 0 series, must be one",)

    def test_a_role_without_a_service_is_not_published(self) -> None:
        loads = measure("chat", [ROLE], {}, lambda _: 1.0)
        assert loads.values == ()
        assert len(loads.unread) == 1

    def test_lines_are_in_the_embedded_format(self) -> None:
        loads = Loads(((scale_metrics.load_dimensions("chat", ROLE, HOLDS), 2.5),), ("one",))
        load, counts = (json.loads(line) for line in embedded_lines("chat", loads, 3, NOW))
        [directive] = load["_aws"]["CloudWatchMetrics"]
        assert load["_aws"]["Timestamp"] == int(NOW * 1000)
        assert directive["Dimensions"] == [["platform", "release", "role", "trigger"]]
        assert {name: load[name] for name in (*directive["Dimensions"][0], "Load")} == {
            "platform": "chat",
            "release": "qwen3-8b-main",
            "role": "worker",
            "trigger": "tokens-in-flight",
            "Load": 2.5,
        }
        assert (counts["TriggersUnread"], counts["TasksWithoutMetrics"], counts["platform"]) == (
            1.0,
            3.0,
            "chat",
        )


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ({"resultType": "vector", "result": []}, "0 series"),
        ({"resultType": "vector", "result": [{"value": [1, "1"]}, {"value": [1, "2"]}]}, "2 series"),
        ({"resultType": "vector", "result": [{"value": [1, "+Inf"]}]}, "inf"),
        ({"resultType": "scalar", "result": [1, "NaN"]}, "nan"),
        ({"resultType": "matrix", "result": []}, "matrix"),
    ],
)
def test_an_answer_without_one_number_is_refused(data: dict[str, Any], reason: str) -> None:
    with pytest.raises(PrometheusError, match=reason):
        number_of({"status": "success", "data": data})


def test_a_round_serves_targets_and_publishes(aws: tuple[Any, Stubber, Any, Stubber]) -> None:
    ecs, ecs_answers, ec2, ec2_answers = aws
    lists(ecs_answers, ["b"], [])
    describes(ecs_answers, [on_host("b", **{METRICS_ADDRESS_TAG: "10.0.1.9:20003"})])
    hosts(ecs_answers, ec2_answers)
    service = {"serviceArn": "s", "status": "ACTIVE", "desiredCount": 2, "tags": as_list(tags())}
    ecs_answers.add_response("list_services", {"serviceArns": ["s"]})
    ecs_answers.add_response("describe_services", {"services": [service]})
    role = PublishedRole(release="qwen3-8b-main", role="worker", triggers=(HOLDS,))
    with prometheus({"sum(tokens)": "12"}) as address:
        environment = {
            scale_metrics.CLUSTER: CLUSTER,
            scale_metrics.PLATFORM: "chat",
            scale_metrics.ROLES: roles_json([role]),
            scale_metrics.PROMETHEUS: address,
        }
        rounds = Rounds(environment, ClusterTasks(CLUSTER, ecs, ec2))
        assert rounds.answer("/targets/serving", NOW) is None
        lines = rounds.run_once(NOW)
    assert json.loads(lines[0])["Load"] == 6.0
    assert rounds.answer("/targets/serving", NOW + 299) is not None
    assert rounds.answer("/targets/serving", NOW + 301) is None
    assert rounds.answer("/targets/nothing", NOW) is None


def test_a_cluster_that_does_not_answer_publishes_nothing(aws: tuple[Any, Stubber, Any, Stubber]) -> None:
    ecs, ecs_answers, ec2, _ = aws
    ecs_answers.add_client_error("list_tasks", "ThrottlingException")
    environment = {
        scale_metrics.CLUSTER: CLUSTER,
        scale_metrics.PLATFORM: "chat",
        scale_metrics.ROLES: roles_json([ROLE]),
    }
    assert Rounds(environment, ClusterTasks(CLUSTER, ecs, ec2)).run_once(NOW) == []


def test_prometheus_gets_200_with_targets_and_an_error_without() -> None:
    class Known:
        def answer(self, path: str, _now: float) -> list[dict[str, Any]] | None:
            return [{"targets": ["10.0.0.1:1"], "labels": {}}] if path == "/targets/serving" else None

    server = server_of(Known(), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}"
    try:
        answer = urllib3.request("GET", f"{address}/targets/serving")
        assert (answer.status, answer.headers["Content-Type"]) == (200, "application/json")
        assert answer.json() == [{"targets": ["10.0.0.1:1"], "labels": {}}]
        assert urllib3.request("GET", f"{address}/targets/gpu", retries=False).status == 503
    finally:
        server.shutdown()
        server.server_close()


def test_a_prometheus_that_is_away_is_a_failure() -> None:
    with pytest.raises(PrometheusError, match="no answer"):
        query_number("http://127.0.0.1:1", "up")


@contextmanager
def prometheus(answers: Mapping[str, str]) -> Iterator[str]:
    class _PrometheusAnswers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            [query] = parse_qs(urlparse(self.path).query)["query"]
            result = [{"metric": {}, "value": [NOW, answers[query]]}]
            body = json.dumps(
                {"status": "success", "data": {"resultType": "vector", "result": result}}
            ).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), _PrometheusAnswers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
