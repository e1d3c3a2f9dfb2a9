"""The recorded list of what Karpenter's node repair acts on is that of the release that is run here."""

from __future__ import annotations

import re

from inference_local.control_plane import build
from inference_local.control_plane.artefacts import KARPENTER_REPAIR, KARPENTER_VERSION
from tests.unit.decisions.repairs.test_condition_owners import RECORDED

_POLICY = re.compile(
    r'ConditionType:\s+(?:corev1\.Node|")(\w+?)"?,\s+ConditionStatus:\s+corev1\.Condition(\w+),'
    r"\s+TolerationDuration:\s+(\d+) \* time\.Minute"
)
#: XIDs of a policy, and what is done about them.
_XIDS = re.compile(r"XID\(([\d|]+)\)(?:.*\n)+?\s+Action:\s+(.*)")


def test_the_list_is_that_of_the_source() -> None:
    """Red if Karpenter repairs for another condition, or after another time, than our table says."""
    (source,) = KARPENTER_REPAIR.patterns
    text = (build.module_files(KARPENTER_REPAIR, print) / source).read_text("utf-8")
    # The chart's values set `legacyNodeRepair`, which makes the controller take this list.
    legacy = text.partition("var legacyRepairPolicies = ")[2]
    found = [
        {"condition": condition, "status": status, "minutes": int(minutes)}
        for condition, status, minutes in _POLICY.findall(legacy)
    ]
    assert found == RECORDED["policies"]
    assert f"v{RECORDED['version']}" == KARPENTER_VERSION
    # The other list splits one condition by its reasons, and has no other condition.
    newer = text.partition(") RepairPolicies() ")[2].partition("\n}\n")[0]
    xids = {
        "reboot" if "RebootNode" in action else "replace": [int(code) for code in codes.split("|")]
        for codes, action in _XIDS.findall(newer)
    }
    assert xids == RECORDED["xids"]
    conditions = set(re.findall(r'ConditionType:\s+(?:corev1\.Node|")(\w+?)"?,', newer))
    assert conditions == {each["condition"] for each in RECORDED["policies"]}
