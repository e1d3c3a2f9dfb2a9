"""A target is one class and one line of a table: a dummy runs one plan and refuses another with a reason."""

from __future__ import annotations

import aws_cdk as cdk
import pytest

from inference_blueprints.errors import UserError
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.types import Cluster
from stacks import platform
from stacks.target_stacks import TargetStacks


class DummyStacks(TargetStacks):
    @classmethod
    def refusals(cls, plan: ServingPlan) -> tuple[str, ...]:
        charts = {deployment.chart for model in plan.models for deployment in model.deployments}
        return () if charts == {"dynamo-model"} else (f"the dummy runs no {', '.join(sorted(charts))}",)

    def add(self) -> None:
        foundation = self._foundation
        stack = cdk.Stack(foundation.app, foundation.stack_name("Dummy"), env=foundation.env)
        for model in foundation.plan.models:
            for deployment in model.deployments:
                for process in deployment.processes:
                    name = f"{deployment.name}-{process.name}"
                    cdk.CfnOutput(stack, name, value=" ".join(process.arguments))


@pytest.fixture
def dummy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(platform.TARGETS, "eks", DummyStacks)


def stacks_of(blueprint: str) -> list[str]:
    loaded = load_blueprint(blueprint)
    app = cdk.App(context={"aws:cdk:disable-asset-staging": True})
    platform.PlatformStacks(app, loaded.blueprint, build_plan(loaded.blueprint))
    return [child.node.id for child in app.node.children if isinstance(child, cdk.Stack)]


@pytest.mark.usefixtures("dummy")
def test_the_table_alone_decides_which_stacks_run_the_plan() -> None:
    assert stacks_of("quickstart-g6e") == ["quickstart-Data", "quickstart-Network", "quickstart-Dummy"]


@pytest.mark.usefixtures("dummy")
def test_a_target_that_cannot_run_a_plan_says_why_before_any_stack() -> None:
    with pytest.raises(UserError, match=r"^cluster\.eks: the dummy runs no .*llm-d"):
        stacks_of("llm-d-disaggregated")


def test_every_key_of_the_blueprint_has_a_target() -> None:
    assert platform.TARGETS.keys() == Cluster.model_fields.keys()
