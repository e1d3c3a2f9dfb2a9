"""How long synthesis of `ecs-g6e` takes on ECS, and with `eks` in the same file.

The value is the processor time for ECS in one warm process, the median of three rounds; the baseline is that
of the file in which the word is `eks`. The goal is at most the time for EKS.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import yaml

from benchmarks.harness.figure import Figure, run
from inference_blueprints.resources import blueprints_directory

_ROUNDS = 3
_GOAL_RATIO = 1.0
_CLUSTERS = {"ecs": {}, "eks": {"version": "1.36"}}


def measure() -> list[Figure]:
    """Take the measurement."""
    content = yaml.safe_load((blueprints_directory() / "ecs-g6e.yaml").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as directory:
        paths = []
        for name, section in _CLUSTERS.items():
            content["spec"]["cluster"] = {name: section}
            paths.append(Path(directory) / f"{name}.yaml")
            paths[-1].write_text(yaml.safe_dump(content), encoding="utf-8")
        program = [sys.executable, "-m", "benchmarks.harness.warm_synthesis", str(_ROUNDS)]
        on_ecs, on_eks = json.loads(run([*program, *paths]))
    return [Figure("ecs_synthesis", on_ecs, "s", baseline=on_eks, goal=_GOAL_RATIO)]
