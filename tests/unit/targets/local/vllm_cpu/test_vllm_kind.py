"""Which blueprints run on vLLM here, with how many workers, and what is refused before anything starts."""

from collections.abc import Callable

import pytest

from inference_blueprints.errors import UserError
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_blueprints.targets.local.local_target import LocalTarget
from inference_blueprints.targets.local.vllm_cpu.machine import Machine
from inference_blueprints.targets.local.vllm_cpu.vllm_kind import VllmKind

_SMALL, _LARGE = Machine(16, 2), Machine(1000, 64)


def test_another_engine_is_refused_with_what_to_do() -> None:
    kind = VllmKind(load_blueprint("p6-b300-qwen3-235b").blueprint, _LARGE)
    [finding] = kind.findings()
    assert finding.path == ("spec", "models", 0, "engine")
    assert "'qwen3-235b' has the engine sglang" in finding.message
    assert "use simulated engines" in finding.message


def test_too_little_memory_is_refused_with_both_numbers(blueprint_of: Callable[..., Blueprint]) -> None:
    kind = VllmKind(blueprint_of(("l40s", 1)), Machine(2, 2))
    with pytest.raises(UserError, match=r"needs 7 GiB of memory, this machine has 2"):
        kind.check()


def test_replicas_are_reduced_and_the_table_of_exceptions_says_so() -> None:
    blueprint = load_blueprint("p5en-disaggregated").blueprint
    [deployment] = LocalTarget(blueprint, VllmKind(blueprint, _SMALL)).render(build_plan(blueprint).models[0])
    prefill, decode = deployment.workers
    assert (prefill.replicas, decode.replicas) == (2, 1)
    [row] = [each for each in prefill.replacements if each.setting == "replicas"]
    assert (row.workers, row.planned, row.here) == ("qwen3-32b-main, prefill", "12", "2")
    assert not [each for each in decode.replacements if each.setting == "replicas"]
    assert "2 of 12 planned workers" in prefill.detail
    assert "times mean nothing" in prefill.detail


def test_a_large_machine_runs_the_planned_replicas() -> None:
    blueprint = load_blueprint("p5en-disaggregated").blueprint
    [deployment] = LocalTarget(blueprint, VllmKind(blueprint, _LARGE)).render(build_plan(blueprint).models[0])
    assert [workers.replicas for workers in deployment.workers] == [12, 1]
    assert deployment.profile is None


def test_images_reach_the_engine_as_they_are(blueprint_of: Callable[..., Blueprint]) -> None:
    blueprint = blueprint_of(("l40s", 1))
    plan = build_plan(blueprint).models[0]
    assert LocalTarget(blueprint, VllmKind(blueprint, _LARGE)).render(plan)[0].images is None
    assert LocalTarget(blueprint).render(plan)[0].images is not None


def test_the_rate_of_a_replay_is_bounded_and_the_report_says_so(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    kind = VllmKind(blueprint_of(("l40s", 1)), _LARGE)
    [row] = kind.replay_replacements()
    assert (row.workers, row.planned, row.here) == ("answerer", "1", "0.5")
