"""The file that says what signals of broken accelerators mean."""

from __future__ import annotations

from pathlib import Path


def gpu_faults_file() -> Path:
    """Return the table of XIDs and other signals, which `FaultRules` of `gpu_health` parses."""
    return Path(__file__).resolve().parent / "data" / "gpu_faults.json"
