"""Guards, steps and the known traps of reports about broken GPUs."""

# ruff: noqa: ARG002 - the node of the tests has the methods of RepairActions
from __future__ import annotations

import json
from dataclasses import dataclass, field, replace

import pytest

from inference_catalog.gpu_faults import gpu_faults_file
from inference_contracts.health_names import CaseState
from inference_decisions.repairs.fault_rules import FaultRules, HardwareSignal
from inference_decisions.repairs.health_settings import HealthSettings
from inference_decisions.repairs.live_node import (
    DcgmReading,
    LiveCondition,
    LiveNode,
    RepairActionError,
    Verification,
)
from inference_decisions.repairs.node_assessment import assess, gpus_missing
from inference_decisions.repairs.repair_case import Evidence, RepairCase, opened_case
from inference_decisions.repairs.repair_guards import FleetView, guard, has_same_cause
from inference_decisions.repairs.repair_progress import advance, next_step

NOW = 100_000.0
SETTINGS = HealthSettings(action="replace", repaired_by={"h200": "gpuHealth"})
FATAL = Evidence(kind="xid", code="79", at=NOW - 10, source="kernel-log", fatal=True)
SLOW = Evidence(kind="slow_worker", code="slow", at=NOW - 10, source="peers", fatal=False, figure=0.3)
NODE = LiveNode(
    name="node",
    uid="uid",
    pool="h200",
    rack="rack",
    read_at=NOW,
    booted_at=NOW - 80_000,
    ready=True,
    cordoned=False,
    owner="node_claim",
    owner_name="claim",
    instance="i-1",
    purchase="on_demand",
    spare=False,
    gpus_expected=8,
    gpus_allocatable=8,
    dcgm=DcgmReading(at=NOW, gpus=8),
    slower=0.3,
    peers=frozenset({"chat/1"}),
    serving_pods=2,
)
FLEET = FleetView(pool="h200", nodes=40, unhealthy=1, in_flight=0, started_last_hour=0, metrics_at=NOW - 20)


def case_of(*evidence: Evidence) -> RepairCase:
    case = opened_case(
        platform="shop", cell="shop", pool="h200", node="node", node_uid="uid", evidence=evidence[0]
    )
    for each in evidence[1:]:
        case = case.with_evidence(each)
    return case


def dcgm_evidence(code: str, at: float = NOW - 10) -> Evidence:
    return Evidence(kind="dcgm", code=code, at=at, source="node-condition", fatal=False)


