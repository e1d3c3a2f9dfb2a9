"""Whole blueprints deployed for real: cdk, IAM, CDK's handler, helm and kubectl, up to a real API server.

Every test begins with the platform deployed, whatever the one before left.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from inference_blueprints.operate.kubernetes import KubectlFailed
from inference_blueprints.spec.source import shipped
from inference_blueprints.synthesis import synthesise
from inference_local.emulator.emulator import Emulator
from inference_local.emulator.emulator_deploy import DeployError, bootstrap, destroy
from tests.cluster.admission import held
from tests.cluster.deployment import Deployment, Template, edited, names, resource

CHART = "Custom::AWSCDK-EKS-HelmChart"
MANIFEST = "Custom::AWSCDK-EKS-KubernetesResource"
CAPACITY, MODEL = "quickstart-Capacity", "quickstart-Model-qwen3-8b"
GRAPH = "qwen3-8b-main"

pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def deployment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    folder = tmp_path_factory.mktemp("deployment")
    (folder / "logs").mkdir()
    with Emulator(folder, region="us-west-2", control_plane=True) as emulator:
        bootstrap(emulator, log_path=folder / "bootstrap.log", on_line=lambda _: None)
        yield Deployment(emulator, folder / "logs")


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The shipped blueprint, synthesised, with data that goes when it is destroyed."""
    return _synthesised(_document(), tmp_path_factory.mktemp("quickstart"))


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with one replica in place of two, a pool more, and a secret, which needs an add-on."""
    document = _document()
    model = document["spec"]["models"][0]
    model["deployments"][0]["aggregated"]["replicas"] = 1
    model["weights"]["tokenSecretArn"] = "arn:aws:secretsmanager:us-west-2:123456789012:secret:hub-AbCdEf"
    pool = copy.deepcopy(document["spec"]["pools"][0])
    document["spec"]["pools"].append({**pool, "name": "more"})
    return _synthesised(document, tmp_path_factory.mktemp("changed"))


@pytest.fixture(scope="module")
def moved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same on llm-d in place of Dynamo."""
    document = _document()
    document["spec"]["models"][0]["stack"] = {"llmD": {}}
    return _synthesised(document, tmp_path_factory.mktemp("moved"))


