"""Charts rendered by the very helm that installs them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.chart_values import chart_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.shipped import shipped
from inference_blueprints.tools import helm

CHART = resources.charts_directory() / "dynamo-model"
KUBERNETES_VERSION = "1.35"

Manifest = dict[str, Any]
Render = Callable[..., list[Manifest]]


def shipped_deployments() -> list[DeploymentPlan]:
    """Return every deployment of every shipped blueprint."""
    return [
        deployment
        for name in shipped()
        for model in build_plan(load_blueprint(name).blueprint).models
        for deployment in model.deployments
    ]


@pytest.fixture(params=shipped_deployments(), ids=lambda deployment: deployment.release)
def deployment(request: pytest.FixtureRequest) -> DeploymentPlan:
    """Return each shipped deployment in turn."""
    plan: DeploymentPlan = request.param
    return plan


@pytest.fixture
def values(deployment: DeploymentPlan) -> Manifest:
    """Return the chart's values for the deployment."""
    return chart_values("dynamo-model", deployment=deployment)


@pytest.fixture
def run_helm(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs helm with values."""

    def run(*words: str, values: Manifest) -> subprocess.CompletedProcess[str]:
        file = tmp_path / "values.yaml"
        file.write_text(yaml.safe_dump(values), encoding="utf-8")
        command = [str(helm()), *words, "--values", str(file)]
        return subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)

    return run


@pytest.fixture
def render(run_helm: Callable[..., subprocess.CompletedProcess[str]]) -> Render:
    """Return a function that renders the chart as a release."""

    def run(values: Manifest, release: str = "release") -> list[Manifest]:
        words = ("--namespace", "inference", "--kube-version", KUBERNETES_VERSION)
        result = run_helm("template", release, str(CHART), *words, values=values)
        assert result.returncode == 0, result.stderr
        return [manifest for manifest in yaml.safe_load_all(result.stdout) if manifest]

    return run