@pytest.mark.parametrize(
    ("live", "fleet", "settings", "outcome", "reason"),
    [
        (NODE, FLEET, SETTINGS, "allow", "allowed"),
        (NODE, FLEET, replace(SETTINGS, action="observe"), "wait", "observe"),
        (NODE, FLEET, replace(SETTINGS, frozen=True), "wait", "frozen"),
        (NODE, FLEET, replace(SETTINGS, repaired_by={"h200": "nvSentinel"}), "refuse", "another_owner"),
        (NODE, FLEET, replace(SETTINGS, repaired_by={}), "refuse", "another_owner"),
        (replace(NODE, owner="none"), FLEET, SETTINGS, "refuse", "no_owner"),
        (replace(NODE, cordoned=True), FLEET, SETTINGS, "wait", "cordoned_by_others"),
        (replace(NODE, cordoned=True, cordoned_by_us=True), FLEET, SETTINGS, "allow", "allowed"),
        (replace(NODE, purchase="capacity_block"), FLEET, SETTINGS, "refuse", "no_spare"),
        (replace(NODE, purchase="capacity_block", spare=True), FLEET, SETTINGS, "allow", "allowed"),
        (NODE, replace(FLEET, nodes=1), SETTINGS, "refuse", "last_node"),
        (NODE, replace(FLEET, metrics_at=NOW - 180), SETTINGS, "allow", "allowed"),
        (NODE, replace(FLEET, metrics_at=NOW - 181), SETTINGS, "wait", "metrics_missing"),
        (NODE, replace(FLEET, shifted=frozenset({("rack", "rack")})), SETTINGS, "wait", "rack_shift"),
        (NODE, replace(FLEET, shifted=frozenset({("rack", "other")})), SETTINGS, "allow", "allowed"),
        (NODE, replace(FLEET, shifted=frozenset({("pool", "h200")})), SETTINGS, "wait", "pool_shift"),
        (NODE, replace(FLEET, shifted=frozenset({("peers", "chat/1")})), SETTINGS, "wait", "peers_shift"),
        (NODE, replace(FLEET, shifted=frozenset({("peers", "chat/2")})), SETTINGS, "allow", "allowed"),
        (NODE, replace(FLEET, unhealthy=3), SETTINGS, "wait", "too_many_unhealthy"),
        (NODE, replace(FLEET, unhealthy=2), SETTINGS, "allow", "allowed"),
        # Two of three or more, and never the whole pool.
        (NODE, replace(FLEET, nodes=3, unhealthy=2), SETTINGS, "allow", "allowed"),
        (NODE, replace(FLEET, nodes=3, unhealthy=3), SETTINGS, "wait", "too_many_unhealthy"),
        (NODE, replace(FLEET, nodes=2, unhealthy=1), SETTINGS, "allow", "allowed"),
        (NODE, replace(FLEET, nodes=2, unhealthy=2), SETTINGS, "wait", "too_many_unhealthy"),
        (NODE, replace(FLEET, nodes=100, unhealthy=5), SETTINGS, "allow", "allowed"),
        (NODE, replace(FLEET, nodes=100, unhealthy=6), SETTINGS, "wait", "too_many_unhealthy"),
        (NODE, replace(FLEET, in_flight=1), SETTINGS, "wait", "in_flight"),
        (NODE, replace(FLEET, started_last_hour=4), SETTINGS, "wait", "hourly_cap"),
    ],
)
def test_guards(
    live: LiveNode, fleet: FleetView, settings: HealthSettings, outcome: str, reason: str
) -> None:
    answer = guard(case_of(SLOW), live, fleet, settings, NOW)
    assert (answer.outcome, answer.reason) == (outcome, reason)


@pytest.mark.parametrize(
    "fleet",
    [
        replace(FLEET, shifted=frozenset({("rack", "rack")})),
        replace(FLEET, nodes=1),
        replace(FLEET, metrics_at=NOW - 600),
    ],
    ids=["shift", "only node", "no metrics"],
)
def test_a_fault_that_the_hardware_reports_needs_no_comparison(fleet: FleetView) -> None:
    """Red if a shift, missing metrics or a pool of one node keep a node whose hardware is broken."""
    assert guard(case_of(FATAL), NODE, fleet, SETTINGS, NOW).outcome == "allow"


def test_a_second_dcgm_proves_nothing() -> None:
    live = replace(NODE, dcgm=DcgmReading(at=NOW, gpus=0, host_engines=2))
    assert assess(case_of(dcgm_evidence("101")), live, SETTINGS, NOW).reason == "second_dcgm"
    rules = FaultRules.parsed(gpu_faults_file().read_text())
    lost = HardwareSignal(kind="dcgm", code="connection", node="node", at=NOW, source="node-condition")
    assert rules.evidence(lost) is None


def test_a_sticky_condition_is_contradicted_by_the_hardware_or_by_a_boot() -> None:
    condition = LiveCondition("AcceleratedHardwareReady", healthy=False, reason="DCGMError", since=NOW - 9e4)
    live = replace(NODE, conditions=(condition,))
    fresh = case_of(dcgm_evidence("101", at=NOW - 300))
    assert assess(fresh, live, SETTINGS, NOW).reason == "sticky_condition"
    old = case_of(replace(FATAL, at=condition.since, source="node-condition"))
    assert assess(old, live, SETTINGS, NOW).reason == "older_than_boot"


