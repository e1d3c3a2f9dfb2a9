"""Charts rendered by the same helm that installs them."""

from __future__ import annotations

import pytest

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.types import DeploymentPlan
from tests.charts import dynamo, llm_d
from tests.charts.llm_d import BUCKET
from tests.charts.renderings import Manifest, Render, Renderer, Staged


@pytest.fixture(scope="session")
def renderer(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Renderer:
    """Return what renders each chart and set of values once in a run, also if several processes run tests."""
    folder = tmp_path_factory.mktemp("charts")
    run = folder.parent if worker_id == "master" else folder.parent.parent
    shared = run / "renderings"
    shared.mkdir(exist_ok=True)
    return Renderer(folder, shared)


@pytest.fixture(scope="session")
def render(renderer: Renderer) -> Render:
    """Return a function that renders a chart as a release."""
    return renderer.render


@pytest.fixture(scope="session")
def staged(renderer: Renderer) -> Staged:
    """Return a function that finds the folder of a chart with its dependencies."""
    return renderer.staged


@pytest.fixture(params=dynamo.UNLIKE)
def deployment(request: pytest.FixtureRequest) -> DeploymentPlan:
    """Return unlike deployments of Dynamo in turn."""
    return dynamo.DEPLOYMENTS[request.param]


@pytest.fixture
def values(deployment: DeploymentPlan) -> Manifest:
    """Return the chart's values for the deployment."""
    return deployment_values(deployment, weights_bucket=BUCKET)


@pytest.fixture
def manifests(render: Render, values: Manifest, deployment: DeploymentPlan) -> list[Manifest]:
    """Return the deployment's objects."""
    return render(values, deployment.release, dynamo.CHART)


@pytest.fixture(params=llm_d.DEPLOYMENTS)
def llm_d_name(request: pytest.FixtureRequest) -> str:
    """Return the name of each deployment on llm-d in turn."""
    return str(request.param)


@pytest.fixture
def llm_d_deployment(llm_d_name: str) -> DeploymentPlan:
    """Return its plan."""
    return llm_d.DEPLOYMENTS[llm_d_name]


@pytest.fixture
def llm_d_values(llm_d_deployment: DeploymentPlan) -> Manifest:
    """Return its chart's values."""
    return deployment_values(llm_d_deployment, weights_bucket=BUCKET)


@pytest.fixture
def rendered(render: Render, llm_d_values: Manifest, llm_d_deployment: DeploymentPlan) -> list[Manifest]:
    """Return its objects."""
    return render(llm_d_values, llm_d_deployment.release, llm_d.CHART)
