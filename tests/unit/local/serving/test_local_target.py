"""What of a plan is started."""

from collections.abc import Callable
from pathlib import Path

import pytest

from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError
from inference_local.serving import simulated_kind
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.simulated_kind import WORKER_LIMIT, WORKER_PROCESSES, SimulatedKind


@pytest.mark.parametrize("replicas", [1, WORKER_PROCESSES])
def test_few_workers_have_a_process_each(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]], replicas: int
) -> None:
    (deployment,) = deployments_of(("l40s", replicas))
    assert deployment.workers[0].by_process == (1,) * replicas


def test_many_workers_share_processes_evenly(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    (deployment,) = deployments_of(("l40s", WORKER_PROCESSES + 3))
    assert deployment.workers[0].by_process == (2,) * 3 + (1,) * (WORKER_PROCESSES - 3)


def test_latencies_come_from_the_accelerator_of_the_pool(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    measured, unmeasured = deployments_of(("l40s", 1), ("l4", 1))
    assert measured.profile is not None
    assert (measured.profile.model, measured.profile.accelerator) == ("Qwen/Qwen3-8B", "l40s")
    assert unmeasured.profile is None


def test_an_answer_without_a_length_has_the_workloads(
    deployments_of: Callable[..., tuple[LocalDeployment, ...]],
) -> None:
    assert deployments_of(("l40s", 1))[0].answer_tokens == 50


def test_more_workers_than_this_machine_simulates_are_refused_with_both_numbers(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    blueprint = blueprint_of(("l40s", WORKER_LIMIT), ("l40s", 1))
    (finding,) = SimulatedKind(blueprint).findings()
    assert f"has {WORKER_LIMIT + 1} workers" in finding.message
    assert f"at most {WORKER_LIMIT};" in finding.message


def test_as_many_workers_as_this_machine_simulates_are_run(blueprint_of: Callable[..., Blueprint]) -> None:
    assert list(SimulatedKind(blueprint_of(("l40s", WORKER_LIMIT))).findings()) == []


def test_more_watches_than_linux_allows_are_refused_before_a_start(
    blueprint_of: Callable[..., Blueprint], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frontend without them never learns of its workers, and the run would wait for two minutes."""
    limit = tmp_path / "limit"
    monkeypatch.setattr(simulated_kind, "_WATCHES_LIMIT", limit)
    engines = SimulatedKind(blueprint_of(("l40s", 1), ("l40s", 1)))
    limit.write_text("64\n")
    engines.check()
    limit.write_text("63\n")
    with pytest.raises(UserError, match=r"4 frontends of the blueprint watch 64 folders, .* user 63; run"):
        engines.check()


def test_an_embedding_model_is_refused_because_no_engine_here_computes_vectors(
    blueprint_of: Callable[..., Blueprint],
) -> None:
    """The simulated engine would answer `/v1/embeddings` with 404, after everything else was started."""
    blueprint = blueprint_of(("l40s", 1))
    [model] = blueprint.spec.models
    spec = blueprint.spec.model_copy(update={"models": [model.model_copy(update={"task": "embed"})]})
    (finding,) = SimulatedKind(blueprint.model_copy(update={"spec": spec})).findings()
    assert finding.path == ("spec", "models", 0, "task")
    assert "the simulated engine computes no vectors" in finding.message
