"""Metrics of a platform's programs, in Prometheus' text format."""

from __future__ import annotations

import re


def sample_sum(metrics: str, name: str, label: str = "") -> float | None:
    """Return the sum of a metric over its labels; None if it is not exposed.

    name: Full name of the sample.
    label: Only samples with this label, such as ``status="failure"``; empty for all.
    """
    pattern = re.compile(rf"^{re.escape(name)}(\{{[^\n]*\}})? (\S+)", re.MULTILINE)
    values = [float(value) for labels, value in pattern.findall(metrics) if label in labels]
    return sum(values) if values else None