@pytest.fixture(scope="module")
def neighbour(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same under another name."""
    document = _document()
    document["metadata"]["name"] = "neighbour"
    return _synthesised(document, tmp_path_factory.mktemp("neighbour"))


@pytest.fixture
def deployed(deployment: Deployment, quickstart: Path) -> Deployment:
    if not deployment.has(quickstart):
        deployment.deploy(quickstart)
    return deployment


def test_every_layer_reaches_the_api_server(deployed: Deployment) -> None:
    assert names(deployed.kubectl, "nodepools") == {"inference-blueprints.system", "l40s"}
    assert _bound(deployed) == f"{GRAPH}-frontend"
    assert _workers(deployed) == 2
    nodes = deployed.kubectl.get("nodes")
    assert len(nodes) == 2
    assert {node["status"]["capacity"]["cpu"] for node in nodes} == {"4"}, "the shape of an m7i.xlarge"
    (karpenter,) = deployed.kubectl.get("deployments", "--namespace", "kube-system")
    assert karpenter["status"]["availableReplicas"] == 2, "helm waited for its pods"


def test_only_who_has_an_access_entry_is_let_in(deployed: Deployment) -> None:
    """The handler's role has one; the account's root is refused, as on AWS."""
    with pytest.raises(KubectlFailed, match=r"Unauthorized|logged in"):
        deployed.as_root("quickstart").run("get", "namespaces")


def test_a_deploy_killed_half_way_is_repeated_and_everything_goes_back(
    deployed: Deployment, quickstart: Path, changed: Path
) -> None:
    with ThreadPoolExecutor() as background, held(deployed.kubectl, "karpenter.sh", "nodepools") as asked:
        deploying = background.submit(deployed.deploy, changed)
        asked()
        _kill_cdk()
        with pytest.raises(DeployError, match="code -9"):
            deploying.result()
        assert deployed.stacks()[CAPACITY] == "UPDATE_IN_PROGRESS"
        assert names(deployed.kubectl, "nodepools") == {"inference-blueprints.system", "l40s"}
    assert _workers(deployed) == 2, "the stack of the model was not begun"
    # A person has set the number in the meantime. A deployment overwrites it, and does not fail.
    _set_workers(deployed, 5)
    deployed.deploy(changed)
    assert names(deployed.kubectl, "nodepools") == {"inference-blueprints.system", "l40s", "more"}
    assert _workers(deployed) == 1
    assert len(names(deployed.kubectl, "secretproviderclasses", "--namespace", "inference")) == 1
    deployed.deploy(quickstart)
    assert names(deployed.kubectl, "secretproviderclasses", "--namespace", "inference") == set()
    assert names(deployed.kubectl, "nodepools") == {"inference-blueprints.system", "l40s"}
    assert names(deployed.kubectl, "ec2nodeclasses") == {"inference-blueprints.system", "l40s"}
    assert _workers(deployed) == 2


def test_a_model_changes_its_stack_and_goes_back(deployed: Deployment, quickstart: Path, moved: Path) -> None:
    deployed.deploy(moved)
    assert _serving(deployed) == {"inferencepools": {GRAPH}, "dynamographdeployments": set()}
    assert _bound(deployed) == f"{GRAPH}-router"
    deployed.deploy(quickstart)
    assert _serving(deployed) == {"inferencepools": set(), "dynamographdeployments": {GRAPH}}
    assert _bound(deployed) == f"{GRAPH}-frontend"
    assert _workers(deployed) == 2


def test_a_bad_chart_value_fails_readably_and_rolls_back(
    deployed: Deployment, quickstart: Path, tmp_path: Path
) -> None:
    def misspell(template: Template) -> None:
        properties = resource(template, CHART, GRAPH)
        values = json.loads(properties["Values"])
        properties["Values"] = json.dumps({**values, "proceses": values["processes"]})

    with pytest.raises(DeployError, match="additional properties 'proceses' not allowed"):
        deployed.deploy(edited(quickstart, tmp_path / "bad", MODEL, misspell))
    assert deployed.stacks()[MODEL] == "UPDATE_ROLLBACK_COMPLETE"
    assert _workers(deployed) == 2


def test_a_bad_field_fails_readably_and_rolls_back(
    deployed: Deployment, quickstart: Path, tmp_path: Path
) -> None:
    def misspell(template: Template) -> None:
        properties = resource(template, MANIFEST, "l40s")
        parts = properties["Manifest"]["Fn::Join"][1]
        assert any('"limits"' in part for part in parts if isinstance(part, str))
        properties["Manifest"]["Fn::Join"][1] = [
            part.replace('"limits"', '"limitz"') if isinstance(part, str) else part for part in parts
        ]

    with pytest.raises(DeployError, match=r"unknown field \W+spec\.limitz"):
        deployed.deploy(edited(quickstart, tmp_path / "bad", CAPACITY, misspell))
    assert deployed.stacks()[CAPACITY] == "UPDATE_ROLLBACK_COMPLETE"
    (pool,) = [each for each in deployed.kubectl.get("nodepools") if each["metadata"]["name"] == "l40s"]
    assert pool["spec"]["limits"]


def test_destroy_leaves_nothing_but_the_neighbour(
    deployed: Deployment, quickstart: Path, neighbour: Path, tmp_path: Path
) -> None:
    deployed.deploy(neighbour, "neighbour-Cluster")
    beside = deployed.administrator("neighbour")
    nodes = names(beside, "nodes")
    assert len(nodes) == 2
    assert nodes.isdisjoint(names(deployed.kubectl, "nodes"))

    cloudformation = deployed.emulator.client("cloudformation")
    for stack in (name for name in deployed.stacks() if name.startswith("quickstart-")):
        cloudformation.update_termination_protection(StackName=stack, EnableTerminationProtection=False)
    destroy(deployed.emulator, quickstart, log_path=tmp_path / "destroy.log", on_line=lambda _: None)

    assert set(deployed.stacks()) == {
        "CDKToolkit",
        "neighbour-Data",
        "neighbour-Network",
        "neighbour-Cluster",
    }
    assert deployed.emulator.client("eks").list_clusters()["clusters"] == ["neighbour"]
    with pytest.raises(KubectlFailed, match="refused"):
        deployed.kubectl.run("get", "namespaces")
    assert names(beside, "nodes") == nodes


def _serving(deployment: Deployment) -> dict[str, set[str]]:
    """What is there of both stacks."""
    kinds = ("inferencepools", "dynamographdeployments")
    return {kind: names(deployment.kubectl, kind, "--namespace", "inference") for kind in kinds}


def _bound(deployment: Deployment) -> str:
    """The service that the load balancer sends requests to."""
    (binding,) = deployment.kubectl.get("targetgroupbindings", "--namespace", "inference")
    return str(binding["spec"]["serviceRef"]["name"])


def _document() -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(shipped()["quickstart-g6e"].read_text())
    document["spec"]["environment"]["dataRemoval"] = "destroy"
    return document


def _synthesised(document: dict[str, Any], folder: Path) -> Path:
    blueprint = folder / "blueprint.yaml"
    blueprint.write_text(yaml.safe_dump(document))
    synthesise(str(blueprint), folder / "cdk.out")
    return folder / "cdk.out"


def _workers(deployment: Deployment) -> int:
    """Replicas of the workers in the graph that the API server holds."""
    (graph,) = deployment.kubectl.get("dynamographdeployments", "--namespace", "inference")
    (count,) = [
        component["replicas"] for component in graph["spec"]["components"] if component["type"] == "worker"
    ]
    return int(count)


def _set_workers(deployment: Deployment, count: int) -> None:
    """Set the replicas of the workers by hand."""
    (graph,) = deployment.kubectl.get("dynamographdeployments", "--namespace", "inference")
    types = [component["type"] for component in graph["spec"]["components"]]
    place = f"/spec/components/{types.index('worker')}/replicas"
    change = json.dumps([{"op": "replace", "path": place, "value": count}])
    options = ("--namespace", "inference", "--type=json", f"--patch={change}")
    deployment.kubectl.run("patch", "dynamographdeployments", GRAPH, *options)


def _kill_cdk() -> None:
    """End the CDK command line at once, as a lost terminal or machine does."""
    children = psutil.Process().children()
    running = [each for each in children if each.status() != psutil.STATUS_ZOMBIE]
    (cdk,) = [each for each in running if "deploy" in each.cmdline()]
    cdk.kill()
