"""The charts start the program that fills the node's cache before the worker, with the fewest permissions."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.types import Blueprint
from inference_local.manifests import validate_manifest
from inference_runtime import runtime_directory

COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"  # noqa: S105 -- an ARN
HUB = {"huggingFace": "Qwen/Qwen3-8B", "revision": COMMIT, "tokenSecretArn": TOKEN}
MIRRORED = {**HUB, "mirror": {}}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "dynamo-vllm": ({}, HUB),
    "dynamo-sglang": ({"engine": {"sglang": {}}}, HUB),
    "dynamo-sglang-mirrored": ({"engine": {"sglang": {}}}, MIRRORED),
    "dynamo-trtllm-mirrored": ({"engine": {"tensorrtLlm": {}}}, MIRRORED),
    "llm-d-vllm": ({"stack": {"llmD": {}}}, HUB),
}
KUBERNETES_VERSION = "1.35"
FOLDER = "/var/lib/kubelet/inference-blueprints"


@pytest.fixture(params=CASES)
def plan(request: pytest.FixtureRequest) -> DeploymentPlan:
    """Return a deployment of each engine and stack whose workers share."""
    changes, weights = CASES[request.param]
    document = yaml.safe_load((resources.blueprints_directory() / "quickstart-g6e.yaml").read_text())
    [model] = document["spec"]["models"]
    model |= {**copy.deepcopy(changes), "weights": weights}
    return build_plan(Blueprint.model_validate(document)).models[0].deployments[0]


@pytest.fixture
def manifests(plan: DeploymentPlan, render: Any) -> list[dict[str, Any]]:
    rendered = render(deployment_values(plan, weights_bucket="bucket"), plan.release, plan.chart)
    return list(rendered)


@pytest.fixture
def pod(manifests: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the pod of a worker."""
    for manifest in manifests:
        if manifest["kind"] == "DynamoGraphDeployment":
            return dict(manifest["spec"]["components"][1]["podTemplate"]["spec"])
        template = manifest.get("spec", {}).get("template", {})
        if manifest["kind"] == "Deployment" and template["metadata"]["labels"].get("llm-d.ai/role"):
            return dict(template["spec"])
    raise AssertionError("no worker")


def container(pod: dict[str, Any], name: str) -> dict[str, Any]:
    [found] = [each for each in (*pod["initContainers"], *pod["containers"]) if each["name"] == name]
    return dict(found)


def mounts(pod: dict[str, Any], name: str) -> dict[str, dict[str, Any]]:
    return {each["mountPath"]: each for each in container(pod, name)["volumeMounts"]}


def test_every_object_is_valid(manifests: list[dict[str, Any]]) -> None:
    for manifest in manifests:
        assert validate_manifest(manifest, KUBERNETES_VERSION) == []


def test_the_copy_is_held_from_before_the_worker_until_after_it(pod: dict[str, Any]) -> None:
    names = [each["name"] for each in pod["initContainers"]]
    assert names[:2] == ["node-folder", "node-cache"]
    sidecar = container(pod, "node-cache")
    assert sidecar["restartPolicy"] == "Always"
    assert sidecar["command"] == ["python3", "-m", "weights.node_cache"]
    environment = {each["name"]: each.get("value") for each in sidecar["env"]}
    assert sidecar["startupProbe"]["exec"]["command"] == ["test", "-e", environment["NODE_CACHE_READY_FILE"]]
    assert "node-cache" not in [each["name"] for each in pod["containers"]]


def test_the_worker_can_write_only_its_releases_kernels(pod: dict[str, Any], plan: DeploymentPlan) -> None:
    [worker] = plan.workers
    assert worker.node_cache is not None
    of_node = {path: each for path, each in mounts(pod, "main").items() if each["name"] == "node"}
    assert of_node == {
        "/models/Qwen/Qwen3-8B": {
            "name": "node",
            "mountPath": "/models/Qwen/Qwen3-8B",
            "subPath": f"weights/Qwen--Qwen3-8B@{COMMIT}",
            "readOnly": True,
        },
        "/compiled": {
            "name": "node",
            "mountPath": "/compiled",
            "subPath": f"compiled/{worker.node_cache.compiled}",
        },
    }
    assert worker.node_cache.compiled.startswith(f"{plan.release}@")


def test_only_one_short_container_is_root_and_it_has_no_capability(pod: dict[str, Any]) -> None:
    assert pod["securityContext"]["runAsNonRoot"] is True
    folder = container(pod, "node-folder")
    assert folder["command"] == ["chmod", "0770", "/node"]
    assert "restartPolicy" not in folder
    for each in (*pod["initContainers"], *pod["containers"]):
        security = each["securityContext"]
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"]["drop"] == ["ALL"]
        assert "privileged" not in security
        assert security.get("runAsUser") == (0 if each["name"] == "node-folder" else None)


def test_the_folder_lies_on_the_disk_of_the_pods(pod: dict[str, Any]) -> None:
    [volume] = [each for each in pod["volumes"] if "hostPath" in each]
    assert volume == {"name": "node", "hostPath": {"path": FOLDER, "type": "DirectoryOrCreate"}}
    used = {
        each["name"] for one in (*pod["initContainers"], *pod["containers"]) for each in one["volumeMounts"]
    }
    assert used <= {each["name"] for each in pod["volumes"]} | {"dshm"}


def test_the_program_and_its_settings_come_with_the_release(
    pod: dict[str, Any], plan: DeploymentPlan, manifests: list[dict[str, Any]]
) -> None:
    [program] = [each for each in manifests if each["metadata"]["name"] == f"{plan.release}-node-cache"]
    assert program["kind"] == "ConfigMap"
    folder = runtime_directory() / "weights"
    for name, text in program["data"].items():
        assert text == (folder / name).read_text(encoding="utf-8")
    assert "bucket.py" not in program["data"], "it needs boto3, which not every image has"
    environment = {each["name"]: each for each in container(pod, "node-cache")["env"]}
    assert ("WEIGHTS_BUCKET" in environment) != ("HF_TOKEN" in environment)
    if "WEIGHTS_BUCKET" in environment:
        assert environment["WEIGHTS_BUCKET"]["value"] == "bucket"


def test_the_worker_never_sees_the_token(pod: dict[str, Any]) -> None:
    main = container(pod, "main")
    assert "HF_TOKEN" not in {each["name"] for each in main["env"]}
    assert "secrets" not in {each["name"] for each in main["volumeMounts"]}
