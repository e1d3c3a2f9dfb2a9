"""The releases whose rendering is reviewed, by the name of its file in ``rendered/``.

They are every shipped deployment with Dynamo on EKS, and the samples that the tests of the other charts use.
"""

from __future__ import annotations

from typing import NamedTuple

from inference_blueprints.render.eks.model_values import deployment_values
from inference_blueprints.serving.types import DeploymentPlan
from tests.charts import batch_worker, direct, dynamo, front_door, llm_d, weights_mirror
from tests.charts.renderings import Manifest


class Sample(NamedTuple):
    """A release of a chart with its values."""

    values: Manifest
    release: str
    chart: str


def _of(plan: DeploymentPlan) -> Sample:
    values = deployment_values(plan, weights_bucket=llm_d.BUCKET, certificate_arn=llm_d.CERTIFICATE_ARN)
    return Sample(values, plan.release, plan.chart)


SAMPLES = {
    **{name: _of(plan) for name, plan in dynamo.DEPLOYMENTS.items()},
    **{name: _of(plan) for name, plan in llm_d.DEPLOYMENTS.items()},
    **{name: _of(plan) for name, plan in direct.DEPLOYMENTS.items()},
    **{
        name: Sample(values, batch_worker.RELEASE, batch_worker.CHART)
        for name, values in batch_worker.BOTH.items()
    },
    **{
        name: Sample(values, front_door.RELEASE, front_door.CHART) for name, values in front_door.BOTH.items()
    },
    weights_mirror.RELEASE: Sample(weights_mirror.GATED, weights_mirror.RELEASE, weights_mirror.CHART),
}
