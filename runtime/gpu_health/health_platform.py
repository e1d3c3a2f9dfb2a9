"""What the functions of GPU health read from their environment."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from inference_contracts import health_names
from inference_decisions.repairs.fault_rules import FaultRules
from inference_decisions.repairs.health_settings import HealthSettings
from operations.controller_settings import Cell, read_cell
from operations.operations_errors import OperationsSettingsError


@dataclass(frozen=True, slots=True)
class HealthPlatform:
    """A cell, and how its GPUs are watched."""

    cell: Cell
    settings: HealthSettings
    """The section `gpuHealth` of the blueprint. It does not know whether replacements are frozen."""
    rules: FaultRules
    """What signals mean."""
    accelerators: Mapping[str, int]
    """Accelerators by instance type."""


@cache
def health_platform() -> HealthPlatform:
    """Return what the environment says, once per process."""
    return read_health(os.environ)


def read_health(environment: Mapping[str, str]) -> HealthPlatform:
    """Return what an environment says. Raises OperationsSettingsError if a variable is missing or invalid."""
    text = environment.get(health_names.HEALTH_SETTINGS, "")
    try:
        document: dict[str, Any] = json.loads(text)
        settings = HealthSettings(
            action=document["action"],
            repaired_by=document["repairedBy"],
            max_unhealthy_percent=float(document["maxUnhealthyPercent"]),
            replacements_per_hour=int(document["replacementsPerHour"]),
            slow_gpus=bool(document["slowGpus"]),
            max_repairing_percent=float(document.get("maxRepairingPercent", 0)),
            reboots_per_node_per_day=int(document.get("rebootsPerNodePerDay", 0)),
        )
        accelerators = {name: int(count) for name, count in document["accelerators"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OperationsSettingsError(f"{health_names.HEALTH_SETTINGS} cannot be read: {error!r}") from error
    rules = FaultRules.parsed(_faults())
    return HealthPlatform(read_cell(environment), replace(settings, faults=rules), rules, accelerators)


def _faults() -> str:
    """Return the table of faults, which lies beside the packages in the folder of the code."""
    return (Path(__file__).resolve().parents[1] / health_names.FAULTS_FILE).read_text("utf-8")