def test_several_errors_do_not_start_the_wait_again() -> None:
    missing = Evidence(kind="gpus_missing", code="allocatable", at=NOW - 150, source="node", fatal=False)
    case = case_of(missing)
    for seconds in range(120, 0, -30):
        case = case.with_evidence(replace(missing, code=f"error-{seconds}", at=NOW - seconds))
    assert case.opened_at == NOW - 150
    live = replace(NODE, gpus_allocatable=7)
    assert assess(case, live, SETTINGS, NOW).outcome == "proved"


def test_a_gpu_that_stalls_dcgm_is_found_by_a_second_signal() -> None:
    stalled = dcgm_evidence("stalled")
    silent = replace(NODE, dcgm=None)
    assert assess(case_of(stalled), silent, SETTINGS, NOW).outcome == "open"
    assert assess(case_of(stalled, SLOW), silent, SETTINGS, NOW).outcome == "proved"
    storm = replace(NODE, dcgm=DcgmReading(at=NOW - 900, gpus=8, corrected_per_second=17_700))
    assert assess(case_of(stalled), storm, SETTINGS, NOW).reason == "corrected_storm"


def test_an_idle_gpu_that_looks_healthy_again_is_still_replaced() -> None:
    case = case_of(dcgm_evidence("stalled"), SLOW).moved("draining", NOW - 60, "drain")
    idle = replace(NODE, cordoned=True, cordoned_by_us=True, serving_pods=0, slower=None)
    assert next_step(case, idle, FLEET, SETTINGS, NOW).act == "replace"


def test_no_gpu_is_not_healthy_but_a_boot_is_waited_for() -> None:
    none = replace(NODE, gpus_allocatable=0, dcgm=DcgmReading(at=NOW, gpus=0))
    assert gpus_missing(none, SETTINGS, NOW)
    assert gpus_missing(replace(NODE, dcgm=DcgmReading(at=NOW, gpus=7)), SETTINGS, NOW)
    assert not gpus_missing(NODE, SETTINGS, NOW)
    assert not gpus_missing(replace(none, booted_at=NOW - 60), SETTINGS, NOW)


@pytest.mark.parametrize(("code", "meaning"), [("79", "fatal"), ("94", "open"), ("13", ""), ("999", "open")])
def test_xids(code: str, meaning: str) -> None:
    rules = FaultRules.parsed(gpu_faults_file().read_text())
    found = rules.evidence(HardwareSignal(kind="xid", code=code, node="n", at=NOW, source="kernel-log"))
    assert ("" if found is None else "fatal" if found.fatal else "open") == meaning


def test_no_code_has_two_meanings_and_each_source_exists() -> None:
    content = json.loads(gpu_faults_file().read_text())
    codes = [(entry["kind"], str(code)) for entry in content["faults"] for code in entry["codes"]]
    assert len(codes) == len(set(codes))
    assert {entry["source"] for entry in content["faults"]} <= content["sources"].keys()
    assert {entry["meaning"] for entry in content["faults"]} == {"fatal", "suspicious", "ignored", "lasting"}
    assert all(("seconds" in entry) == (entry["meaning"] == "lasting") for entry in content["faults"])


@dataclass
class Nodes:
    """A node that does what it is told, and fails where it is told."""

    live: LiveNode | None = NODE
    failing: str = ""
    acts: list[str] = field(default_factory=list)

    def _did(self, act: str) -> None:
        if act == self.failing:
            raise RepairActionError(act)
        self.acts.append(act)

    def read_live(self, node: str) -> LiveNode | None:
        if self.failing == "read":
            raise RepairActionError("read")
        return self.live

    def reserve(self, case: RepairCase, places: int) -> bool:
        return True

    def release(self, case: RepairCase) -> None:
        self._did("release")

    def cordon(self, case: RepairCase) -> None:
        self._did("cordon")
        self.live = replace(NODE, cordoned=True, cordoned_by_us=True)

    def uncordon(self, case: RepairCase) -> None:
        self._did("uncordon")

    def drain(self, case: RepairCase) -> None:
        self._did("drain")
        self.live = replace(NODE, cordoned=True, cordoned_by_us=True, serving_pods=0)

    def reboot(self, case: RepairCase, live: LiveNode) -> None:
        self._did("reboot")

    def replace(self, case: RepairCase, live: LiveNode) -> None:
        self._did("replace")
        self.live = None

    def verify(self, case: RepairCase) -> Verification:
        return Verification(serving=True, replacement="new")

    def notify(self, case: RepairCase, text: str) -> None:
        self._did("notify")


