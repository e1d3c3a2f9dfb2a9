"""A target is a class and a line of a table on each side: a dummy runs one plan and refuses another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import MappingProxyType

import aws_cdk as cdk
import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render import cluster_targets
from inference_blueprints.render.cluster_targets import CLUSTER_TARGETS
from inference_blueprints.render.target import Target
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ModelPlan
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.types import Blueprint, Cluster
from inference_constructs.batch.model_worker import ModelWorker, WorkerCount
from inference_constructs.batch.worker_image import WorkerImage
from inference_contracts.errors import BlueprintError, Finding
from stacks import platform
from stacks.target_stacks import TargetStacks
from stacks.worker_compute import WorkerCompute


class DummyTarget(Target[tuple[str, ...]]):
    @classmethod
    def findings(cls, blueprint: Blueprint) -> Iterator[Finding]:
        for index, model in usable(blueprint.spec.models):
            if model.stack.llm_d:
                yield Finding(("spec", "models", index, "stack"), "the dummy does not run 'llmD'")

    def render(self, model: ModelPlan) -> tuple[tuple[str, ...], ...]:
        return tuple(
            tuple(" ".join(process.arguments) for process in deployment.processes)
            for deployment in model.deployments
        )


class DummyCompute(WorkerCompute):
    waits_for_image = False

    def add_workers(
        self, stack: cdk.Stack, workers: Sequence[ModelWorker], count: WorkerCount, image: WorkerImage
    ) -> None:
        for worker in workers:
            cdk.CfnOutput(stack, f"Dummy-{worker.model}", value=f"{count.maximum} workers of {image.uri}")


class DummyStacks(TargetStacks):
    def add(self) -> DummyCompute:
        foundation = self._foundation
        stack = cdk.Stack(foundation.app, foundation.stack_name("Dummy"), env=foundation.env)
        for model in foundation.plan.models:
            for index, arguments in enumerate(DummyTarget().render(model)):
                cdk.CfnOutput(stack, f"{model.name}-{index}", value="; ".join(arguments))
        return DummyCompute(foundation.network.models.gateway)


@pytest.fixture
def dummy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_targets, "CLUSTER_TARGETS", MappingProxyType({"eks": lambda: DummyTarget}))
    monkeypatch.setitem(platform.TARGETS, "eks", lambda: DummyStacks)


def stacks_of(blueprint: str) -> list[str]:
    loaded = load_blueprint(blueprint)
    app = cdk.App(context={"aws:cdk:disable-asset-staging": True})
    platform.PlatformStacks(app, loaded.blueprint, build_plan(loaded.blueprint))
    return [child.node.id for child in app.node.children if isinstance(child, cdk.Stack)]


@pytest.mark.usefixtures("dummy")
def test_the_tables_alone_decide_which_stacks_run_the_plan() -> None:
    assert stacks_of("quickstart-g6e") == ["quickstart-Data", "quickstart-Network", "quickstart-Dummy"]


@pytest.mark.usefixtures("dummy")
def test_batch_runs_its_workers_on_the_target() -> None:
    assert stacks_of("batch-g6e") == [
        "batch-Data",
        "batch-Network",
        "batch-Stores",
        "batch-Dummy",
        "batch-Batch",
    ]


@pytest.mark.usefixtures("dummy")
def test_what_a_target_cannot_run_is_an_error_of_the_blueprint_at_its_place() -> None:
    with pytest.raises(BlueprintError) as refused:
        load_blueprint("llm-d-disaggregated")
    (problem,) = refused.value.problems
    assert (problem.path, problem.message) == ("spec.models[0].stack", "the dummy does not run 'llmD'")
    assert problem.line > 1


def test_every_key_of_the_blueprint_has_a_target_and_its_stacks() -> None:
    keys = Cluster.model_fields.keys()
    assert CLUSTER_TARGETS.keys() == keys
    assert platform.TARGETS.keys() == keys
