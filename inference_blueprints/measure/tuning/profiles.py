"""Speeds of workers: the catalogue's latency profiles, and those that aiconfigurator records once."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import inference_catalog as catalog
from inference_blueprints import tools
from inference_blueprints.resources import root
from inference_catalog import Catalogue, LatencyProfile
from inference_catalog.figures import stored_model

Say = Callable[[str], None]

_SCRIPT = "scripts/record_latency_profile.py"
#: Recordings at a time: each is one process that computes.
_AT_ONCE = 2
#: The first recording installs aiconfigurator, of 0.7 GB, in an environment of its own.
_LONGEST_SECONDS = 1800


@dataclass(frozen=True, slots=True, order=True)
class Speed:
    """What a profile is of."""

    model: str
    accelerator: str
    """`model`, `accelerator`: Names in the catalogue."""
    tensor_parallel_size: int
    """Devices of a worker."""
    engine: str
    """The blueprint's word for it."""

    @property
    def without_size(self) -> str:
        """Model, accelerator and engine as text."""
        return f"{self.model} on {self.accelerator} ({self.engine})"

    def __str__(self) -> str:
        """Return model, accelerators and engine as text."""
        return f"{self.model} on {self.tensor_parallel_size} x {self.accelerator} ({self.engine})"


@dataclass(frozen=True, slots=True)
class Profiles:
    """The profiles that are known."""

    directory: Path = field(default_factory=lambda: tools.cache_directory() / "tuning" / "measured")
    """Where recorded ones are kept, laid out like the catalogue. Those of releases before 0.2, one folder
    above, go beyond what was measured, and are not read."""

    def find(
        self, model: str, accelerator: str, tensor_parallel_size: int, engine: str
    ) -> LatencyProfile | None:
        """Return the profile of exactly this; None when there is none."""
        wanted = (model, accelerator, tensor_parallel_size, engine)
        return catalog.latency_profile(*wanted) or Catalogue(self.directory).latency_profile(*wanted)

    def record(self, wanted: Iterable[Speed], say: Say) -> dict[Speed, str]:
        """Record those that are missing, and return why others cannot be.

        wanted: What is looked for.
        say: Told what takes a while.
        Returns: Why there is no profile, by what it would be of.
        """
        missing = [
            speed
            for speed in sorted(set(wanted))
            if self.find(speed.model, speed.accelerator, speed.tensor_parallel_size, speed.engine) is None
        ]
        reasons = {speed: reason for speed in missing if (reason := _without_data(speed))}
        possible = [speed for speed in missing if speed not in reasons]
        if not possible:
            return reasons
        program = tools.uv()
        if program is None:
            reason = "recording it needs the program uv, which is not installed"
            return reasons | dict.fromkeys(possible, reason)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            failures = pool.map(lambda speed: self._record(program, speed, say), possible)
            found = dict(zip(possible, failures, strict=True))
        return reasons | {speed: failure for speed, failure in found.items() if failure}

    def _record(self, program: Path, speed: Speed, say: Say) -> str:
        """Run the recording program; return why it failed, or nothing."""
        say(f"recording the speed of {speed}, once; about 20 seconds, longer the first time")
        self.directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=self.directory, prefix=".recording-") as draft:
            command = [str(program), "run", "--no-project", "--script", str(root() / _SCRIPT)]
            command += [speed.model, speed.accelerator, str(speed.tensor_parallel_size)]
            command += ["--engine", speed.engine, "--directory", draft]
            try:
                result = subprocess.run(
                    command, capture_output=True, text=True, check=False, timeout=_LONGEST_SECONDS
                )
            except subprocess.TimeoutExpired:
                return f"recording it took more than {_LONGEST_SECONDS} seconds"
            files = list(Path(draft).rglob("*.json"))
            if result.returncode or len(files) != 1:
                return f"it cannot be recorded: {_last_line(result.stderr)}"
            target = self.directory / files[0].relative_to(draft)
            target.parent.mkdir(parents=True, exist_ok=True)
            files[0].replace(target)
        return ""


def has_measurements(accelerator: str) -> bool:
    """Return whether aiconfigurator has measurements of an accelerator. It has none of processors.

    accelerator: Name of an accelerator or processor.
    """
    known = catalog.accelerators().get(accelerator)
    return known is not None and known.performance_system is not None


def _without_data(speed: Speed) -> str:
    """Return why nothing can be recorded, or nothing."""
    if not has_measurements(speed.accelerator):
        return f"aiconfigurator has no measurements of {speed.accelerator}"
    if stored_model(speed.model, catalog.models()) is None:
        return (
            "only models of the catalogue can be recorded, with a KV cache in 16 bits and without speculation"
        )
    return ""


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else "no error message"
