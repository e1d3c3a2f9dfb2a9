"""Workers that are tasks of ECS: their stacks deploy to the emulator, and real workers answer a job."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
import yaml
from rich.console import Console

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_local.local_platform import LocalPlatform
from inference_local.run_steps import Steps

pytestmark = pytest.mark.faults


def test_a_job_is_answered_by_what_tasks_are_told(tmp_path: Path) -> None:
    document = yaml.safe_load(shipped()["batch-g6e"].read_text())
    document["spec"]["batch"]["workers"] = {"min": 0, "max": 3, "ecs": {}}
    (tmp_path / "tasks.yaml").write_text(yaml.safe_dump(document))
    (tmp_path / "run").mkdir()
    loaded = load_blueprint(str(tmp_path / "tasks.yaml"))
    with LocalPlatform(loaded, build_plan(loaded.blueprint), tmp_path / "run") as platform:
        steps = Steps(Console(file=io.StringIO()), platform.scope.step_titles)
        parts = {part.name: part for part in platform.start(steps).parts}
        outcomes = platform.run_batch_jobs(steps)
        platform.check()
    assert parts["Batch workers"].state == "real"
    assert parts["Batch worker scaling"].state == "stubbed"
    assert parts["AWS::ApplicationAutoScaling::ScalingPolicy"].state == "stubbed"
    assert outcomes is not None
    [outcome] = outcomes
    assert (outcome.state, outcome.workers_killed) == ("completed", 1)
    assert outcome.is_whole
