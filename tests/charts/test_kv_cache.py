"""KV cache on NVMe and in a bucket, rendered by both charts."""

from __future__ import annotations

import json

import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.types import Blueprint
from tests.charts.renderings import Manifest, Render, Staged, run_helm

BUCKET = "kv-cache-of-qwen3"
CACHE = {"hostMemoryGib": 40, "nvme": {"gib": 200}, "shared": {"s3": {}}}


@pytest.fixture(params=[{"dynamo": {}}, {"llmD": {"prefixScorer": "precise"}}], ids=str)
def keeping(request: pytest.FixtureRequest) -> DeploymentPlan:
    """Return quickstart with every tier, on each stack in turn."""
    file = resources.blueprints_directory() / "quickstart-g6e.yaml"
    document = yaml.safe_load(file.read_text(encoding="utf-8"))
    document["spec"]["pools"][0]["instanceTypes"] = ["g6e.8xlarge"]
    model = document["spec"]["models"][0]
    model |= {"kvCache": CACHE, "stack": request.param}
    model["weights"]["revision"] = "v1"
    return build_plan(Blueprint.model_validate(document)).models[0].deployments[0]


@pytest.fixture
def keeping_values(keeping: DeploymentPlan) -> Manifest:
    """Return its chart's values."""
    return deployment_values(keeping, kv_cache_bucket=BUCKET)


def worker_pod(manifests: list[Manifest]) -> Manifest:
    """Return the pod of the workers: Dynamo's component, or llm-d's Deployment."""
    for manifest in manifests:
        if manifest["kind"] == "DynamoGraphDeployment":
            [found] = [each for each in manifest["spec"]["components"] if each["name"] == "worker"]
            return dict(found["podTemplate"]["spec"])
        if manifest["kind"] == "Deployment" and manifest["metadata"]["name"].endswith("-vllm-worker"):
            return dict(manifest["spec"]["template"]["spec"])
    raise AssertionError([manifest["kind"] for manifest in manifests])


def engine_of(pod: Manifest) -> Manifest:
    [found] = [each for each in pod["containers"] if "--kv-transfer-config" in each.get("args", [])]
    return dict(found)


def test_helm_finds_nothing_to_complain_of(
    keeping: DeploymentPlan, keeping_values: Manifest, staged: Staged
) -> None:
    result = run_helm("lint", "--strict", staged(keeping.chart), values=keeping_values)
    assert result.returncode == 0, result.stdout


def test_the_bucket_is_a_variable_that_the_argument_refers_to(
    render: Render, keeping: DeploymentPlan, keeping_values: Manifest
) -> None:
    engine = engine_of(worker_pod(render(keeping_values, keeping.release, keeping.chart)))
    assert {"name": "KV_CACHE_BUCKET", "value": BUCKET} in engine["env"]
    transfer = json.loads(engine["args"][engine["args"].index("--kv-transfer-config") + 1])
    server = transfer["kv_connector_extra_config"]["lmcache.mp.autostart.server_args"]
    assert "$(KV_CACHE_BUCKET).s3." in server


def test_the_disk_is_asked_for_and_mounted_where_the_cache_lies(
    render: Render, keeping: DeploymentPlan, keeping_values: Manifest
) -> None:
    pod = worker_pod(render(keeping_values, keeping.release, keeping.chart))
    engine = engine_of(pod)
    [worker] = keeping.workers
    disk = f"{worker.resources.ephemeral_storage_mib}Mi"
    assert engine["resources"]["requests"]["ephemeral-storage"] == disk
    [mount] = [each for each in engine["volumeMounts"] if each["mountPath"] == "/cache"]
    [volume] = [each for each in pod["volumes"] if each["name"] == mount["name"]]
    assert volume["emptyDir"] == {"sizeLimit": disk}
