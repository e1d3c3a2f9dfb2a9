"""One decision about one case: read live, decide, act, and say what to store."""

from __future__ import annotations

from dataclasses import replace

from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.live_node import LiveNode
from inference_decisions.repairs.node_assessment import without_recovered
from inference_decisions.repairs.repair_actions import RepairActionError, RepairActions
from inference_decisions.repairs.repair_case import RepairCase
from inference_decisions.repairs.repair_guards import HOLDS, FleetView
from inference_decisions.repairs.repair_steps import RepairStep, next_step


def advance(
    case: RepairCase, fleet: FleetView, settings: HealthSettings, actions: RepairActions, now: float
) -> RepairCase:
    """Take one step of a case, and return the case to store.

    The acts can be repeated, and the caller stores the case only on the version that it read. So an
    invocation that ended in between is resumed by the next one, and of two at once one is stored.

    case: A case that has not ended.
    fleet: Its pool and cell.
    settings: Limits.
    actions: Acts on the cell.
    now: Seconds since the epoch.
    """
    try:
        live = actions.read_live(case.node)
    except RepairActionError:
        return case.moved(case.state, now, "live_unreadable")
    if live is not None and live.uid == case.node_uid and case.state in ("suspected", "confirmed"):
        case = without_recovered(case, live, settings, now)
    step = next_step(case, live, fleet, settings, now)
    try:
        if step.act == "cordon" and not actions.reserve(case):
            return case.moved(case.state, now, "in_flight")
        if step.act == "verify":
            return _verified(case, step, actions, now)
        _act(case, live, step, actions)
        return _moved(case, live, step, actions, now)
    except RepairActionError as error:
        return _failed(case, error, settings, actions, now)


def _act(case: RepairCase, live: LiveNode | None, step: RepairStep, actions: RepairActions) -> None:
    match step.act:
        case "cordon":
            actions.cordon(case)
        case "uncordon":
            actions.uncordon(case)
        case "drain":
            actions.drain(case)
        case "replace" if live is not None:
            actions.replace(case, live)
        case "notify":
            actions.notify(case, step.text)


def _verified(case: RepairCase, step: RepairStep, actions: RepairActions, now: float) -> RepairCase:
    found = actions.verify(case)
    if not found.serving:
        return case.moved(case.state, now, "not_serving_yet")
    return _moved(replace(case, replacement=found.replacement), None, step, actions, now)


def _moved(
    case: RepairCase, live: LiveNode | None, step: RepairStep, actions: RepairActions, now: float
) -> RepairCase:
    """Return the case after a step that succeeded."""
    after = replace(case.moved(step.state, now, step.reason), attempts=0)
    if step.act == "drain" and case.reason in HOLDS:
        after = replace(after, changed_at=now)
    if step.act == "cordon" and live is not None:
        after = replace(after, owner_name=live.owner_name, instance=live.instance)
    if after.ended:
        actions.release(case)
    return after


def _failed(
    case: RepairCase, error: RepairActionError, settings: HealthSettings, actions: RepairActions, now: float
) -> RepairCase:
    """Return the case after an act that did not succeed. It is tried again, a few times."""
    tried = replace(case.moved(case.state, now, "act_failed"), attempts=case.attempts + 1)
    if tried.attempts < settings.attempts:
        return tried
    try:
        actions.notify(case, f"{case.state}: {error}")
    except RepairActionError:
        return tried
    actions.release(case)
    return tried.moved("gave_up", now, "act_failed")