def test_a_repair_from_the_suspicion_to_the_replacement() -> None:
    nodes, case = Nodes(), case_of(SLOW)
    states = list[str]()
    while not case.ended:
        case = advance(case, FLEET, SETTINGS, nodes, NOW)
        states.append(case.state)
    assert states == ["confirmed", "cordoned", "draining", "replacing", "verifying", "done"]
    assert nodes.acts == ["cordon", "drain", "replace", "release"]
    assert (case.replacement, case.owner_name, case.instance) == ("new", "claim", "i-1")


def test_a_freeze_stops_every_act_of_a_repair_under_way() -> None:
    frozen = replace(SETTINGS, frozen=True)
    for state in ("confirmed", "cordoned", "draining", "replacing"):
        nodes = Nodes(live=replace(NODE, cordoned=state != "confirmed", cordoned_by_us=True))
        case = case_of(SLOW).moved(state, NOW - 60, "before")
        after = advance(case, FLEET, frozen, nodes, NOW)
        assert (after.state, after.reason, nodes.acts) == (state, "frozen", [])


def test_the_breaker_keeps_requests_where_they_are_and_lets_an_empty_node_go() -> None:
    """Red if a drain goes on while many nodes are broken, or if a node that is empty waits with them."""
    fleet = replace(FLEET, unhealthy=9)
    for state in ("cordoned", "draining"):
        case = case_of(FATAL).moved(state, NOW - 60, "drain")
        closed = replace(NODE, cordoned=True, cordoned_by_us=True)
        nodes = Nodes(live=closed)
        after = advance(case, fleet, SETTINGS, nodes, NOW)
        assert (after.state, after.reason, nodes.acts) == (state, "too_many_unhealthy", [])
        empty = next_step(case, replace(closed, serving_pods=0), fleet, SETTINGS, NOW)
        assert (empty.act, empty.state) == ("replace", "replacing")


@pytest.mark.parametrize("state", ["cordoned", "draining", "replacing"])
def test_a_node_that_came_back_under_the_same_name_is_another_one(state: CaseState) -> None:
    """Red if the new node, of another instance, is drained or replaced for the fault of the old one."""
    nodes = Nodes(live=replace(NODE, uid="new", instance="i-2", cordoned=True, cordoned_by_us=True))
    after = advance(case_of(FATAL).moved(state, NOW - 60, "drain"), FLEET, SETTINGS, nodes, NOW)
    assert (after.state, after.reason, nodes.acts) == ("verifying", "node_gone", [])


def test_a_suspicion_has_the_same_cause_if_it_is_of_the_same_kind_and_time() -> None:
    """Red if any old suspicion in the pool holds a fatal fault, or if one of now does not count."""
    other = replace(FATAL, code="94", fatal=False)
    assert has_same_cause(case_of(FATAL), case_of(other))
    assert not has_same_cause(case_of(FATAL), case_of(replace(other, at=NOW - 1000)))
    assert not has_same_cause(case_of(replace(other, at=NOW - 1000)), case_of(FATAL))
    assert not has_same_cause(case_of(FATAL, SLOW), case_of(SLOW))
    assert has_same_cause(case_of(dcgm_evidence("101"), SLOW), case_of(SLOW))


