"""What the exporter of GPU metrics says about nodes, as CloudWatch has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from inference_decisions.promql.cloudwatch_promql import CloudWatchPromql
from inference_decisions.repairs.fault_rules import FaultRules
from inference_decisions.repairs.live_node import DcgmReading
from operations.promql import name_matchers, text_literal

#: Label that tells the parts of one query apart.
_WHAT: Final = "what"
#: Fields: https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html. A field that the
#: exporter does not export has no series, and counts as zero. Platforms of one account may have nodes of the
#: same name, so each part selects its platform too.
_PARTS: Final[Mapping[str, str]] = {
    "gpus": "count by (node) (last_over_time(DCGM_FI_DEV_GPU_UTIL{$selected}[2m]))",
    "uncorrectable": "sum by (node) (DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{$selected})",
    "remapped": "sum by (node) (DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS{$selected})",
    "remap_failures": "sum by (node) (DCGM_FI_DEV_ROW_REMAP_FAILURE{$selected})",
    "corrected": "max by (node) (rate(DCGM_FI_DEV_ECC_SBE_VOL_TOTAL{$selected}[5m]))",
    "xid": "max by (node, gpu) (DCGM_FI_DEV_XID_ERRORS{$selected}) != 0",
}
#: Parts that count as uncorrectable errors.
_UNCORRECTABLE: Final = ("uncorrectable", "remapped", "remap_failures")


def dcgm_readings(
    metrics: CloudWatchPromql, platform: str, nodes: Iterable[str], rules: FaultRules, at: float
) -> Mapping[str, DcgmReading]:
    """Return the newest readings by node. Nodes whose exporter does not answer are left out.

    platform: Name of the platform, a label of the series.
    nodes: Names of nodes, a few.
    rules: What XIDs mean. Those of applications say nothing about a GPU.
    at: Seconds since the epoch.
    Raises MetricsError if CloudWatch does not answer.
    """
    found = dict[str, dict[str, list[float]]]()
    for selected in _selected(platform, nodes):
        for series in metrics.instant(_query(selected), at):
            node, what = series.labels.get("node", ""), series.labels.get(_WHAT, "")
            found.setdefault(node, {}).setdefault(what, []).append(series.points[-1][1])
    return {
        node: DcgmReading(
            at=at,
            gpus=int(parts["gpus"][0]),
            xids=tuple(sorted(int(value) for value in parts.get("xid", []) if _counts(value, rules))),
            uncorrectable=int(sum(sum(parts.get(each, [])) for each in _UNCORRECTABLE)),
            corrected_per_second=max(parts.get("corrected", [0.0])),
        )
        for node, parts in found.items()
        if "gpus" in parts
    }


def listed_gpus(
    metrics: CloudWatchPromql, platform: str, nodes: Iterable[str], at: float
) -> Mapping[str, int]:
    """Return how many GPUs the exporter of each node lists. Nodes whose exporter is silent are left out."""
    found = dict[str, int]()
    for selected in _selected(platform, nodes):
        query = _PARTS["gpus"].replace("$selected", selected)
        found |= {
            series.labels.get("node", ""): int(series.points[-1][1]) for series in metrics.instant(query, at)
        }
    return found


def _selected(platform: str, nodes: Iterable[str]) -> Iterator[str]:
    """Yield matchers of the series of a platform's nodes, each for as many nodes as one query may name."""
    for matcher in name_matchers("node", sorted(nodes)):
        yield f"platform={text_literal(platform)},{matcher}"


def _query(selected: str) -> str:
    return " or ".join(
        f'label_replace({part.replace("$selected", selected)}, "{_WHAT}", "{what}", "", "")'
        for what, part in _PARTS.items()
    )


def _counts(value: float, rules: FaultRules) -> bool:
    rule = rules.rule("xid", str(int(value)))
    return rule is not None and rule.counts
