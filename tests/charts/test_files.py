"""Files that variables name are mounted from a ConfigMap, whose name changes with its content."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.types import DeploymentPlan, FilePath
from tests.charts.dynamo import DEPLOYMENTS
from tests.charts.llm_d import BUCKET
from tests.charts.renderings import Manifest, Render


@pytest.fixture
def deployment() -> DeploymentPlan:
    """Return a deployment on Dynamo."""
    return DEPLOYMENTS["qwen3-8b-main"]


def without_files(deployment: DeploymentPlan) -> DeploymentPlan:
    """Return the deployment without the files of its frontend's filter."""
    frontend, *others = deployment.processes
    environment = {
        name: value for name, value in frontend.environment.items() if not isinstance(value, FilePath)
    }
    return replace(deployment, processes=(replace(frontend, environment=environment), *others))


def with_file(deployment: DeploymentPlan, text: str) -> DeploymentPlan:
    """Return the deployment with a file of its frontend."""
    frontend, *others = without_files(deployment).processes
    environment = {**frontend.environment, "POLICY": FilePath("policy.yaml", text)}
    return replace(deployment, processes=(replace(frontend, environment=environment), *others))


def rendered(deployment: DeploymentPlan, render: Render) -> tuple[list[Manifest], list[Any]]:
    """Return the ConfigMaps with files, and the pods of the components."""
    values = deployment_values(deployment, weights_bucket=BUCKET)
    manifests = render(values, deployment.release, deployment.chart)
    [graph] = [each for each in manifests if each["kind"] == "DynamoGraphDeployment"]
    maps = [each for each in manifests if each["kind"] == "ConfigMap" and each.get("immutable")]
    return maps, [each["podTemplate"]["spec"] for each in graph["spec"]["components"]]


def test_the_frontend_finds_its_file(deployment: DeploymentPlan, render: Render) -> None:
    text = '{"a": "b"}\nc: |\n  d\n'
    [configuration], [frontend, *workers] = rendered(with_file(deployment, text), render)
    assert configuration["data"] == {"policy.yaml": text}
    [main] = frontend["containers"]
    [variable] = [each for each in main["env"] if each["name"] == "POLICY"]
    [mount] = [each for each in main["volumeMounts"] if each["name"] == "files"]
    assert variable["value"] == f"{mount['mountPath']}/policy.yaml"
    assert mount["readOnly"]
    [volume] = [each for each in frontend["volumes"] if each["name"] == "files"]
    assert volume["configMap"]["name"] == configuration["metadata"]["name"]
    assert all(volume["name"] != "files" for pod in workers for volume in pod["volumes"])


def test_another_content_starts_the_pods_again(deployment: DeploymentPlan, render: Render) -> None:
    (first, _), (second, _) = (rendered(with_file(deployment, text), render) for text in ("a: 1", "a: 2"))
    assert first[0]["metadata"]["name"] != second[0]["metadata"]["name"]


def test_without_files_there_is_no_config_map(deployment: DeploymentPlan, render: Render) -> None:
    maps, pods = rendered(without_files(deployment), render)
    assert not maps
    assert all(volume["name"] != "files" for pod in pods for volume in pod["volumes"])
