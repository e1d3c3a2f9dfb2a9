"""Published rates of faults in fleets of GPUs, and what the simulation of a fleet assumes beside them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class FleetFaults:
    """Figures of a simulated fleet. Each has a source in the file.

    Parameters
    ----------
    rates
        Faults per GPU, release or thousand GPUs, and day.
    delays
        Seconds between something happening and a function seeing it.
    noise
        How healthy workers differ, and what their metrics lose.
    repair
        Mean seconds of the steps of a replacement.
    published
        Figures of others, for comparison.
    """

    rates: Mapping[str, float]
    delays: Mapping[str, float]
    noise: Mapping[str, float]
    repair: Mapping[str, float]
    published: Mapping[str, float]


def fleet_faults() -> FleetFaults:
    """Return the figures of the catalogue."""
    path = Path(__file__).resolve().parent / "data" / "fleet_faults.json"
    content = json.loads(path.read_text(encoding="utf-8"))
    parts = {
        part: {name: float(entry["value"]) for name, entry in content[part].items()}
        for part in ("rates", "delays", "noise", "repair", "published")
    }
    return FleetFaults(**parts)
