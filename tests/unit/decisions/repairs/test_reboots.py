"""Which faults a reboot mends, and the steps from the reboot to a node that serves again or is replaced."""

# ruff: noqa: ARG002 - the node of the tests has the methods of RepairActions
from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest

from inference_catalog.gpu_faults import gpu_faults_file
from inference_decisions.repairs.fault_rules import FaultRules, HardwareSignal
from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.live_node import LiveCondition, LiveNode, RepairActionError, Verification
from inference_decisions.repairs.repair_case import Evidence, RepairCase
from inference_decisions.repairs.repair_guards import FleetView, guard, remedy
from inference_decisions.repairs.repair_progress import advance
from tests.unit.decisions.repairs.test_repairs import FLEET, NODE, NOW, SETTINGS, SLOW, case_of

RULES = FaultRules.parsed(gpu_faults_file().read_text("utf-8"))
CONTENT = json.loads(gpu_faults_file().read_text("utf-8"))
REBOOTS = replace(SETTINGS, reboots_per_node_per_day=1, faults=RULES)
HUNG = Evidence(kind="xid", code="119", at=NOW - 10, source="node-condition", fatal=True)
RESET = replace(HUNG, code="46")
CLOSED = replace(NODE, cordoned=True, cordoned_by_us=True, serving_pods=0, boot="first")
FULL = replace(CLOSED, purchase="capacity_block", spare=False)


@pytest.mark.parametrize(
    ("evidence", "reboots", "settings", "expected"),
    [
        ((RESET,), 0, REBOOTS, "reboot"),
        ((RESET,), 1, REBOOTS, "replace"),
        ((RESET,), 1, replace(REBOOTS, reboots_per_node_per_day=2), "reboot"),
        ((RESET,), 0, replace(REBOOTS, reboots_per_node_per_day=0), "replace"),
        ((HUNG,), 0, REBOOTS, "replace"),
        ((HUNG, RESET), 0, REBOOTS, "replace"),
        ((SLOW,), 0, REBOOTS, "replace"),
        ((SLOW, RESET), 0, REBOOTS, "reboot"),
        ((replace(RESET, kind="nvswitch", code="99"), RESET), 0, REBOOTS, "person"),
    ],
)
def test_the_table_says_what_mends_a_fault(
    evidence: tuple[Evidence, ...], reboots: int, settings: HealthSettings, expected: str
) -> None:
    """Red if hardware that is dead is rebooted, or a node more often than the key allows."""
    assert remedy(case_of(*evidence), replace(FLEET, reboots=reboots), settings) == expected


@pytest.mark.parametrize(
    ("reason", "kind", "code", "fatal"),
    [
        ("NvidiaXID79Error", "xid", "79", True),
        ("NvidiaXID63Error", "xid", "63", False),
        ("NvidiaDoubleBitError", "ecc", "uncorrectable", True),
        ("NvidiaFabricError", "nvswitch", "fabric", True),
        ("FabricManagerNotRunning", "nvswitch", "fabric_manager", True),
        ("DCGMHealthCode109", "nvswitch", "109", True),
        ("DCGMHealthCode101", "dcgm", "101", False),
        ("NvidiaDeviceCountMismatch", "dcgm", "device_count", False),
        ("NeuronDMAError", "neuron", "NeuronDMAError", True),
        ("OfNextYear", "dcgm", "OfNextYear", False),
    ],
)
def test_a_reason_of_the_agent_is_a_fault_of_the_table(
    reason: str, kind: str, code: str, *, fatal: bool
) -> None:
    """Red if a broken NVSwitch counts as an unknown finding of DCGM, which a healthy exporter contradicts."""
    found = RULES.evidence(
        HardwareSignal(
            kind="node_condition", code="", node="n", at=NOW, source="node-condition", reason=reason
        )
    )
    assert found is not None
    assert (found.kind, found.code, found.fatal) == (kind, code, fatal)


def test_each_reason_of_a_condition_has_a_fault_and_no_event_has_one() -> None:
    """Red if a row of the agent's list has no meaning, or names a fault that the table lacks."""
    for row in CONTENT["agent"]["reasons"]:
        assert (row["kind"] is None) == (row["severity"] == "Warning"), row
        assert row["kind"] is None or RULES.rule(row["kind"], row.get("code", "1")) is not None, row
    assert {each.get("remedy", "replace") for each in CONTENT["faults"]} == {"reboot", "replace", "person"}


