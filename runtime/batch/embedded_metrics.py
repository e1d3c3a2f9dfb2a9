"""Writes metrics as lines on standard output, which CloudWatch turns into metrics.

A line in the embedded metric format needs no API call and no permission
(https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Final

from inference_contracts import batch_names

#: Units of the metrics that are not counts.
_UNITS: Final = {
    batch_names.COST_USD: "None",
    batch_names.OLDEST_WAITING_SECONDS: "Seconds",
    batch_names.WAITED_PERCENT: "Percent",
}


def emit(
    figures: Mapping[str, float],
    dimensions: Mapping[str, str],
    *,
    also_by: Sequence[Sequence[str]] = (),
) -> None:
    """Write metrics.

    figures: Values by metric name.
    dimensions: Dimensions of each metric, by name.
    also_by: Subsets of the dimensions. Each metric is also recorded by each of them, summed over the others.
    """
    directive = {
        "Namespace": batch_names.METRIC_NAMESPACE,
        "Dimensions": [list(dimensions), *map(list, also_by)],
        "Metrics": [{"Name": name, "Unit": _UNITS.get(name, "Count")} for name in figures],
    }
    described = {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]}
    sys.stdout.write(json.dumps({"_aws": described, **dimensions, **figures}) + "\n")
    sys.stdout.flush()
