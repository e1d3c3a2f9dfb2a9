"""The checks of `blueprints verify` on a real API server: a deployed model, and what can be wrong with it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.check_results import CheckResult, run_checks
from inference_blueprints.operate.kubernetes import Kubectl
from inference_blueprints.operate.verify.node_checks import look_in
from inference_blueprints.operate.verify.synthesised_platform import ExpectedRelease, SynthesisedPlatform
from inference_blueprints.operate.verify.verification import CLUSTER_CHECKS
from inference_blueprints.operate.verify.verified_platform import RunningPlatform, VerifiedPlatform
from inference_blueprints.serving.plan import build_plan
from inference_catalog.charts import charts_directory, stage_chart
from inference_local.control_plane.control_plane import ControlPlane
from tests.cluster.helm import helm
from tests.cluster.nodes import node, nodes_of
from tests.cluster.objects import component_deployments, manifests, own_objects, releases
from tests.cluster.state import has, in_namespace, pods, ready_names, ready_pods
from tests.templates.support import Templates

NAMESPACE, RELEASE, POOL = "inference", "qwen3-8b-main", "l40s"
#: Time of all checks.
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
IDENTITY = "arn:aws:iam::111122223333:user/me"


@pytest.fixture(scope="module")
def templates(synthesise: Callable[[str], Templates]) -> Templates:
    return synthesise("quickstart-g6e")


@pytest.fixture(scope="module")
def platform(templates: Templates) -> VerifiedPlatform:
    """The shipped quickstart, whose other charts come in no Go module and are not installed here."""
    blueprint = load_blueprint("quickstart-g6e").blueprint
    made = {f"quickstart-{name}": template for name, template in templates.by_stack.items()}
    assembly = SynthesisedPlatform(made, {RELEASE: ExpectedRelease(RELEASE, NAMESPACE, "0.1.0")})
    identity = SimpleNamespace(get_caller_identity=lambda: {"Arn": IDENTITY})
    access = {"cluster": {"resourcesVpcConfig": {"endpointPublicAccess": False}}}
    eks = SimpleNamespace(
        describe_cluster=lambda name: access,  # noqa: ARG005 - as boto3 is called
        exceptions=SimpleNamespace(ResourceNotFoundException=LookupError),
    )
    account = Account("us-west-2")
    account._clients = {"sts": identity, "eks": eks}
    return VerifiedPlatform(account, blueprint, build_plan(blueprint), assembly, "quickstart-g6e", NOW)


@pytest.fixture(scope="module")
def running(
    control_plane: ControlPlane,
    templates: Templates,
    platform: VerifiedPlatform,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[RunningPlatform]:
    """Nodes, pools, our chart installed by helm, and the pods that Dynamo's operator would make."""
    kubectl = control_plane.kubectl
    karpenter = [each for each in manifests(templates) if each["kind"] in {"NodePool", "EC2NodeClass"}]
    (pool,) = [each for each in karpenter if (each["kind"], each["metadata"]["name"]) == ("NodePool", POOL)]
    nodes = [
        *(
            node(f"system-{number}", catalog.instance_type("m7i.xlarge"), labels={}, taints=[])
            for number in range(2)
        ),
        *nodes_of(pool, 2),
    ]
    names = [each["metadata"]["name"] for each in nodes]
    graphs = own_objects(templates)
    kubectl.apply([*karpenter, *nodes, *in_namespace(NAMESPACE, component_deployments(graphs))])
    _accept(kubectl)
    folder = tmp_path_factory.mktemp("helm")
    chart = stage_chart(charts_directory() / "dynamo-model", folder)
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump(releases(templates)[RELEASE]["Values"]))
    helm(
        control_plane,
        NAMESPACE,
        "install",
        RELEASE,
        str(chart),
        "--values",
        str(values),
    )
    kubectl.wait_until(lambda: ready_names(kubectl, "nodes") >= set(names), "nodes are ready")
    kubectl.wait_until(lambda: ready_pods(kubectl, NAMESPACE) == 4, "two frontends and two workers run")
    yield RunningPlatform(platform, kubectl)
    helm(control_plane, NAMESPACE, "uninstall", RELEASE)
    kubectl.run("delete", "deployments", "--all", "--namespace", NAMESPACE)
    kubectl.run("delete", "nodes", *names, "--ignore-not-found", "--wait=false")
    kubectl.run("delete", "nodepools,ec2nodeclasses", "--all", "--wait=false")