@dataclass
class Rebooted:
    """A closed node that reboots when it is told to."""

    live: LiveNode | None = CLOSED
    fails: bool = False
    acts: list[str] = field(default_factory=list)

    def read_live(self, node: str) -> LiveNode | None:
        return self.live

    def reserve(self, case: RepairCase, places: int) -> bool:
        return True

    def release(self, case: RepairCase) -> None:
        self.acts.append("release")

    def cordon(self, case: RepairCase) -> None:
        self.acts.append("cordon")

    def uncordon(self, case: RepairCase) -> None:
        self.acts.append("uncordon")

    def drain(self, case: RepairCase) -> None:
        self.acts.append("drain")

    def reboot(self, case: RepairCase, live: LiveNode) -> None:
        self.acts.append("reboot")
        if self.fails:
            raise RepairActionError("UnauthorizedOperation")

    def replace(self, case: RepairCase, live: LiveNode) -> None:
        self.acts.append("replace")

    def verify(self, case: RepairCase) -> Verification:
        return Verification(serving=False)

    def notify(self, case: RepairCase, text: str) -> None:
        self.acts.append("notify")


def at(node: LiveNode, seconds: float) -> LiveNode:
    return replace(node, read_at=NOW + seconds)


def asked(nodes: Rebooted, *evidence: Evidence) -> RepairCase:
    """Return the case of a node that is empty, and whose reboot was asked for at `NOW`."""
    case = case_of(*(evidence or (RESET,))).moved("draining", NOW - 60, "drain")
    case = advance(case, FLEET, REBOOTS, nodes, NOW)
    assert (case.state, case.boot, nodes.acts) == ("rebooting", nodes.live and nodes.live.boot, [])
    return advance(case, FLEET, REBOOTS, nodes, NOW)


def test_a_node_is_rebooted_once_and_opened_when_it_is_whole() -> None:
    """Red if a reboot is asked for each minute, or a node is opened before its GPUs are back."""
    nodes = Rebooted(FULL)
    case = asked(nodes)
    nodes.live = at(replace(FULL, ready=None), 60)
    case = advance(case, FLEET, REBOOTS, nodes, NOW + 60)
    booted = replace(FULL, boot="second", booted_at=NOW + 80)
    nodes.live = at(replace(booted, gpus_allocatable=7), 120)
    case = advance(case, FLEET, REBOOTS, nodes, NOW + 120)
    assert (case.state, case.reason, nodes.acts) == ("rebooting", "booting", ["reboot"])
    nodes.live = at(booted, 180)
    case = advance(case, FLEET, REBOOTS, nodes, NOW + 180)
    assert (case.state, case.reason, nodes.acts) == ("done", "rebooted", ["reboot", "uncordon", "release"])


def test_a_host_without_an_identifier_of_its_boot_has_booted_when_its_agent_was_away() -> None:
    """Red if a host of ECS is opened before it went down, or never."""
    nodes = Rebooted(replace(CLOSED, boot=""))
    case = asked(nodes)
    for seconds, ready, state in ((60, True, "rebooting"), (120, None, "rebooting"), (180, True, "done")):
        nodes.live = at(replace(CLOSED, boot="", ready=ready), seconds)
        case = advance(case, FLEET, REBOOTS, nodes, NOW + seconds)
        assert case.state == state
    assert nodes.acts == ["reboot", "uncordon", "release"]


@pytest.mark.parametrize(("live", "acts"), [(CLOSED, ["replace"]), (FULL, ["notify", "release"])])
@pytest.mark.parametrize("how", ["away", "again", "condition", "refused"])
def test_a_reboot_that_does_not_help_is_followed_by_a_replacement_or_a_message(
    live: LiveNode, acts: list[str], how: str
) -> None:
    """Red if a full reservation loses a node, or a node that stays away is waited for without end."""
    nodes = Rebooted(live, fails=how == "refused")
    case = asked(nodes)
    after = replace(live, boot="second", booted_at=NOW + 80)
    moment = 120.0
    if how == "away":
        moment, after = REBOOTS.reboot_seconds + 1, replace(live, ready=None)
    elif how == "again":
        case = case.with_evidence(replace(RESET, at=NOW + 100))
    elif how == "condition":
        found = LiveCondition(
            "AcceleratedHardwareReady", healthy=False, reason="NvidiaXID46Error", since=NOW + 100
        )
        after = replace(after, conditions=(found,))
    elif how == "refused":
        after = live
        for attempt in range(1, REBOOTS.attempts - 1):
            nodes.live = at(live, attempt)
            case = advance(case, FLEET, REBOOTS, nodes, NOW + attempt)
        assert nodes.acts == ["reboot"] * (REBOOTS.attempts - 1)
    nodes.live = at(after, moment)
    before = list(nodes.acts)
    case = advance(case, FLEET, REBOOTS, nodes, NOW + moment)
    assert case.state == ("replacing" if acts == ["replace"] else "gave_up")
    assert nodes.acts == before + acts


