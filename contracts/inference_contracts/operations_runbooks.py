"""Runbooks of the alarms of the Operations stack, as paths below the repository."""

from __future__ import annotations

from typing import Final

HARDWARE_FAULTS_RUNBOOK: Final = "docs/runbooks/hardware-faults.md"
CONTROLLER_FAILING_RUNBOOK: Final = "docs/runbooks/controller-failing.md"
CONTROLLER_STOPPED_RUNBOOK: Final = "docs/runbooks/controller-stopped.md"
EVENTS_LOST_RUNBOOK: Final = "docs/runbooks/controller-events-lost.md"
REPLACEMENT_STUCK_RUNBOOK: Final = "docs/runbooks/replacement-stuck.md"
REPLACEMENTS_HELD_RUNBOOK: Final = "docs/runbooks/replacements-held.md"
HEALTH_UNMEASURED_RUNBOOK: Final = "docs/runbooks/health-unmeasured.md"
SHIFT_INCOMPLETE_RUNBOOK: Final = "docs/runbooks/shift-incomplete.md"
SHIFT_UNMEASURED_RUNBOOK: Final = "docs/runbooks/shift-unmeasured.md"
OPERATIONS_RUNBOOKS: Final = (
    HARDWARE_FAULTS_RUNBOOK,
    CONTROLLER_FAILING_RUNBOOK,
    CONTROLLER_STOPPED_RUNBOOK,
    EVENTS_LOST_RUNBOOK,
    REPLACEMENT_STUCK_RUNBOOK,
    REPLACEMENTS_HELD_RUNBOOK,
    HEALTH_UNMEASURED_RUNBOOK,
    SHIFT_INCOMPLETE_RUNBOOK,
    SHIFT_UNMEASURED_RUNBOOK,
)
