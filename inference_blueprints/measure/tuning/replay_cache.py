"""Caches replays by their inputs, so that an interrupted search continues where it stopped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from inference_blueprints.measure.simulation import offline_replay
from inference_blueprints.measure.simulation.offline_replay import Latencies, SimulatedReplay
from inference_blueprints.measure.simulation.simulated_workers import SimulatedWorkers
from inference_blueprints.measure.tuning.replayed_workload import Demand, Router, Series
from inference_blueprints.tools import cache_directory
from inference_contracts.errors import UserError


@dataclass(frozen=True, slots=True)
class ReplayCache:
    """Replays in a folder, one file each."""

    directory: Path = field(default_factory=lambda: cache_directory() / "tuning" / "replays")

    def get(self, key: str) -> SimulatedReplay | None:
        """Return a replay that was kept; None where there is none.

        Raises UserError if its file is damaged.
        """
        path = self._path(key)
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            return SimulatedReplay(**values | {name: Latencies(**values[name]) for name in _LATENCIES})
        except FileNotFoundError:
            return None
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise UserError(f"{path}: is not a cached replay: {error}; remove it") from error

    def put(self, key: str, result: SimulatedReplay) -> None:
        """Keep a replay; nobody ever sees half of its file.

        key, result: What it depends on, and what came of it.
        Raises UserError if the folder cannot be written.
        """
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as draft:
                json.dump(asdict(result), draft)
            Path(draft.name).replace(path)
        except OSError as error:
            raise UserError(
                f"{path.parent}: cannot be written: {error.strerror}; set XDG_CACHE_HOME to another folder"
            ) from error

    def _path(self, key: str) -> Path:
        return self.directory / key[:2] / f"{key}.json"


_LATENCIES = ("time_to_first_token", "time_per_output_token", "end_to_end")


def demand_digest(demand: Demand) -> str:
    """Return the digest of a demand for keys."""
    return _digest(demand.content)


def replay_key(workers: Sequence[SimulatedWorkers], demand: str, router: Router, series: Series) -> str:
    """Return what stands for a replay and everything that it depends on.

    workers, router, series: What is replayed and how.
    """
    described = [asdict(each) for each in workers]
    return _digest(
        {
            "dynamo": version("ai-dynamo"),
            "simulation": _simulation_digest(),
            "workers": described,
            "demand": demand,
            "router": router,
            "series": asdict(series),
        }
    )


@cache
def _simulation_digest() -> str:
    """Return the digest of the code that configures the simulated engine."""
    files = sorted(Path(offline_replay.__file__).parent.glob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _digest(content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
