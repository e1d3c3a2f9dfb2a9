"""One decision about one case: read live, decide, act, and say what to store."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from inference_contracts.health_names import CaseState
from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.live_node import LiveNode, RepairActionError, RepairActions
from inference_decisions.repairs.node_assessment import (
    Assessment,
    assess,
    unproved_condition,
    without_recovered,
)
from inference_decisions.repairs.repair_case import ALARM_SOURCE, Evidence, RepairCase
from inference_decisions.repairs.repair_guards import (
    HOLDS,
    FleetView,
    GuardAnswer,
    breaker,
    guard,
    moved_together,
    no_place,
    remedy,
    stopped,
)

# The steps from a suspicion to a replacement that serves. Pure: what to do now, and where that leads.

#: What is done before the case moves on. ``drain`` and ``verify`` also say whether it moves on.
Act = Literal["none", "cordon", "uncordon", "drain", "reboot", "replace", "verify", "notify"]
#: When the reboot was asked for, among the times of a case.
REBOOT_ASKED: Final = "reboot_asked"
#: When the agent of a rebooted node was first seen away, among the times of a case. Also the reason then.
AWAY: Final = "away"
#: Reason of a case whose node came back from its reboot.
REBOOTED: Final = "rebooted"
_ACCELERATORS: Final = "AcceleratedHardwareReady"


@dataclass(frozen=True, slots=True)
class RepairStep:
    """What to do now."""

    act: Act
    """One of `Act`. It can be repeated: a step that was interrupted starts again."""
    state: CaseState
    """State of the case when the act is done."""
    reason: str
    """Code of the reason."""
    text: str
    """The reason in words, for people."""


def next_step(
    case: RepairCase, live: LiveNode | None, fleet: FleetView, settings: HealthSettings, now: float
) -> RepairStep:
    """Return the next step of a case.

    case: A case that has not ended.
    live: The node, read for this decision: an older reading is refused. None if it is gone.
    fleet: Its pool and cell.
    settings: Limits.
    now: Seconds since the epoch.
    """
    if live is not None and live.read_at < now:
        return RepairStep("none", case.state, "stale_reading", "the node was read before this decision")
    if case.state in ("rebooting", "replacing", "verifying"):
        return _under_way(case, live, settings, now)
    if live is None or live.uid != case.node_uid:
        return _gone(case)
    if case.state in ("cordoned", "draining"):
        return _draining(case, live, fleet, settings, now)
    return _suspected(case, live, fleet, settings, now)


def _under_way(case: RepairCase, live: LiveNode | None, settings: HealthSettings, now: float) -> RepairStep:
    if case.state == "rebooting":
        here = live is not None and live.uid == case.node_uid
        return _rebooting(case, live, settings, now) if live and here else _gone(case)
    if case.state == "replacing":
        return _replacing(case, live, settings, now)
    return _verifying(case, settings, now)


def _suspected(
    case: RepairCase, live: LiveNode, fleet: FleetView, settings: HealthSettings, now: float
) -> RepairStep:
    found = assess(case, live, settings, now)
    if found.outcome == "contradicted":
        return _cleared(found, live, settings)
    if found.outcome != "proved":
        return RepairStep("none", case.state, found.reason, "the evidence does not suffice")
    if case.state == "suspected":
        return RepairStep("none", "confirmed", found.reason, "a live reading confirms the evidence")
    answer = guard(case, live, fleet, settings, now)
    if answer.outcome == "allow":
        return RepairStep("cordon", "cordoned", found.reason, answer.text)
    if answer.outcome == "refuse":
        return RepairStep("notify", "refused", answer.reason, answer.text)
    return _held(case, answer)


def _cleared(found: Assessment, live: LiveNode, settings: HealthSettings) -> RepairStep:
    if found.reason == "nothing_further" and (condition := unproved_condition(live)):
        return RepairStep(
            "notify",
            "cleared",
            "condition_stands",
            f"the node monitoring agent reports `{condition}`, and nothing else has confirmed it for"
            f" {settings.forget_seconds:g} s; the node stays in service",
        )
    # A run that was killed after its cordon stored nothing: the cordon is taken back.
    act: Act = "uncordon" if live.cordoned_by_us else "none"
    return RepairStep(act, "cleared", found.reason, "nothing speaks against the node any more")


def _draining(
    case: RepairCase, live: LiveNode, fleet: FleetView, settings: HealthSettings, now: float
) -> RepairStep:
    """Return the step of a node that is cordoned.

    Whether it is still slow is not asked: a node without requests is not slow, and a GPU that stalls DCGM
    under load looks healthy when it is idle (NVIDIA/NVSentinel#1748). The breaker keeps requests where they
    are. A node that has none left goes on: to stop there would only leave less capacity.
    """
    held = stopped(settings) or (breaker(fleet, settings) if live.serving_pods else None)
    if held is not None:
        return _held(case, held)
    if (answer := moved_together(case, live, fleet)) is not None:
        return RepairStep("uncordon", "cleared", answer.reason, answer.text)
    if not live.cordoned:
        return RepairStep("uncordon", "cleared", "uncordoned_by_others", "somebody opened the node again")
    return _emptying(case, live, fleet, settings, now)


def _emptying(
    case: RepairCase, live: LiveNode, fleet: FleetView, settings: HealthSettings, now: float
) -> RepairStep:
    """Return the step of a cordoned node that nothing keeps from being repaired."""
    if live.serving_pods == 0:
        wanted = remedy(case, fleet, settings)
        if wanted == "reboot":
            return RepairStep("none", "rebooting", "empty", "no serving pod is left on the node")
        if wanted == "person":
            text = "neither a reboot nor another node mends the fault; the node stays cordoned"
            return RepairStep("notify", "gave_up", "needs_people", text)
        return _replaced(live, "empty", "no serving pod is left on the node")
    begins = case.state == "cordoned" or case.reason in HOLDS
    if begins or now - case.changed_at <= settings.drain_seconds:
        return RepairStep("drain", "draining", "drain", f"{live.serving_pods} serving pods have not ended")
    return RepairStep(
        "notify",
        "gave_up",
        "drain_too_long",
        f"{live.serving_pods} serving pods have not ended after {settings.drain_seconds:g} s; the node stays"
        " cordoned",
    )


def _replaced(live: LiveNode, reason: str, text: str) -> RepairStep:
    """Return the replacement of a closed and empty node. People are told if there is no place for another."""
    if (answer := no_place(live)) is not None:
        return RepairStep("notify", "gave_up", answer.reason, f"{text}; {answer.text}, so it stays cordoned")
    return RepairStep("replace", "replacing", reason, text)


def _rebooting(case: RepairCase, live: LiveNode, settings: HealthSettings, now: float) -> RepairStep:
    """Return the step of an empty node that is rebooted, and opened when it came back whole.

    EC2 has no token for a reboot, so it is not asked for again once it was, nor if the node has booted since.
    """
    if (held := stopped(settings)) is not None:
        return _held(case, held)
    if _has_booted(case, live):
        return _booted(case, live, settings, now)
    if not live.cordoned:
        return RepairStep("uncordon", "cleared", "uncordoned_by_others", "somebody opened the node again")
    if REBOOT_ASKED in case.times or (not live.boot and live.ready is not True):
        return _booting(case, live, settings, now)
    if case.attempts == settings.attempts - 1:
        return _replaced(live, "reboot_failed", "EC2 did not take the reboot")
    return RepairStep("reboot", "rebooting", "reboot_asked", "EC2 was asked to reboot the instance")


def _has_booted(case: RepairCase, live: LiveNode) -> bool:
    """Return whether a node booted: by its identifier of the boot, else if its agent was away and is back."""
    if live.boot:
        return live.boot != case.boot
    return AWAY in case.times and live.ready is True


def _booted(case: RepairCase, live: LiveNode, settings: HealthSettings, now: float) -> RepairStep:
    if live.cordoned and _is_broken_again(case, live, settings):
        return _replaced(live, "fault_again", "the fault came back after the reboot")
    if _is_whole(live, settings):
        return RepairStep("uncordon", "done", REBOOTED, "the node came back from its reboot")
    if not live.cordoned:
        return RepairStep("uncordon", "cleared", "uncordoned_by_others", "somebody opened the node again")
    return _booting(case, live, settings, now)


def _booting(case: RepairCase, live: LiveNode, settings: HealthSettings, now: float) -> RepairStep:
    if now - case.times.get(REBOOT_ASKED, case.changed_at) > settings.reboot_seconds:
        text = f"the node did not come back whole {settings.reboot_seconds:g} s after its reboot"
        return _replaced(live, "reboot_failed", text)
    if live.ready is not True:
        return RepairStep("none", "rebooting", AWAY, "the node is away")
    return RepairStep("none", "rebooting", "booting", "the node is not back from its reboot")


def _is_whole(live: LiveNode, settings: HealthSettings) -> bool:
    """Return whether a node that booted is ready, offers all its GPUs, and reports none of them as broken.

    The node monitoring agent begins anew with a boot. Until it runs, its condition is the one of before.
    """
    listed, dcgm = live.gpus_allocatable, live.dcgm
    if dcgm is not None and dcgm.host_engines == 1:
        listed = min(listed, dcgm.gpus)
    return live.ready is True and listed >= live.gpus_expected and not _broken_since(live, settings)


def _broken_since(live: LiveNode, settings: HealthSettings) -> float:
    """Return since when a condition calls accelerators broken. Zero if none does that means something."""
    for each in live.conditions:
        if each.kind == _ACCELERATORS and each.healthy is False:
            rule = settings.faults.rule(*settings.faults.fault(each.reason))
            if rule is None or rule.counts:
                return each.since
    return 0.0


def _is_broken_again(case: RepairCase, live: LiveNode, settings: HealthSettings) -> bool:
    """Return whether a fault was seen after the boot."""
    booted = max(live.booted_at, case.times.get(REBOOT_ASKED, case.changed_at))
    seen = any(each.fatal and each.at > earliest(each, booted, settings) for each in case.evidence)
    return seen or _broken_since(live, settings) > booted


def earliest(evidence: Evidence, booted: float, settings: HealthSettings) -> float:
    """Return until when evidence is about what was before a boot: an alarm comes minutes after its cause.

    booted: Time of the boot, in seconds since the epoch.
    """
    return booted + (settings.stale_seconds if evidence.source == ALARM_SOURCE else 0.0)


def _replacing(case: RepairCase, live: LiveNode | None, settings: HealthSettings, now: float) -> RepairStep:
    if live is None or live.uid != case.node_uid:
        return RepairStep("none", "verifying", "node_gone", "the node is gone")
    if now - case.changed_at > settings.replace_seconds:
        return RepairStep(
            "notify",
            "gave_up",
            "not_replaced",
            f"the node still exists {settings.replace_seconds:g} s after its replacement was asked for",
        )
    if (answer := stopped(settings)) is not None:
        return _held(case, answer)
    return RepairStep("replace", "replacing", "asked", "its owner was asked for another node")


def _verifying(case: RepairCase, settings: HealthSettings, now: float) -> RepairStep:
    if now - case.changed_at > settings.replace_seconds:
        return RepairStep(
            "notify",
            "gave_up",
            "no_replacement",
            f"no replacement serves {settings.replace_seconds:g} s after the node was gone",
        )
    return RepairStep("verify", "done", "serves", "a replacement serves")


def _gone(case: RepairCase) -> RepairStep:
    if case.state in ("cordoned", "draining", "rebooting"):
        return RepairStep("none", "verifying", "node_gone", "the node went before it was repaired")
    return RepairStep("none", "cleared", "node_gone", "the node is gone")


def _held(case: RepairCase, answer: GuardAnswer) -> RepairStep:
    return RepairStep("none", case.state, answer.reason, answer.text)


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
        if step.act == "cordon" and not actions.reserve(case, settings.places(fleet.nodes)):
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
        case "reboot" if live is not None:
            actions.reboot(case, live)
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
    if after.state == "rebooting" and case.state != "rebooting" and live is not None:
        after = replace(after, boot=live.boot)
    if step.act == "reboot" or (step.reason == AWAY and AWAY not in after.times):
        after = replace(after, times={**after.times, REBOOT_ASKED if step.act == "reboot" else AWAY: now})
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
