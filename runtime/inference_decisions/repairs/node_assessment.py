"""What a live reading of a node says about the evidence of its case."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.live_node import DcgmReading, LiveNode
from inference_decisions.repairs.repair_case import Evidence, RepairCase

#: ``proved``: the node has to go. ``contradicted``: nothing speaks against it any more. ``open``: not yet
#: decided.
Outcome = Literal["proved", "contradicted", "open"]

#: What a node often reports for a moment: with another signal it proves no more than alone.
_HAVE_TO_LAST: Final = ("gpus_missing", "node_condition")
#: Kinds of evidence that are judged by the number of DCGM engines on the node.
ENGINES_COUNT: Final = ("dcgm", "gpus_missing")
_ACCELERATORS: Final = "AcceleratedHardwareReady"


@dataclass(frozen=True, slots=True)
class Assessment:
    """What a reading says about a case."""

    outcome: Outcome
    """One of `Outcome`."""
    reason: str
    """Code of the reason."""


def assess(case: RepairCase, live: LiveNode, settings: HealthSettings, now: float) -> Assessment:
    """Return what a node's live reading says about the evidence against it.

    Evidence from before the boot, and conditions that the hardware contradicts, count for nothing: the node
    monitoring agent never takes some conditions back (aws/eks-node-monitoring-agent#266). The wait counts
    from the first evidence and not from a condition's last transition, which each further error moves
    (kubernetes-sigs/karpenter#2833).

    live: The node, read just now.
    settings: Limits.
    now: Seconds since the epoch.
    """
    if live.uid != case.node_uid:
        return Assessment("contradicted", "another_node")
    answers = [_one(each, live, settings, now) for each in case.evidence]
    return next((answer for answer in answers if answer.outcome == "proved"), None) or _together(
        case, answers, settings, now
    )


def _together(
    case: RepairCase, answers: list[Assessment], settings: HealthSettings, now: float
) -> Assessment:
    """Return what evidence says together of which no piece suffices alone."""
    pairs = zip(case.evidence, answers, strict=True)
    left = [(evidence, answer) for evidence, answer in pairs if answer.outcome != "contradicted"]
    if not left:
        return answers[-1]
    if len({evidence.kind for evidence, _ in left} - set(_HAVE_TO_LAST)) > 1:
        return Assessment("proved", "several_signals")
    if now - max(evidence.at for evidence, _ in left) > settings.forget_seconds:
        return Assessment("contradicted", "nothing_further")
    return left[0][1]


def _one(evidence: Evidence, live: LiveNode, settings: HealthSettings, now: float) -> Assessment:
    """Return what the reading says about one piece of evidence."""
    if evidence.at < live.booted_at and evidence.kind != "node_condition":
        return Assessment("contradicted", "older_than_boot")
    match evidence.kind:
        case "node_condition":
            return _node_condition(evidence, live, now)
        case "slow_worker" | "failing_worker":
            return _seen_from_outside(evidence, live)
        case "gpus_missing":
            return _missing(evidence, live, settings, now)
        case "dcgm":
            return _dcgm(evidence, live, settings, now)
        case _:
            return _of_hardware(evidence)


def _of_hardware(evidence: Evidence) -> Assessment:
    if evidence.fatal:
        return Assessment("proved", f"{evidence.kind}_{evidence.code}")
    return Assessment("open", "one_signal")


def _seen_from_outside(evidence: Evidence, live: LiveNode) -> Assessment:
    figure = live.slower if evidence.kind == "slow_worker" else live.failing
    if figure is None:
        return Assessment("open", "metrics_missing")
    if figure >= evidence.figure / 2:
        return Assessment("proved", evidence.kind)
    return Assessment("contradicted", "recovered")


def _missing(evidence: Evidence, live: LiveNode, settings: HealthSettings, now: float) -> Assessment:
    if not gpus_missing(live, settings, now):
        return Assessment("contradicted", "recovered")
    if now - evidence.since >= settings.confirm_seconds:
        return Assessment("proved", "gpus_missing")
    return Assessment("open", "not_long_enough")


def _node_condition(evidence: Evidence, live: LiveNode, now: float) -> Assessment:
    """Count from the first report: each further one may move the time of the condition."""
    if not any(evidence.code == each.code for each in live.conditions):
        return Assessment("contradicted", "recovered")
    if now - evidence.since >= evidence.figure:
        return Assessment("proved", "node_condition")
    return Assessment("open", "not_long_enough")


def without_recovered(case: RepairCase, live: LiveNode, settings: HealthSettings, now: float) -> RepairCase:
    """Return a case without evidence of what had to last and ended, unless it has no other.

    If the same comes again later, its time begins anew.

    now: Seconds since the epoch.
    """
    left = tuple(
        each
        for each in case.evidence
        if each.kind not in _HAVE_TO_LAST or _one(each, live, settings, now).outcome != "contradicted"
    )
    return replace(case, evidence=left) if left else case


def unproved_condition(live: LiveNode) -> str:
    """Return the reason of a condition that calls the node's accelerators broken. Empty if none does."""
    found = (each.reason for each in live.conditions if each.kind == _ACCELERATORS and each.healthy is False)
    return next(found, "")


def _dcgm(evidence: Evidence, live: LiveNode, settings: HealthSettings, now: float) -> Assessment:
    dcgm = live.dcgm
    if dcgm is not None and dcgm.host_engines > 1:
        return Assessment("contradicted", "second_dcgm")
    if dcgm is not None and dcgm.corrected_per_second >= settings.corrected_per_second:
        return Assessment("proved", "corrected_storm")
    if dcgm is not None and now - dcgm.at <= settings.stale_seconds and _clean(dcgm, live):
        return Assessment("contradicted", "sticky_condition")
    return Assessment("open", f"dcgm_{evidence.code}")


def _clean(dcgm: DcgmReading, live: LiveNode) -> bool:
    return dcgm.gpus >= live.gpus_expected and not dcgm.xids and not dcgm.uncorrectable


def gpus_missing(live: LiveNode, settings: HealthSettings, now: float) -> bool:
    """Return whether a node offers or lists fewer GPUs than it has, long enough after its boot.

    Kubernetes calls such a node ready, and an exporter without GPUs reports no error.

    now: Seconds since the epoch.
    """
    if now - live.booted_at < settings.boot_seconds:
        return False
    listed, dcgm = live.gpus_allocatable, live.dcgm
    # With a second engine of DCGM, what the exporter lists says nothing.
    if dcgm is not None and dcgm.host_engines == 1 and now - dcgm.at <= settings.stale_seconds:
        listed = min(listed, dcgm.gpus)
    return listed < live.gpus_expected
