"""Metrics, logs and traces of the cluster."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml

from inference_contracts.metric_labels import (
    CLUSTER_SOURCES,
    NODE_SOURCES,
    PROMETHEUS_ADDRESS,
    PROMETHEUS_NAMESPACE,
)
from inference_contracts.trace_names import TRACES_ENDPOINT_ON_EKS
from tests.templates.conftest import Synthesise
from tests.templates.support import Templates, statements

LOG_GROUPS = {f"/aws/containerinsights/try/{kind}" for kind in ("application", "dataplane", "host")}


@pytest.fixture(scope="module")
def observed(synthesise: Synthesise) -> Templates:
    return synthesise(lambda spec: spec.update(observability={"logs": {"retentionDays": 60}, "traces": {}}))


@pytest.fixture(scope="module")
def elastic(synthesise: Synthesise) -> Templates:
    def scaled(spec: dict[str, Any]) -> None:
        spec["observability"] = {}
        workers = spec["models"][0]["deployments"][0]["aggregated"]
        workers["replicas"] = {"min": 1, "max": 2}
        workers["scaledBy"] = {"load": {}}

    return synthesise(scaled)


def configuration(templates: Templates) -> dict[str, Any]:
    """Return the configuration values of the add-on."""
    (add_on,) = templates.properties("AWS::EKS::Addon", "Observability")
    result: dict[str, Any] = json.loads(add_on["ConfigurationValues"])
    return result


def scrape_jobs(templates: Templates) -> dict[str, dict[str, Any]]:
    """Return the scrape jobs of the node's agent by name."""
    agent, _ = configuration(templates)["agents"]
    receiver = agent["otelConfig"]["receivers"]["prometheus/platform"]
    return {job["job_name"]: job for job in receiver["config"]["scrape_configs"]}


def prometheus(templates: Templates) -> dict[str, Any]:
    """Return the values of Prometheus."""
    values = templates.charts("Observability")["prometheus"]["Properties"]["Values"]
    result: dict[str, Any] = json.loads(values)
    return result


def labels_of(job: dict[str, Any]) -> dict[str, str]:
    """Return the labels that a job takes from its targets, with their sources."""
    return {
        each["target_label"]: each["source_labels"][0]
        for each in job["relabel_configs"]
        if each["action"] == "replace" and "source_labels" in each
    }


def fixed_labels_of(job: dict[str, Any]) -> dict[str, str]:
    """Return the labels that a job gives to every target, with their values."""
    return {
        each["target_label"]: each["replacement"]
        for each in job["relabel_configs"]
        if each["action"] == "replace" and "source_labels" not in each
    }


def test_without_the_section_there_is_nothing(base_templates: Templates) -> None:
    assert "Observability" not in base_templates.by_stack
    names = [each["AddonName"] for each in base_templates.properties("AWS::EKS::Addon")]
    assert "amazon-cloudwatch-observability" not in names


def test_logs_exist_before_the_add_on_with_retention_and_key(observed: Templates) -> None:
    resources = observed.by_stack["Observability"]["Resources"]
    groups = {key: each for key, each in resources.items() if each["Type"] == "AWS::Logs::LogGroup"}
    assert {each["Properties"]["LogGroupName"] for each in groups.values()} == LOG_GROUPS
    for group in groups.values():
        assert group["Properties"]["RetentionInDays"] == 60
        assert "KmsKeyId" in group["Properties"]
    (add_on,) = [each for each in resources.values() if each["Type"] == "AWS::EKS::Addon"]
    assert groups.keys() <= set(add_on["DependsOn"])


def test_logs_of_the_control_plane_have_the_same_retention_and_a_key(observed: Templates) -> None:
    (group,) = [
        each
        for each in observed.properties("AWS::Logs::LogGroup", "Cluster")
        if each["LogGroupName"] == "/aws/eks/try/cluster"
    ]
    assert group["RetentionInDays"] == 60
    assert "KmsKeyId" in group


def test_the_key_serves_each_log_group_and_no_other(observed: Templates) -> None:
    (key,) = observed.properties("AWS::KMS::Key", "Data")
    contexts = [
        statement["Condition"]["ArnEquals"]["kms:EncryptionContext:aws:logs:arn"]
        for statement in key["KeyPolicy"]["Statement"]
        if "ArnEquals" in statement.get("Condition", {})
    ]
    groups = {json.dumps(each).split("log-group:")[1].split('"')[0] for each in contexts}
    assert groups == {*LOG_GROUPS, "/aws/eks/try/cluster"}


def test_the_agent_creates_no_log_group_and_reads_no_parameter(observed: Templates) -> None:
    (role,) = observed.resources("AWS::IAM::Role", "Observability")
    assert "ManagedPolicyArns" not in role["Properties"]
    actions = {action for statement in statements(role) for action in statement["Action"]}
    assert actions == {
        "cloudwatch:PutMetricData",
        "ec2:DescribeTags",
        "ec2:DescribeVolumes",
        "logs:CreateLogStream",
        "logs:DescribeLogStreams",
        "logs:PutLogEvents",
        "xray:PutTelemetryRecords",
        "xray:PutTraceSegments",
    }


def test_without_traces_nothing_receives_or_sends_any(synthesise: Synthesise) -> None:
    templates = synthesise(lambda spec: spec.update(observability={}))
    agent, _ = configuration(templates)["agents"]
    assert "config" not in agent
    (role,) = templates.resources("AWS::IAM::Role", "Observability")
    assert not any(action.startswith("xray:") for each in statements(role) for action in each["Action"])
    assert TRACES_ENDPOINT_ON_EKS not in json.dumps(templates.by_stack["Model-qwen3-8b"])


