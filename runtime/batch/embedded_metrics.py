"""Metrics of batch, as lines on standard output of which CloudWatch makes metrics.

A line in the embedded metric format costs no call and no right
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final

NAMESPACE: Final = "InferenceBlueprints/Batch"
#: Units of those metrics that count nothing.
_UNITS: Final = {"CostUsd": "None", "OldestWaitingSeconds": "Seconds", "WaitedPercent": "Percent"}


def emit(
    figures: Mapping[str, float],
    dimensions: Mapping[str, str],
    *,
    also_by: Sequence[Sequence[str]] = (),
) -> None:
    """Write figures.

    Parameters
    ----------
    figures
        Values by the metric's name.
    dimensions
        Of each metric, by name.
    also_by
        Fewer of those dimensions, by which each metric is kept too, summed up over the others.
    """
    directive = {
        "Namespace": NAMESPACE,
        "Dimensions": [list(dimensions), *map(list, also_by)],
        "Metrics": [{"Name": name, "Unit": _UNITS.get(name, "Count")} for name in figures],
    }
    described = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
    sys.stdout.write(json.dumps({"_aws": described, **dimensions, **figures}) + "\n")
    sys.stdout.flush()
