"""Logs of a real frontend and simulated workers: a request adds one line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import inference_catalog as catalog
from benchmarks.harness.measured_frontend import Load, MeasuredFrontend
from inference_blueprints.loading import load_blueprint
from inference_blueprints.measure.tokenizer import write_model_directory
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.stacks.dynamo import LOG_LEVELS
from inference_local.processes.child_processes import ProcessGroup

_REQUESTS = 40
_LOGS = ("frontend.log", "worker.log")


def _lines(folder: Path) -> Counter[str]:
    return Counter({name: len((folder / name).read_text().splitlines()) for name in _LOGS})


def _added(folder: Path, variables: Mapping[str, str]) -> Counter[str]:
    """Return how many lines some requests add to each log."""
    deployment = build_plan(load_blueprint("quickstart-g6e").blueprint).models[0].deployments[0]
    model = write_model_directory(catalog.model("Qwen/Qwen3-8B"), folder / "model")
    with ProcessGroup() as processes:
        frontend = MeasuredFrontend(
            deployment.entry_point,
            "frontend",
            folder / "frontend",
            model=model,
            processes=processes,
            variables=variables,
        )
        frontend.wait()
        frontend.cost(Load(_REQUESTS, 30, 5))
        before = _lines(folder / "frontend")
        frontend.cost(Load(_REQUESTS, 30, 5), first=_REQUESTS)
        return _lines(folder / "frontend") - before


def test_a_request_adds_one_line(tmp_path: Path) -> None:
    added = _added(tmp_path, {})
    assert _REQUESTS <= added["frontend.log"] < 1.25 * _REQUESTS
    assert added["worker.log"] < _REQUESTS / 4


def test_at_the_level_info_a_request_adds_seven_or_more(tmp_path: Path) -> None:
    added = _added(tmp_path, {LOG_LEVELS: "info"})
    assert added.total() >= 7 * _REQUESTS