def test_what_had_to_last_and_ended_is_forgotten_beside_other_evidence() -> None:
    """Red if GPUs that are missing again count from the first time, hours ago, and prove it at once."""
    missing = Evidence(kind="gpus_missing", code="allocatable", at=NOW - 9000, source="node", fatal=False)
    case = advance(
        case_of(dcgm_evidence("stalled"), missing), FLEET, SETTINGS, Nodes(replace(NODE, dcgm=None)), NOW
    )
    assert [each.kind for each in case.evidence] == ["dcgm"]
    again = case.with_evidence(replace(missing, at=NOW))
    lost = replace(NODE, gpus_allocatable=7, dcgm=None)
    assert assess(again, lost, SETTINGS, NOW).outcome == "open"


def test_a_condition_of_a_node_proves_no_more_with_another_signal() -> None:
    """Red if a kubelet that is away for a moment makes a small suspicion a proof."""
    late = LiveCondition("Ready", healthy=None, reason="NodeStatusUnknown", since=NOW - 60)
    away = Evidence(
        kind="node_condition", code="Ready.Unknown", at=NOW - 60, source="node", fatal=False, figure=1800.0
    )
    found = assess(
        case_of(dcgm_evidence("stalled"), away), replace(NODE, dcgm=None, conditions=(late,)), SETTINGS, NOW
    )
    assert found.outcome == "open"


def test_a_replacement_that_was_asked_for_before_the_crash_is_not_asked_for_twice() -> None:
    nodes = Nodes(live=None)
    after = advance(case_of(SLOW).moved("draining", NOW - 60, "drain"), FLEET, SETTINGS, nodes, NOW)
    assert (after.state, nodes.acts) == ("verifying", [])


def test_a_rack_that_turns_out_to_move_together_gets_its_node_back() -> None:
    nodes = Nodes(live=replace(NODE, cordoned=True, cordoned_by_us=True))
    fleet = replace(FLEET, shifted=frozenset({("rack", "rack")}))
    after = advance(case_of(SLOW).moved("cordoned", NOW, "slow"), fleet, SETTINGS, nodes, NOW)
    assert (after.state, nodes.acts) == ("cleared", ["uncordon", "release"])


def test_an_act_that_fails_is_tried_again_and_then_people_are_told() -> None:
    nodes, case = Nodes(failing="cordon"), case_of(SLOW).moved("confirmed", NOW, "slow")
    for attempt in range(1, SETTINGS.attempts):
        case = advance(case, FLEET, SETTINGS, nodes, NOW)
        assert (case.state, case.attempts) == ("confirmed", attempt)
    case = advance(case, FLEET, SETTINGS, nodes, NOW)
    assert (case.state, nodes.acts) == ("gave_up", ["notify", "release"])


def test_an_api_server_that_is_away_is_waited_for() -> None:
    nodes, case = Nodes(failing="read"), case_of(SLOW)
    for _ in range(3 * SETTINGS.attempts):
        case = advance(case, FLEET, SETTINGS, nodes, NOW)
    assert (case.state, case.attempts, nodes.acts) == ("suspected", 0, [])


def test_a_worker_that_recovered_and_another_node_of_the_name_are_left_alone() -> None:
    assert next_step(case_of(SLOW), replace(NODE, slower=0.05), FLEET, SETTINGS, NOW).reason == "recovered"
    assert next_step(case_of(FATAL), replace(NODE, uid="new"), FLEET, SETTINGS, NOW).state == "cleared"


@pytest.mark.parametrize("state", ["suspected", "confirmed", "cordoned", "draining", "replacing"])
def test_a_reading_from_before_the_decision_is_refused(state: CaseState) -> None:
    nodes = Nodes(live=replace(NODE, read_at=NOW - 1, cordoned_by_us=True, cordoned=True, serving_pods=0))
    after = advance(case_of(FATAL).moved(state, NOW - 60, "before"), FLEET, SETTINGS, nodes, NOW)
    assert (after.state, after.reason, nodes.acts) == (state, "stale_reading", [])
