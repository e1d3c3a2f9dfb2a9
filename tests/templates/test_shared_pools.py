"""The stacks of a platform whose models share a pool by the hour."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

import app
from inference_blueprints.loading import parse_blueprint
from inference_contracts import operations_names
from inference_contracts.shift_names import deadlines_identifier
from tests.templates.shared_platform import FIRST, LENT, SECOND, document
from tests.templates.support import Templates, listed, statements

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def templates(tmp_path_factory: pytest.TempPathFactory) -> Templates:
    folder = tmp_path_factory.mktemp("shared")
    path = folder / "blueprint.yaml"
    path.write_text(yaml.safe_dump(document()))
    context = {"aws:cdk:disable-asset-staging": True}
    loaded = parse_blueprint(path.read_text(), str(path))
    app.synthesise(app.build_app(loaded, outdir=folder / "cdk.out", context=context))
    return Templates(folder / "cdk.out")


def test_the_function_may_set_its_own_numbers_and_no_others(templates: Templates) -> None:
    """Red if it cannot give batch workers, or may set the number of workers of real time itself."""
    role = templates.manifest("Operations", "ClusterRole", operations_names.SHIFT_GROUP)
    rules: dict[str, Any] = {each["resources"][0]: each for each in role["rules"]}
    assert rules["scaledobjects"]["resourceNames"] == [FIRST, SECOND]
    assert rules["deployments/scale"]["resourceNames"] == [LENT]
    assert rules["deployments/scale"]["verbs"] == ["get", "patch"]


def test_the_function_reads_what_deadlines_of_lent_workers_need_and_no_job(templates: Templates) -> None:
    """Red if DynamoDB denies it what batch's scheduler wrote."""
    (read,) = (
        each["Condition"]
        for resource in templates.resources("AWS::IAM::Policy", "Operations")
        for each in statements(resource)
        if listed(each["Action"]) == ["dynamodb:GetItem"]
    )
    assert read == {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [deadlines_identifier("nightly")]}}


def test_the_pool_comes_with_the_classes_that_its_pods_name(templates: Templates) -> None:
    """Red if pods are refused, because their class does not exist when they come."""
    named = {
        process["priorityClass"]
        for model in ("live", "shop", "nightly")
        for release in templates.charts(f"Model-{model}").values()
        for process in json.loads(release["Properties"]["Values"])["processes"]
    }
    values = {name: templates.manifest("Capacity", "PriorityClass", name)["value"] for name in sorted(named)}
    assert values["inference-batch"] < 0 < values["inference-real-time"]
