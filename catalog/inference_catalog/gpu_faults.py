"""What signals of broken accelerators mean, and how often faults come in fleets."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from inference_contracts.records import dataclass

# Published rates of faults in fleets of GPUs, and what the simulation of a fleet assumes beside them.


@dataclass(frozen=True, slots=True)
class FleetFaults:
    """Figures of a simulated fleet. Each has a source in the file."""

    rates: Mapping[str, float]
    """Faults per GPU, release or thousand GPUs, and day."""
    delays: Mapping[str, float]
    """Seconds between something happening and a function seeing it."""
    noise: Mapping[str, float]
    """How healthy workers differ, and what their metrics lose."""
    repair: Mapping[str, float]
    """Mean seconds of the steps of a replacement."""
    published: Mapping[str, float]
    """Figures of others, for comparison."""


def fleet_faults() -> FleetFaults:
    """Return the figures of the catalogue."""
    path = Path(__file__).resolve().parent / "data" / "fleet_faults.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    parts = {
        part: {name: float(entry["value"]) for name, entry in content[part].items()}
        for part in ("rates", "delays", "noise", "repair", "published")
    }
    return FleetFaults(**parts)


def gpu_faults_file() -> Path:
    """Return the table of XIDs and other signals, which `FaultRules` of `gpu_health` parses."""
    return Path(__file__).resolve().parent / "data" / "gpu_faults.json"
