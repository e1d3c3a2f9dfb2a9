"""Where GPU health owns repairs, it owns each condition that Karpenter's node repair would act on."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from inference_blueprints.resources import root
from inference_catalog.charts import charts
from inference_catalog.gpu_faults import gpu_faults_file
from inference_decisions.repairs.fault_rules import FaultRules

#: Karpenter's list. `tests/cluster/test_repair_policies.py` compares it with the source of the release.
RECORDED = json.loads(Path(__file__).with_name("karpenter_repair_policies.json").read_text("utf-8"))
#: Decided by the code of its reason, and not by its age.
BY_CODE = "AcceleratedHardwareReady"


def test_the_recorded_list_is_that_of_the_pinned_release() -> None:
    """Red if the chart is updated and nobody looked whether Karpenter repairs something else now."""
    assert RECORDED["version"] == charts()["karpenter"].version


def test_every_condition_of_karpenters_repair_has_its_time_in_our_table() -> None:
    """Red if a condition has no owner while Karpenter's node repair is off, or one that nobody reports."""
    rules = FaultRules.parsed(gpu_faults_file().read_text("utf-8")).rules
    ours = {code: rule.seconds / 60 for (kind, code), rule in rules.items() if kind == "node_condition"}
    theirs = {
        f"{each['condition']}.{each['status']}": each["minutes"]
        for each in RECORDED["policies"]
        if each["condition"] != BY_CODE
    }
    assert ours == theirs


@pytest.mark.parametrize("remedy", ["reboot", "replace"])
def test_xids_have_the_remedy_that_eks_and_karpenter_give_them(remedy: str) -> None:
    """Red if dead hardware is rebooted, or if a node is replaced for what AWS reboots."""
    rules = FaultRules.parsed(gpu_faults_file().read_text("utf-8"))
    codes = RECORDED["xids"][remedy]
    assert {code: rules.remedy("xid", str(code)) for code in codes} == dict.fromkeys(codes, remedy)


def test_the_page_has_one_owner_for_each_condition() -> None:
    """Red if the table of owners lacks a condition or names one twice."""
    page = (root() / "docs" / "gpu-health.md").read_text("utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `") and "Ready`" in line.split(" | ")[0]]
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row.split(" | ")[0])]
    assert sorted(named) == sorted({each["condition"] for each in RECORDED["policies"]})
