from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import jinja2
import pytest

from inference_blueprints import resources
from inference_blueprints.catalog.charts import charts
from inference_blueprints.serving.chart_values import chart_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint

TEMPLATES = sorted(resources.helm_values_directory().glob("*/values.yaml.j2"))
UNRESOLVED = "${Token[TOKEN.123]}"
CLUSTER = {"cluster_name": "quickstart", "region": "us-west-2", "vpc_id": UNRESOLVED}
HUB_ARN = "arn:aws:secretsmanager:us-west-2:111122223333:secret:hub-AbCdEf"


def test_every_chart_has_values_and_all_values_are_of_a_chart() -> None:
    assert {path.parent.name for path in TEMPLATES} == charts().keys()


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda path: path.parent.name)
def test_every_value_passes_through_tojson(template: Path) -> None:
    expressions = re.findall(r"\{\{(.*?)\}\}", template.read_text(encoding="utf-8"), re.DOTALL)
    assert [text for text in expressions if not text.rstrip(" -").endswith("| tojson")] == []


@pytest.mark.parametrize("name", ["karpenter", "aws-load-balancer-controller", "dynamo-model"])
def test_a_variable_that_is_missing_is_an_error(name: str) -> None:
    with pytest.raises(jinja2.UndefinedError):
        chart_values(name)


def test_an_unknown_chart_is_an_error() -> None:
    with pytest.raises(jinja2.TemplateNotFound):
        chart_values("absent")


def test_tokens_of_the_cdk_arrive_as_they_are() -> None:
    assert chart_values("aws-load-balancer-controller", **CLUSTER)["vpcId"] == UNRESOLVED


@pytest.mark.parametrize("text", ['a"b', "a: b", "no", "1.30", "{x}", "# a", "<&'>", "a\nb", "ü", "", "null"])
def test_no_string_changes_the_document_around_it(text: str) -> None:
    values = chart_values("karpenter", cluster_name=text, interruption_queue="q", keeps_nodes=False)
    settings = values["settings"]
    assert (settings["clusterName"], settings["interruptionQueue"]) == (text, "q")


def test_values_hold_no_null_because_the_cdk_drops_them(make_blueprint: Callable[..., Blueprint]) -> None:
    def nulls(value: object) -> int:
        if isinstance(value, dict):
            return sum(nulls(item) for item in value.values())
        return sum(nulls(item) for item in value) if isinstance(value, list) else value is None

    deployment = build_plan(make_blueprint()).models[0].deployments[0]
    assert nulls(chart_values("dynamo-model", deployment=deployment)) == 0


def test_a_secret_is_named_and_its_value_is_nowhere(make_blueprint: Callable[..., Blueprint]) -> None:
    weights = {"huggingFace": "Qwen/Qwen3-8B", "tokenSecretArn": HUB_ARN}
    deployment = build_plan(make_blueprint(weights=weights)).models[0].deployments[0]
    values = chart_values("dynamo-model", deployment=deployment)
    assert values["secrets"] == [{"key": "HF_TOKEN", "arn": HUB_ARN}]
    frontend, worker = (process["environment"] for process in values["processes"])
    assert {"name": "HF_TOKEN", "secret": "HF_TOKEN"} in worker
    assert "HF_TOKEN" not in {entry["name"] for entry in frontend}


def test_a_pods_own_address_is_left_to_kubernetes(make_blueprint: Callable[..., Blueprint]) -> None:
    deployment = build_plan(make_blueprint()).models[0].deployments[0]
    for process in chart_values("dynamo-model", deployment=deployment)["processes"]:
        assert {"name": "DYN_TCP_RPC_HOST", "ownAddress": True} in process["environment"]
