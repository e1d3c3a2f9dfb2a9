"""Runs trials of single engines, without a frontend, in a network of their own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import inference_catalog as catalog
from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_catalog.model import DraftMethod
from inference_local.processes.child_processes import ProcessGroup, RunningProcess
from inference_local.serving.isolation import open_isolation
from inference_local.serving.vllm_cpu.argument_rules import RuledWorker
from inference_local.serving.vllm_cpu.connectors import RULE
from inference_local.serving.vllm_cpu.installation import VLLM
from inference_local.serving.vllm_cpu.scaled_models import write_scaled_draft, write_scaled_model

_PROGRAM = Path(__file__).with_name("engine_trials.py")
_MODEL = "Qwen/Qwen3-8B"
#: Methods of a draft for the model. A trial names the folder of the draft by its method.
_DRAFTS: Sequence[DraftMethod] = ("eagle", "eagle3")
# Bounds a hang of all trials together, not a speed.
_SECONDS = 7200.0
_ENVIRONMENT = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "OMP_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an engine did."""

    error: str
    """Why it failed. Empty if it answered."""
    prompts: tuple[int, ...]
    """Tokens of each prompt."""
    answers: tuple[tuple[int, ...], ...]
    """Tokens of each answer."""
    counters: Mapping[str, float]
    """Its Prometheus counters, by name."""
    log: str
    """Output of the engine, and of the one that computed the prompts."""


def run_trials(directory: Path, trials: Mapping[str, Mapping[str, Any]]) -> dict[str, Outcome]:
    """Run trials, and return their outcomes by name.

    directory: An empty folder.
    trials: Trials by name, see ``engine_trials.py``. By default, the model is Qwen3-8B.
    """
    connectors = _planned_connectors()
    named = {
        name: {"model": _MODEL, **_connected(_with_lmcache(trial, directory), connectors)}
        for name, trial in trials.items()
    }
    folders = {model: model.replace("/", "--") for model in {trial["model"] for trial in named.values()}}
    for model, folder in folders.items():
        write_scaled_model(catalog.model(model), directory / folder, tensor_parallel_size=2)
    for method in _DRAFTS:
        write_scaled_draft(directory / folders[_MODEL], directory / method, method)
    placed = {name: {**trial, "model": folders[trial["model"]]} for name, trial in named.items()}
    with ProcessGroup() as processes:

        def start(
            name: str, command: Sequence[str | Path], descriptors: Sequence[int] = ()
        ) -> RunningProcess:
            return processes.start(
                name,
                command,
                environment={"PATH": "/usr/bin:/bin", "HOME": str(directory), **_ENVIRONMENT},
                log_path=directory / f"{name}.out",
                pass_fds=descriptors,
                working_directory=directory,
            )

        network = open_isolation(lambda command, pipes: start("network", command, pipes))
        python = VLLM.python(print)
        command: list[str | Path] = [python, _PROGRAM, directory, json.dumps(placed)]
        program = start("trials", network.command(command))
        program.popen.wait(_SECONDS)
    lines = (directory / "trials.out").read_text(encoding="utf-8").splitlines()
    found = [json.loads(line) for line in lines if line.startswith('{"name"')]
    return {each["name"]: _outcome(each, directory / f"{each['name']}.log") for each in found}


def _planned_connectors() -> dict[str, Any]:
    """Return the connector of each role as the plan has it, by the key of the role in a trial."""
    roles = {role: {"pool": "l40s", "replicas": 1, "tensorParallelSize": 1} for role in ("prefill", "decode")}
    document = load_blueprint("quickstart-g6e").blueprint.model_dump(by_alias=True, exclude_unset=True)
    document["spec"]["models"][0]["deployments"] = [{"name": "main", "disaggregated": roles}]
    [deployment] = build_plan(Blueprint.model_validate(document)).models[0].deployments
    keys = {"prefill": "prefill", "decode": "engine"}
    found = {}
    for worker in deployment.workers:
        value = worker.arguments[worker.arguments.index("--kv-transfer-config") + 1]
        found[keys[worker.role]] = {"kv_transfer_config": json.loads(value)}
    return found


def _with_lmcache(trial: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    """Return a trial whose engine has the connector to LMCache of a plan, as it is on this machine.

    ``lmcache`` of the trial has words of the server's arguments that are left out.
    """
    if "lmcache" not in trial:
        return dict(trial)
    blueprint = load_blueprint("long-context-kv-cache").blueprint
    [worker] = build_plan(blueprint).models[0].deployments[0].workers
    planned = worker.arguments[worker.arguments.index("--kv-transfer-config") + 1]
    settings = RuledWorker("127.0.0.1", directory / "lmcache" / "model", {}, latent_attention=False)
    [here] = RULE.here((planned,), settings) or ()
    assert trial["lmcache"] in here
    value = json.loads(here.replace(trial["lmcache"], ""))
    return {**trial, "engine": {**trial["engine"], "kv_transfer_config": value}}


def _connected(trial: Mapping[str, Any], connectors: Mapping[str, Any]) -> dict[str, Any]:
    """Return a trial whose engines are connected if one computes the prompts of the other."""
    if "prefill" not in trial:
        return dict(trial)
    return {**trial, **{key: {**connector, **trial[key]} for key, connector in connectors.items()}}


def _outcome(values: Mapping[str, Any], log: Path) -> Outcome:
    return Outcome(
        values["error"] or "",
        tuple(values.get("prompts", ())),
        tuple(map(tuple, values.get("answers", ()))),
        values.get("counters", {}),
        log.read_text(encoding="utf-8", errors="replace"),
    )
