"""Charts rendered by the same helm that installs them."""

from __future__ import annotations

import copy
import json
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.catalog.chart_staging import stage_chart
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.shipped import shipped
from inference_blueprints.targets.eks.model_values import deployment_values
from inference_blueprints.tools import helm
from tests.charts.llm_d import BUCKET, DEPLOYMENTS

KUBERNETES_VERSION = "1.35"

Manifest = dict[str, Any]
Render = Callable[..., list[Manifest]]


def shipped_deployments() -> list[DeploymentPlan]:
    """Return every deployment of every shipped blueprint that runs on EKS."""
    blueprints = [load_blueprint(name).blueprint for name in shipped()]
    return [
        deployment
        for blueprint in blueprints
        if blueprint.spec.cluster.eks
        for model in build_plan(blueprint).models
        for deployment in model.deployments
    ]


def of_chart(chart: str) -> list[DeploymentPlan]:
    """Return the shipped deployments that are rendered with a chart."""
    return [deployment for deployment in shipped_deployments() if deployment.chart == chart]


@pytest.fixture(params=of_chart("dynamo-model"), ids=lambda deployment: deployment.release)
def deployment(request: pytest.FixtureRequest) -> DeploymentPlan:
    """Return each shipped deployment of Dynamo in turn."""
    plan: DeploymentPlan = request.param
    return plan


@pytest.fixture
def values(deployment: DeploymentPlan) -> Manifest:
    """Return the chart's values for the deployment."""
    return deployment_values(deployment, weights_bucket=BUCKET)


@pytest.fixture
def staged(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that finds the folder of a chart with its dependencies."""
    return lambda chart: str(stage_chart(resources.charts_directory() / chart, tmp_path))


def helm_with_values(folder: Path, *words: str, values: Manifest) -> subprocess.CompletedProcess[str]:
    """Run helm in a folder with values."""
    file = folder / "values.yaml"
    # As CDK passes them on: what PyYAML leaves without quotes, such as `y`, Helm takes for a boolean.
    # CDK's function indents them. One line of a multiple of 4,096 bytes is empty to Helm 4.1.4.
    file.write_text(json.dumps(values, indent=2), encoding="utf-8")
    command = [str(helm()), *words, "--values", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


@pytest.fixture
def run_helm(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs helm with values."""
    return partial(helm_with_values, tmp_path)


@pytest.fixture(scope="session")
def render(tmp_path_factory: pytest.TempPathFactory) -> Render:
    """Return a function that renders a chart as a release; the same values are rendered once in a run."""
    folder = tmp_path_factory.mktemp("rendered")
    known: dict[tuple[str, str, str], list[Manifest]] = {}

    def run(values: Manifest, release: str = "release", chart: str = "dynamo-model") -> list[Manifest]:
        key = (json.dumps(values), release, chart)
        if key not in known:
            words = ("--namespace", "inference", "--kube-version", KUBERNETES_VERSION)
            staged = stage_chart(resources.charts_directory() / chart, folder)
            result = helm_with_values(folder, "template", release, str(staged), *words, values=values)
            assert result.returncode == 0, result.stderr
            known[key] = [manifest for manifest in yaml.safe_load_all(result.stdout) if manifest]
        return copy.deepcopy(known[key])

    return run


@pytest.fixture(params=DEPLOYMENTS)
def llm_d_name(request: pytest.FixtureRequest) -> str:
    """Return the name of each deployment on llm-d in turn."""
    return str(request.param)


@pytest.fixture
def llm_d_deployment(llm_d_name: str) -> DeploymentPlan:
    """Return its plan."""
    return DEPLOYMENTS[llm_d_name]


@pytest.fixture
def llm_d_values(llm_d_deployment: DeploymentPlan) -> Manifest:
    """Return its chart's values."""
    return deployment_values(llm_d_deployment, weights_bucket=BUCKET)


@pytest.fixture
def rendered(render: Render, llm_d_values: Manifest, llm_d_deployment: DeploymentPlan) -> list[Manifest]:
    """Return its objects."""
    return render(llm_d_values, llm_d_deployment.release, "llm-d-model")
