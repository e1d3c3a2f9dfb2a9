"""`verify --local` on real engines: NIXL's counters rise; decode workers on their own turn it red."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.operate.check_results import CheckResult
from inference_blueprints.operate.verify.serving_access import Instance
from inference_blueprints.serving.types import DeploymentPlan
from inference_local.local_verification import (
    NOT_HERE,
    LocalAccess,
    ServedHere,
    served_here,
    verify_served,
)
from inference_local.run_state import RunningModel, RunState
from inference_local.serving.engine_names import EngineName
from inference_local.serving.vllm_cpu.machine import Machine
from inference_local.serving.vllm_cpu.vllm_kind import VllmKind
from tests.engines.running import RunningEngines, running_engines

pytestmark = pytest.mark.engines

NAME, RELEASE = "p5en-disaggregated", "qwen3-32b-main"
#: Memory for one worker of each role.
SMALL = Machine(memory_gib=12, processors=1)


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningEngines]:
    blueprint = load_blueprint(NAME).blueprint
    with running_engines(blueprint, tmp_path_factory.mktemp(NAME), VllmKind(blueprint, SMALL)) as running:
        yield running


@pytest.fixture(scope="module")
def served(engines: RunningEngines) -> ServedHere:
    """The running platform, as `local up --keep` publishes it."""
    models = tuple(RunningModel(each.model, each.base_url, each.context_length) for each in engines.endpoints)
    processes = engines.serving.served_processes()
    state = RunState(os.getpid(), NAME, "ready", models, engines=EngineName.VLLM, processes=processes)
    return served_here(load_blueprint(NAME).blueprint, state)


def seen(served: ServedHere) -> dict[str, list[CheckResult]]:
    """What the checks say, by their names."""
    found: dict[str, list[CheckResult]] = {}
    for each in verify_served(served, EngineName.VLLM):
        print(each)
        found.setdefault(each.check, []).append(each)
    return found


def severities(results: Sequence[CheckResult]) -> list[str]:
    return [each.severity for each in results]


def test_the_checks_of_a_cluster_hold_on_real_engines(served: ServedHere) -> None:
    """Every check that applies to processes holds, and `KV transfer` reads NIXL's counters."""
    found = seen(served)
    assert not [each for results in found.values() for each in results if each.severity == "error"]
    for check in ("workers", "routes", "models", "tokens", "structured output", "requests", "KV transfer"):
        assert set(severities(found[check])) == {"ok"}, check
    assert severities(found["objectives"]) == ["unknown"]
    assert "5 requests of " in found["objectives"][0].message
    assert "where times mean nothing" in found["objectives"][0].message
    messages = [each.message for each in found["KV transfer"]]
    assert messages[:2] == [f"{RELEASE}/{role}: 1 workers use UCX" for role in ("prefill", "decode")]
    assert "bytes were transferred during the check, and no transfer failed" in messages[2]
    assert {name for name in NOT_HERE if severities(found[name]) == ["unknown"]} == set(NOT_HERE)
    shown = " ".join(each.message for results in found.values() for each in results)
    assert " ms" not in shown
    assert "bit/s" not in shown


def test_a_worker_tells_of_the_transfers_that_it_received(served: ServedHere, tmp_path: Path) -> None:
    """The counters that verify adds up are vLLM's own, and only those of the decode worker rise."""
    (model,) = served.plan.models
    (deployment,) = model.deployments
    instances = served.access.instances(deployment)
    pages = {name: served.access.metrics(deployment, each[0]) for name, each in instances.items()}
    counter = "vllm:nixl_bytes_transferred_sum{"
    sums = {
        name: sum(float(line.split()[-1]) for line in page.splitlines() if line.startswith(counter))
        for name, page in pages.items()
    }
    assert sums["decode"] > 0
    assert sums["prefill"] == 0


def test_counters_that_do_not_rise_are_an_error(served: ServedHere, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decode workers whose counters stand still compute the prompts themselves: `KV transfer` is an error."""
    pages: dict[tuple[str, Instance], str] = {}
    read = LocalAccess.metrics

    def first_page(self: LocalAccess, deployment: DeploymentPlan, instance: Instance) -> str:
        return pages.setdefault((deployment.release, instance), read(self, deployment, instance))

    monkeypatch.setattr(LocalAccess, "metrics", first_page)
    found = seen(served)
    assert severities(found["tokens"]) == ["ok"]
    (idle,) = [each for each in found["KV transfer"] if each.severity == "error"]
    assert "no KV cache was transferred during the check; decode workers compute prompts" in idle.message


def test_a_missing_prefill_worker_is_an_error(engines: RunningEngines, served: ServedHere) -> None:
    """Without a prefill worker, the frontend refuses prompts, and `verify` names the worker."""
    (victim,) = [each for each in engines.serving.first_workers() if each.role == "prefill"]
    engines.serving.kill(victim)
    found = seen(served)
    (missing,) = [each for each in found["workers"] if each.severity != "ok"]
    assert missing.message.startswith(f"{RELEASE}/prefill: 0 of 1 are ready")
    assert "error" in severities(found["tokens"])
