"""Models whose weights are mirrored, and the values of the Job that copies them."""

from __future__ import annotations

from typing import Any

import yaml

from inference_blueprints.render.eks.model_values import weights_mirror_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ModelPlan
from inference_blueprints.spec.source import shipped
from inference_blueprints.spec.types import Blueprint
from tests.charts.llm_d import HUB_ARN
from tests.charts.renderings import Manifest

CHART = "weights-mirror"
RELEASE = "qwen3-8b.weights"
BUCKET = "weights-of-the-platform"


def planned(**weights: Any) -> ModelPlan:
    document = yaml.safe_load(shipped()["quickstart-g6e"].read_text(encoding="utf-8"))
    section = document["spec"]["models"][0]
    revision = "0123456789abcdef0123456789abcdef01234567"
    section["weights"] = {"huggingFace": "Qwen/Qwen3-8B", "revision": revision, "mirror": {}, **weights}
    return build_plan(Blueprint.model_validate(document)).models[0]


def values_of(model: ModelPlan) -> Manifest:
    assert model.weights_mirror
    return weights_mirror_values(model.weights_mirror, weights_bucket=BUCKET)


#: Values of what mirrors a gated model.
GATED = values_of(planned(tokenSecretArn=HUB_ARN))