def test_a_deployed_model_is_well_but_for_its_tokens(running: RunningPlatform) -> None:
    """Nothing runs in the pods of nodes without kubelets, so no port of theirs can be opened."""
    seen = {each.check: each for each in _seen(running)}
    well = {name for name, each in seen.items() if each.severity == "ok"}
    assert well == {"nodes", "pools", "device plug-ins", "charts", "workers"}
    assert seen["charts"].message == "deployed: qwen3-8b-main 0.1.0"
    assert seen["tokens"].severity == "error"
    assert "qwen3-8b/main: qwen3-8b-main-frontend-" in seen["tokens"].message
    assert "cannot be reached: " in seen["tokens"].message
    assert seen["routes"].severity == "unknown"


def test_a_lost_node_is_seen_in_its_worker(running: RunningPlatform) -> None:
    kubectl = running.kubectl
    assert isinstance(kubectl, Kubectl)
    kubectl.run("cordon", f"{POOL}-0", f"{POOL}-1")
    kubectl.run("delete", "pods", "--namespace", NAMESPACE, "--field-selector", f"spec.nodeName={POOL}-0")
    kubectl.wait_until(
        lambda: any(pod["status"].get("phase") == "Pending" for pod in pods(kubectl, NAMESPACE)),
        "a worker waits",
    )
    kubectl.wait_until(
        lambda: any(not has(pod, "PodScheduled") for pod in pods(kubectl, NAMESPACE)), "it has no node"
    )
    (found,) = [each for each in _seen(running) if each.check == "workers" and each.severity != "ok"]
    assert found.severity == "error"
    assert "qwen3-8b-main/worker: 1 of 2 are ready" in found.message
    assert "has no node: 0/4 nodes are available" in found.message
    kubectl.run("uncordon", f"{POOL}-0", f"{POOL}-1")
    kubectl.wait_until(lambda: ready_pods(kubectl, NAMESPACE) == 4, "the worker runs")


def test_a_stranger_an_onlooker_and_a_closed_port(
    control_plane: ControlPlane, platform: VerifiedPlatform, tmp_path: Path
) -> None:
    """The words of a real API server are understood."""
    administrator = yaml.safe_load(control_plane.kubeconfig.read_text())
    stranger = {
        **administrator,
        "users": [{**administrator["users"][0], "user": {"token": "k8s-aws-v1.none"}}],
    }
    server = {**administrator["clusters"][0]["cluster"], "server": "https://127.0.0.1:1"}
    closed = {**administrator, "clusters": [{**administrator["clusters"][0], "cluster": server}]}
    answers = {
        name: look_in(platform, _kubectl(tmp_path / name, configuration))
        for name, configuration in {"stranger": stranger, "closed": closed}.items()
    }
    onlooker = look_in(platform, _Impersonating(control_plane.kubectl))
    assert f"{IDENTITY} has no access entry" in answers["stranger"].message
    assert f"{IDENTITY} has no permission to read the cluster" in onlooker.message
    assert "it is private and cannot be reached from here" in answers["closed"].message
    assert {each.severity for each in (*answers.values(), onlooker)} == {"error"}
    assert look_in(platform, control_plane.kubectl).severity == "ok"


class _Impersonating:
    """The administrator as somebody who may do nothing."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl

    def run(self, *arguments: str) -> str:
        return self._kubectl.run(*arguments, "--as", "somebody")

    def get(self, *arguments: str) -> list[dict[str, object]]:
        return self._kubectl.get(*arguments, "--as", "somebody")

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return self._kubectl.start(*arguments, "--as", "somebody")


def _seen(running: RunningPlatform) -> list[CheckResult]:
    return list(run_checks(CLUSTER_CHECKS, running))


def _kubectl(folder: Path, configuration: object) -> Kubectl:
    folder.mkdir()
    path = folder / "kubeconfig"
    path.write_text(yaml.safe_dump(configuration))
    return Kubectl(path)


def _accept(kubectl: Kubectl) -> None:
    """Say in Karpenter's place that it accepts every pool and node class."""
    condition = {"type": "Ready", "status": "True", "reason": "Ready", "message": ""}
    condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    patch = json.dumps({"status": {"conditions": [condition]}})
    for kind in ("nodepools", "ec2nodeclasses"):
        for each in kubectl.get(kind):
            name = each["metadata"]["name"]
            kubectl.run("patch", kind, name, "--subresource=status", "--type=merge", f"--patch={patch}")
