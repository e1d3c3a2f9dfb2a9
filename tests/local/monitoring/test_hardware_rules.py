"""A real Prometheus records a fault of a node while it has it, and nothing of healthy nodes."""

from __future__ import annotations

import pytest

from inference_blueprints.render.monitoring.hardware_alarms import HARDWARE_FAULTS, hardware_alarm_rows
from inference_blueprints.render.monitoring.recording_rules import rule_file
from inference_contracts.health_names import CODE_LABEL, NODE_LABELS
from inference_local.prometheus.timed_evaluation import TimedEvaluation, TimedQuery, evaluate

PLATFORM = "shop"
MINUTES = 40
ON = f'platform="{PLATFORM}",pool="h200",node="a",gpu="0"'
UP = f'up{{platform="{PLATFORM}",pool="h200",node="a",job="gpu"}}'
CLOCKS = f"DCGM_FI_DEV_CLOCKS_EVENT_REASONS{{{ON}}}"
IN_USE = f"DCGM_FI_DEV_GPU_UTIL{{{ON}}} 50x{MINUTES}"
XID = f"DCGM_FI_DEV_XID_ERRORS{{{ON}}}"


def recorded(series: list[str], *, minute: int) -> set[tuple[str, str, str]]:
    """Return node, kind and code of the faults that are recorded at a minute."""
    rules = [rule for row in hardware_alarm_rows() for rule in row.rules(PLATFORM)]
    at = 60.0 * minute
    query = TimedQuery(expression=HARDWARE_FAULTS, start_seconds=at, end_seconds=at)
    ((answer,),) = evaluate(
        [TimedEvaluation(series=series, queries=[query], rules=rule_file(rules))], lambda _: None
    )
    return {(each.labels["node"], each.labels["kind"], each.labels["code"]) for each in answer}


def test_an_xid_is_a_fault_for_ten_minutes_after_it_came() -> None:
    series = [IN_USE, f"{XID} 0x19 79x{MINUTES - 20}"]
    assert recorded(series, minute=19) == set()
    assert recorded(series, minute=22) == {("a", "xid", "79")}
    assert recorded(series, minute=35) == set()


def test_the_first_xid_of_a_gpu_has_no_series_before_it() -> None:
    assert recorded([IN_USE, f"{XID} _x19 79x{MINUTES - 20}"], minute=22) == {("a", "xid", "79")}


def test_another_xid_is_another_fault() -> None:
    assert recorded([IN_USE, f"{XID} 31x19 79x{MINUTES - 20}"], minute=22) == {("a", "xid", "79")}


def test_an_old_xid_is_no_fault_for_a_prometheus_that_has_just_started() -> None:
    series = [f"DCGM_FI_DEV_GPU_UTIL{{{ON}}} _x19 50x{MINUTES - 20}", f"{XID} _x19 79x{MINUTES - 20}"]
    assert recorded(series, minute=22) == set()
    assert recorded(series, minute=35) == set()


@pytest.mark.parametrize(
    ("series", "fault"),
    [
        (f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{ON}}} 1x{MINUTES}", ("a", "row_remap", "failure")),
        (
            f"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{{{ON}}} 0x30 1x{MINUTES - 31}",
            ("a", "row_remap", "uncorrectable"),
        ),
        (f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{ON}}} 0x30 1x{MINUTES - 31}", ("a", "ecc", "uncorrectable")),
        (f"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{{{ON}}} 0+66000x{MINUTES}", ("a", "ecc", "corrected_storm")),
        (
            f"DCGM_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL{{{ON}}} 0x30 1x{MINUTES - 31}",
            ("a", "nvlink", "recovery"),
        ),
        (f"DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{{ON}}} 0+20x{MINUTES}", ("a", "pcie", "replays")),
        (f"{CLOCKS} 0x30 9x{MINUTES - 31}", ("a", "throttle", "hardware_slowdown")),
        (f"{CLOCKS} 0x30 36x{MINUTES - 31}", ("a", "throttle", "driver_heat")),
        (f"{CLOCKS} 0x30 68x{MINUTES - 31}", ("a", "throttle", "hardware_heat")),
        (f"{CLOCKS} 0x30 132x{MINUTES - 31}", ("a", "throttle", "power_brake")),
        (f"{UP} 0x{MINUTES}", ("a", "dcgm", "stalled")),
    ],
)
def test_each_fault_is_recorded(series: str, fault: tuple[str, str, str]) -> None:
    assert recorded([IN_USE, series], minute=35) == {fault}


def test_nothing_is_recorded_of_a_healthy_node() -> None:
    series = [
        IN_USE,
        f"{XID} 0x{MINUTES}",
        f"DCGM_FI_DEV_ROW_REMAP_FAILURE{{{ON}}} 0x{MINUTES}",
        f"DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{{{ON}}} 1x{MINUTES}",
        f"DCGM_FI_DEV_PCIE_REPLAY_COUNTER{{{ON}}} 0+1x{MINUTES}",
        f"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{{{ON}}} 1x{MINUTES}",
        f"DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{{{ON}}} 0+600x{MINUTES}",
        # Idle (1), the limit of power (4) and clocks that somebody set (2, 16, 256).
        f"{CLOCKS} 279x{MINUTES}",
        f"{UP} 1x{MINUTES}",
    ]
    assert recorded(series, minute=35) == set()


NEURON = f'"@resource.k8s.cluster.name"="{PLATFORM}","@resource.k8s.node.name"="a"'
ECC = f'{{"hardware_ecc_events_total",{NEURON},neuron_device_index="3",event_type="'
RUNS = f'{{"execution_errors_total",{NEURON},error_type="'


@pytest.mark.parametrize(
    ("series", "codes"),
    [
        (f'{ECC}mem_ecc_uncorrected"}} 0x30 1x{MINUTES - 31}', {"mem_ecc_uncorrected"}),
        (f'{ECC}sram_ecc_uncorrected"}} 864x30 865x{MINUTES - 31}', {"sram_ecc_uncorrected"}),
        (f'{RUNS}hardware"}} 0x30 2x{MINUTES - 31}', {"hardware"}),
        (f'{ECC}sram_ecc_uncorrected"}} 864x{MINUTES}', set()),
        (f'{ECC}mem_ecc_corrected"}} 0+60x{MINUTES}', set()),
        (f'{RUNS}model"}} 0+60x{MINUTES}', set()),
        (f'{RUNS}hardware"}} 2x{MINUTES}'.replace(PLATFORM, "another"), set()),
    ],
)
def test_an_error_of_a_neuron_device_that_is_new_names_the_node(series: str, codes: set[str]) -> None:
    """Names and labels are those of neuron-monitor, which the add-on keeps."""
    (row,) = [each for each in hardware_alarm_rows() if each.kind == "neuron"]
    at = 60.0 * 35
    query = TimedQuery(expression=row.query(PLATFORM), start_seconds=at, end_seconds=at)
    ((answer,),) = evaluate([TimedEvaluation(series=[series], queries=[query], rules="")], lambda _: None)
    assert {each.labels[CODE_LABEL] for each in answer} == codes
    assert {each.labels[label] for each in answer for label in NODE_LABELS if label in each.labels} == (
        {"a"} if codes else set()
    )
