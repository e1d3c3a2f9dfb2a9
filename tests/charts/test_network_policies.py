"""Who may connect to workers on EKS: the rendered policies, decided as Kubernetes defines them."""

from __future__ import annotations

from typing import Any

import pytest

from inference_blueprints.render.eks.model_values import deployment_values
from inference_contracts.metric_labels import METRICS_PORT_LABEL, PROMETHEUS_NAMESPACE
from tests.charts import direct, dynamo, llm_d
from tests.charts.llm_d import BUCKET, of_kind
from tests.charts.renderings import Manifest, Render

NAMESPACE = "inference"
#: What an engine opens for itself: PyTorch's store, the transfer of KV cache, Linux's free ports.
OWN_PORTS = (5557, 5600, 29500, 40123)
BEHIND_A_ROUTER = {**{name: dynamo.DEPLOYMENTS[name] for name in dynamo.UNLIKE}, **llm_d.DEPLOYMENTS}


def admits(policies: list[Manifest], pod: Manifest, source: Manifest, namespace: str, port: int) -> bool:
    """Whether a pod takes a connection. A pod that no policy selects takes all of them."""
    selected = [each["spec"] for each in policies if _matches(each["spec"]["podSelector"], pod)]
    rules = [rule for spec in selected for rule in spec["ingress"]]
    return not selected or any(
        port in _ports(rule, port) and _from(rule, source, namespace) for rule in rules
    )


def _matches(selector: Manifest, labels: Manifest) -> bool:
    return bool(selector["matchLabels"].items() <= labels.items())


def _ports(rule: Manifest, port: int) -> set[int]:
    return {each["port"] for each in rule["ports"]} if "ports" in rule else {port}


def _from(rule: Manifest, source: Manifest, namespace: str) -> bool:
    def one(peer: Manifest) -> bool:
        if "namespaceSelector" in peer:
            return _matches(peer["namespaceSelector"], {"kubernetes.io/metadata.name": namespace})
        return namespace == NAMESPACE and _matches(peer["podSelector"], source)

    return "from" not in rule or any(one(peer) for peer in rule["from"])


def pods_of(manifests: list[Manifest]) -> dict[str, Manifest]:
    """Return the labels of the pods of each process, further nodes too."""
    templates: list[Any] = []
    for graph in of_kind(manifests, "DynamoGraphDeployment"):
        templates += [component["podTemplate"] for component in graph["spec"]["components"]]
    for kind in ("Deployment", "LeaderWorkerSet"):
        for each in of_kind(manifests, kind):
            spec = each["spec"]
            group = spec.get("leaderWorkerTemplate", {})
            templates += [spec["template"]] if "template" in spec else []
            templates += [group[key] for key in ("leaderTemplate", "workerTemplate") if key in group]
    return {
        each["metadata"]["labels"]["app.kubernetes.io/component"]: each["metadata"]["labels"]
        for each in templates
    }


@pytest.mark.parametrize("name", BEHIND_A_ROUTER)
def test_workers_behind_a_router_take_connections_of_their_release_only(render: Render, name: str) -> None:
    """Without a policy, any pod of the cluster runs code in an engine that unpickles what it receives."""
    plan = BEHIND_A_ROUTER[name]
    manifests = render(deployment_values(plan, weights_bucket=BUCKET), plan.release, plan.chart)
    policies = of_kind(manifests, "NetworkPolicy")
    pods = pods_of(manifests)
    stranger = {
        **pods["frontend" if "frontend" in pods else "router"],
        "app.kubernetes.io/instance": "another",
    }
    for process in plan.workers:
        worker = pods[process.name]
        ports = {*OWN_PORTS, *(port.number for port in process.ports)}
        for port in ports:
            assert all(admits(policies, worker, pod, NAMESPACE, port) for pod in pods.values())
            assert not admits(policies, worker, stranger, NAMESPACE, port)
            assert not admits(policies, worker, {}, "another", port)
            # Its agents read nothing from workers.
            assert not admits(policies, worker, {}, "amazon-cloudwatch", port)
        measured = {port for port in ports if admits(policies, worker, {}, PROMETHEUS_NAMESPACE, port)}
        label = worker.get(METRICS_PORT_LABEL)
        assert measured == ({int(label)} if label else set())
    # The load balancer's addresses are those of any pod, so whoever it calls stays open.
    entry = pods[plan.entry_point.name]
    assert admits(policies, entry, {}, "another", plan.entry_point.ports[0].number)


@pytest.mark.parametrize("name", ["direct-hub", "direct-images"])
def test_servers_take_connections_on_the_ports_of_their_api_only(render: Render, name: str) -> None:
    plan = direct.DEPLOYMENTS[name]
    manifests = render(deployment_values(plan, weights_bucket=BUCKET), plan.release, plan.chart)
    policies = of_kind(manifests, "NetworkPolicy")
    [server] = pods_of(manifests).values()
    assert admits(policies, server, {}, "another", plan.entry_point.ports[0].number)
    assert not any(admits(policies, server, {}, "another", port) for port in OWN_PORTS)
