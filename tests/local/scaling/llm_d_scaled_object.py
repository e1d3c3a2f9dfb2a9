"""The ScaledObjects that the chart of llm-d renders for a deployment of the quickstart's model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.tools import helm
from inference_catalog.charts import charts_directory, stage_chart
from inference_local.emulator.kubernetes import render
from tests.local.monitoring.asked import quickstart

_KUBERNETES_VERSION = "1.35"


def llm_d_scaled_object(deployment: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Return the manifest for the only elastic role of a deployment.

    deployment: An entry of `deployments`.
    folder: Where the chart is staged.
    """
    blueprint = quickstart(stack={"llmD": {}}, deployments=[dict(deployment)])
    (model,) = build_plan(blueprint).models
    (planned,) = model.deployments
    objects = render(
        helm(),
        stage_chart(charts_directory() / planned.chart, folder),
        release=planned.release,
        namespace="inference",
        values=deployment_values(planned, weights_bucket="bucket"),
        kubernetes_version=_KUBERNETES_VERSION,
    )
    (found,) = [each for each in objects if each["kind"] == "ScaledObject"]
    return dict(found)