def test_what_an_alarm_says_late_is_about_the_time_before_the_boot() -> None:
    """Red if the alarm of the fault that was mended has the node replaced after its reboot."""
    nodes = Rebooted()
    case = asked(nodes).with_evidence(
        Evidence(kind="ecc", code="uncorrectable", at=NOW + 130, source="alarm", fatal=True)
    )
    nodes.live = at(replace(CLOSED, boot="second", booted_at=NOW + 80), 180)
    assert advance(case, FLEET, REBOOTS, nodes, NOW + 180).reason == "rebooted"


@pytest.mark.parametrize("crash", ["before the call is stored", "before the opening is stored"])
def test_a_run_that_dies_in_a_reboot_is_resumed(crash: str) -> None:
    """Red if a node that has booted is rebooted again, or an opened one is taken for opened by people."""
    nodes = Rebooted()
    case = case_of(RESET).moved("draining", NOW - 60, "drain")
    case = advance(case, FLEET, REBOOTS, nodes, NOW)
    opened = crash == "before the opening is stored"
    if opened:
        case = advance(case, FLEET, REBOOTS, nodes, NOW)
    nodes.acts.clear()
    nodes.live = at(
        replace(CLOSED, boot="second", booted_at=NOW + 80, cordoned=not opened, cordoned_by_us=not opened),
        120,
    )
    after = advance(case, FLEET, REBOOTS, nodes, NOW + 120)
    assert (after.state, after.reason, nodes.acts) == ("done", "rebooted", ["uncordon", "release"])


def test_a_freeze_stops_a_reboot_and_its_end() -> None:
    """Red if a frozen platform reboots a node, or opens one."""
    frozen = replace(REBOOTS, frozen=True)
    nodes = Rebooted()
    case = case_of(RESET).moved("draining", NOW - 60, "drain")
    case = advance(case, FLEET, REBOOTS, nodes, NOW)
    for live in (CLOSED, replace(CLOSED, boot="second")):
        nodes.live = live
        after = advance(case, FLEET, frozen, nodes, NOW)
        assert (after.state, after.reason, nodes.acts) == ("rebooting", "frozen", [])


@pytest.mark.parametrize(
    ("evidence", "reboots", "outcome", "reason"),
    [
        (RESET, 0, "allow", "allowed"),
        (RESET, 1, "refuse", "no_spare"),
        (HUNG, 0, "refuse", "no_spare"),
        (replace(RESET, kind="nvswitch", code="99"), 0, "refuse", "needs_people"),
    ],
)
def test_a_full_reservation_gets_a_reboot_or_people(
    evidence: Evidence, reboots: int, outcome: str, reason: str
) -> None:
    """Red if a broken node of a full reservation is neither rebooted nor told of."""
    live = replace(NODE, purchase="capacity_block", spare=False)
    answer = guard(case_of(evidence), live, replace(FLEET, reboots=reboots), REBOOTS, NOW)
    assert (answer.outcome, answer.reason) == (outcome, reason)


@pytest.mark.parametrize(
    ("percent", "nodes", "in_flight", "outcome"),
    [(0, 100, 1, "wait"), (5, 100, 4, "allow"), (5, 100, 5, "wait"), (5, 19, 0, "allow"), (5, 19, 1, "wait")],
)
def test_as_many_repairs_at_once_as_the_share_says(
    percent: float, nodes: int, in_flight: int, outcome: str
) -> None:
    """Red if the key does nothing, or the default is more than one."""
    settings = replace(SETTINGS, max_repairing_percent=percent)
    fleet: FleetView = replace(FLEET, nodes=nodes, in_flight=in_flight)
    assert guard(case_of(RESET), NODE, fleet, settings, NOW).outcome == outcome