def test_traces_go_to_the_port_on_which_the_agent_listens(observed: Templates) -> None:
    agent, _ = configuration(observed)["agents"]
    listens = agent["config"]["traces"]["traces_collected"]["otlp"]["grpc_endpoint"]
    assert TRACES_ENDPOINT_ON_EKS.rpartition(":")[2] == listens.rpartition(":")[2]
    assert TRACES_ENDPOINT_ON_EKS.startswith(f"http://{agent['name']}.amazon-cloudwatch.")
    model = json.dumps(observed.by_stack["Model-qwen3-8b"])
    assert model.count("OTEL_TRACES_SAMPLE_RATIO") == 2


def test_each_pod_is_one_target_with_the_labels_of_the_contract(observed: Templates) -> None:
    job = prometheus(observed)["scrapeConfigs"]["serving"]
    assert labels_of(job) == CLUSTER_SOURCES
    (one_port,) = [each for each in job["relabel_configs"] if each["action"] == "keepequal"]
    assert one_port["source_labels"] == ["__meta_kubernetes_pod_container_port_number"]


def test_pods_have_the_labels_from_which_targets_take_theirs(observed: Templates) -> None:
    (release,) = observed.charts("Model-qwen3-8b").values()
    processes = json.loads(release["Properties"]["Values"])["processes"]
    for process in processes:
        labels = process["metricLabels"]
        spelled = {f"__meta_kubernetes_pod_label_{re.sub('[^a-z0-9]', '_', name)}" for name in labels}
        wanted = {source for source in CLUSTER_SOURCES.values() if "_pod_label_" in source}
        assert wanted < spelled
        ports = [str(port["number"]) for port in process["ports"]]
        assert labels["inference-blueprints/metrics-port"] in ports
        assert labels["inference-blueprints/role"] == process["role"]


def test_agents_watch_the_exporter_of_their_own_node_and_nothing_else(observed: Templates) -> None:
    """Red if an agent watches all pods and drops those of other nodes: 344 MB in each agent."""
    jobs = scrape_jobs(observed)
    assert list(jobs) == ["gpu"]
    (found,) = jobs["gpu"]["kubernetes_sd_configs"]
    # The only role of this job's discovery: any other would be selected by its own line.
    assert found["role"] == "pod"
    assert found["selectors"] == [{"role": "pod", "field": "spec.nodeName=${env:K8S_NODE_NAME}"}]
    assert "attach_metadata" not in found


def test_each_node_is_known_by_platform_pool_type_and_purchase(observed: Templates) -> None:
    gpu = prometheus(observed)["scrapeConfigs"]["gpu"]
    assert labels_of(gpu) == NODE_SOURCES
    assert fixed_labels_of(gpu) == {"platform": "try"}
    (found,) = gpu["kubernetes_sd_configs"]
    assert found["attach_metadata"] == {"node": True}
    assert fixed_labels_of(scrape_jobs(observed)["gpu"]) == {"platform": "try"}


def test_prometheus_may_read_nodes_and_no_more_of_the_cluster(observed: Templates) -> None:
    role, binding = (yaml.safe_load(text) for text in prometheus(observed)["extraManifests"])
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]}]
    assert binding["roleRef"]["name"] == role["metadata"]["name"]
    # The chart's name of the account is the full name, which the values set.
    assert binding["subjects"][0]["name"] == prometheus(observed)["server"]["fullnameOverride"]


def test_what_the_scaler_reports_has_the_platform(elastic: Templates) -> None:
    keda = prometheus(elastic)["scrapeConfigs"]["keda"]
    assert fixed_labels_of(keda) == {"platform": "try"}


def test_prometheus_finds_both_programs_of_keda(elastic: Templates) -> None:
    """Label `app` and port of KEDA's pods, and the value without which the operator has no such port.

    Source: templates/manager/deployment.yaml and templates/metrics-server/deployment.yaml of kedacore/charts,
    keda v2.20.2.
    """
    operator = json.loads(elastic.charts("Platform")["keda"]["Properties"]["Values"])
    assert operator["prometheus"]["operator"]["enabled"] is True
    job = prometheus(elastic)["scrapeConfigs"]["keda"]
    (kept,) = (each for each in job["relabel_configs"] if each["action"] == "keep")
    scraped = ("keda-operator;metrics", "keda-operator-metrics-apiserver;metrics")
    others = ("keda-operator;metricsservice", "keda-operator-metrics-apiserver;https")
    # Prometheus anchors its regular expressions at both ends.
    found = {name for name in (*scraped, *others) if re.fullmatch(kept["regex"], name)}
    assert found == set(scraped)


def test_prometheus_is_where_keda_asks(observed: Templates) -> None:
    release = observed.charts("Observability")["prometheus"]["Properties"]
    values = prometheus(observed)["server"]
    name, port = values["fullnameOverride"], values["service"]["servicePort"]
    assert f"http://{name}.{release['Namespace']}.svc:{port}" == PROMETHEUS_ADDRESS
    assert release["Namespace"] == PROMETHEUS_NAMESPACE


def test_prometheus_reads_pods_of_named_namespaces_alone(observed: Templates) -> None:
    values = prometheus(observed)
    assert values["server"]["useExistingClusterRoleName"] == "view"
    assert values["server"]["namespaces"] == ["inference", "monitoring"]
    named = {
        namespace
        for job in values["scrapeConfigs"].values()
        for found in job.get("kubernetes_sd_configs", ())
        for namespace in found["namespaces"]["names"]
    }
    assert named == set(values["server"]["namespaces"])
