"""A small platform to tune, and replays that the tests share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pytest

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.measure.tuning.candidates import TuningCandidate, WorkerShape
from inference_blueprints.measure.tuning.evaluation import ReplayCache
from inference_blueprints.measure.tuning.profiles import Profiles, Say, Speed
from inference_blueprints.measure.tuning.tune import Stores
from inference_blueprints.spec.types import Blueprint

TEXT = """\
apiVersion: inference-blueprints/v1alpha1
kind: Blueprint
metadata: {name: tuned}
spec:
  environment: {region: us-west-2}
  cluster: {eks: {version: "1.35"}}
  pools:
  - {name: l40s, instanceTypes: [g6e.2xlarge], nodes: {max: 8}}
  - {name: h200, instanceTypes: [p5en.48xlarge], nodes: {max: 2}, efa: true, availabilityZone: us-west-2b}
  models:
  - name: qwen3-8b
    weights: {huggingFace: Qwen/Qwen3-8B}
    engine: {vllm: {}}
    workload: {inputTokens: 2000, outputTokens: 100, peakRequestsPerSecond: 6}
    objectives: {timeToFirstTokenP90Ms: 1000, timePerOutputTokenP90Ms: 60}
    deployments:
    - name: main
      aggregated: {pool: l40s, replicas: 2, tensorParallelSize: 1}
"""


class Silent:
    """Records the progress of a search."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.total = 0
        self.replayed: list[TuningCandidate] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def shapes(self, total: int) -> None:
        self.total = total

    def replaying(self, candidate: TuningCandidate) -> None:
        self.replayed.append(candidate)

    def looked_at(self, shape: WorkerShape) -> None:
        pass


@pytest.fixture
def progress() -> Silent:
    return Silent()


class OnlyKnown(Profiles):
    """The catalogue's profiles, without recording new ones."""

    def record(self, wanted: Iterable[Speed], say: Say) -> dict[Speed, str]:  # noqa: ARG002 - nothing takes long
        return {
            speed: "not recorded here"
            for speed in wanted
            if self.find(speed.model, speed.accelerator, speed.tensor_parallel_size, speed.engine) is None
        }


def stores_in(folder: Path) -> Stores:
    return Stores(OnlyKnown(folder / "profiles"), ReplayCache(folder / "replays"))


@pytest.fixture(scope="session")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    """Return stores in which a replay that any test asked for is kept: replays take most of the time."""
    return stores_in(tmp_path_factory.mktemp("stores"))


@pytest.fixture
def own_stores(tmp_path: Path) -> Stores:
    """Return empty stores."""
    return stores_in(tmp_path)


@pytest.fixture(scope="session")
def blueprint_of() -> Callable[..., Blueprint]:
    """Return the platform with parts of its text replaced."""

    def build(replacements: Mapping[str, str] | None = None) -> Blueprint:
        text = TEXT
        for old, new in (replacements or {}).items():
            assert old in text, old
            text = text.replace(old, new)
        return parse_blueprint(text, "tuned.yaml").blueprint

    return build
