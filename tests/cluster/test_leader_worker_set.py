"""The real LeaderWorkerSet controller forms a group of two nodes of a pool."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from capacity_shift.cluster_numbers import KubernetesNumbers, LiveWorkers

from inference_blueprints.operate.kubernetes import Kubectl
from inference_blueprints.render.eks.model_values import deployment_values
from inference_catalog.charts import charts_directory, stage_chart
from inference_local.control_plane import artefacts, build
from inference_local.control_plane.control_plane import LOOPBACK, ControlPlane
from inference_local.processes.free_ports import free_ports
from tests.charts.llm_d import DEPLOYMENTS
from tests.cluster.controller import controller
from tests.cluster.nodes import nodes_of
from tests.cluster.objects import KubernetesObject, component_deployments, manifests, own_objects, rendered
from tests.cluster.state import in_namespace, named_pool, pods, ready_pods, renamed
from tests.cluster.webhooks import certificate_folder, on_loopback
from tests.runtime.capacity_shift.shift_platform import shifted_workers
from tests.templates.support import Templates

_POOL = "p5"
_GROUP_LABEL = "leaderworkerset.sigs.k8s.io/name"
_WORKER_INDEX = "leaderworkerset.sigs.k8s.io/worker-index"


@pytest.fixture(scope="module")
def leader_worker_set(control_plane: ControlPlane) -> Iterator[None]:
    """The controller with its webhooks, which go with the module."""
    health, metrics, webhooks = free_ports(3)
    folder = certificate_folder(control_plane, "lws")
    configuration = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "leaderElection": {"leaderElect": False},
        "internalCertManagement": {"enable": False},
        "health": {"healthProbeBindAddress": f"{LOOPBACK}:{health}"},
        "metrics": {"bindAddress": f"{LOOPBACK}:{metrics}"},
        "webhook": {"host": LOOPBACK, "port": webhooks, "certDir": str(folder)},
    }
    (folder / "configuration.yaml").write_text(yaml.safe_dump(configuration))
    program = build.program(artefacts.LEADER_WORKER_SET, print) / "lws"
    kubectl = control_plane.kubectl
    hooks = _webhooks(control_plane, webhooks)
    with controller(control_plane, "lws", [program, f"--config={folder / 'configuration.yaml'}"], health):
        kubectl.apply(hooks)
        yield
        for each in hooks:
            kubectl.run("delete", each["kind"], each["metadata"]["name"])


@pytest.fixture
def nodes(kubectl: Kubectl, matrix_platform: Templates) -> Iterator[list[str]]:
    """Two nodes of the pool."""
    (pool,) = [
        each
        for each in manifests(matrix_platform)
        if (each["kind"], each["metadata"]["name"]) == ("NodePool", _POOL)
    ]
    made = nodes_of(pool, 2)
    kubectl.apply(made)
    names = [each["metadata"]["name"] for each in made]
    yield names
    kubectl.run("delete", "nodes", *names)


def test_a_group_of_two_whole_nodes_forms(
    kubectl: Kubectl, namespace: str, leader_worker_set: None, nodes: list[str], matrix_platform: Templates
) -> None:
    template = next(
        copy.deepcopy(each["spec"]["template"])
        for each in component_deployments(own_objects(matrix_platform))
        if named_pool(each["spec"]["template"]) == _POOL
    )
    # A worker over all accelerators of two nodes.
    resources = template["spec"]["containers"][0]["resources"]
    resources["requests"] = {"cpu": "1", "memory": "1Gi"}
    resources["limits"] = {"nvidia.com/gpu": "8"}
    group = {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "two-nodes"},
        "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": template}},
    }

    kubectl.apply(in_namespace(namespace, [group]))
    kubectl.wait_until(lambda: ready_pods(kubectl, namespace) == 2, "leader and worker run")

    members = pods(kubectl, namespace)
    assert {pod["spec"]["nodeName"] for pod in members} == set(nodes)
    assert {pod["metadata"]["labels"][_WORKER_INDEX] for pod in members} == {"0", "1"}
    addresses = {
        variable["value"]
        for pod in members
        for variable in pod["spec"]["containers"][0]["env"]
        if variable["name"] == "LWS_LEADER_ADDRESS"
    }
    assert addresses == {f"two-nodes-0.two-nodes.{namespace}"}


def test_what_the_chart_of_llm_d_renders_becomes_a_group_of_which_one_pod_is_in_the_pool(
    kubectl: Kubectl, namespace: str, leader_worker_set: None, nodes: list[str], tmp_path: Path
) -> None:
    deployment = DEPLOYMENTS["llm-d-two-nodes"]
    release = {
        "Release": deployment.release,
        "Namespace": namespace,
        "Values": deployment_values(deployment),
    }
    objects = rendered(release, stage_chart(charts_directory() / "llm-d-model", tmp_path))
    wanted = [each for each in objects if each["kind"] in ("LeaderWorkerSet", "ServiceAccount")]
    pool = next(each for each in objects if each["kind"] == "InferencePool")

    kubectl.apply(in_namespace(namespace, renamed("h200", _POOL, wanted)))
    kubectl.wait_until(lambda: ready_pods(kubectl, namespace) == 2, "both nodes' pods run")

    members = {pod["metadata"]["labels"][_WORKER_INDEX]: pod for pod in pods(kubectl, namespace)}
    assert {pod["spec"]["nodeName"] for pod in members.values()} == set(nodes)
    chosen = pool["spec"]["selector"]["matchLabels"].items()
    assert [chosen <= members[index]["metadata"]["labels"].items() for index in ("0", "1")] == [True, False]
    for pod in members.values():
        container = pod["spec"]["containers"][0]
        # A variable is put into arguments only where it is defined before them.
        defined = {each["name"] for each in container["env"]}
        assert set(re.findall(r"\$\((\w+)\)", " ".join(container["args"]))) <= defined


@pytest.mark.usefixtures("leader_worker_set", "nodes")
def test_the_capacity_shift_takes_whole_groups_and_brings_them_back(
    kubectl: Kubectl, namespace: str, numbers: KubernetesNumbers, tmp_path: Path
) -> None:
    """Red if a worker on two nodes cannot be lent: the controller must end all of its pods, and start all."""
    deployment = DEPLOYMENTS["llm-d-two-nodes"]
    values = deployment_values(deployment, shifted=True)
    values["processes"][-1] |= {"replicas": 0, "lent": True}
    release = {"Release": deployment.release, "Namespace": namespace, "Values": values}
    objects = rendered(release, stage_chart(charts_directory() / "llm-d-model", tmp_path))
    wanted = [each for each in objects if each["kind"] in ("LeaderWorkerSet", "ServiceAccount")]
    (name,) = (each["metadata"]["name"] for each in wanted if each["kind"] == "LeaderWorkerSet")
    kubectl.apply(in_namespace(namespace, renamed("h200", _POOL, wanted)))
    workers = dataclasses.replace(
        shifted_workers(),
        name=name,
        namespace=namespace,
        batch_only=True,
        scale="leaderworkerset.x-k8s.io/v1/leaderworkersets",
    )

    numbers.set_floor(workers, 1, 1)
    kubectl.wait_until(lambda: ready_pods(kubectl, namespace) == 2, "both nodes' pods run")
    kubectl.wait_until(
        lambda: numbers.workers([workers])[name] == LiveWorkers(1, 1, 1, 1), "the controller says so"
    )
    numbers.set_floor(workers, 0, 0)
    kubectl.wait_until(lambda: not pods(kubectl, namespace), "no pod is left")
    numbers.set_floor(workers, 1, 1)
    kubectl.wait_until(lambda: ready_pods(kubectl, namespace) == 2, "both nodes' pods run again")


def _webhooks(control_plane: ControlPlane, port: int) -> list[KubernetesObject]:
    """Upstream's configurations, pointing at loopback; that of pods sees only pods of groups."""
    folder = build.module_files(artefacts.LEADER_WORKER_SET_WEBHOOKS, print)
    text = (folder / "config" / "webhook" / "manifests.yaml").read_text()
    configurations = []
    for document in yaml.safe_load_all(text):
        configuration = on_loopback(document, f"lws-{document['metadata']['name']}", control_plane, port)
        for webhook in configuration["webhooks"]:
            if webhook["rules"][0]["resources"] == ["pods"]:
                webhook["objectSelector"] = {
                    "matchExpressions": [{"key": _GROUP_LABEL, "operator": "Exists"}]
                }
        configurations.append(configuration)
    return configurations
