"""Generated observability of a platform."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import strategies as st

import inference_catalog as catalog


def observability(region: str, account: str) -> st.SearchStrategy[dict[str, Any]]:
    """Return what is kept of metrics, logs and traces, and who is told of alarms."""
    optional: dict[str, st.SearchStrategy[Any]] = {
        "logs": st.sampled_from([{}, {"retentionDays": 1}, {"retentionDays": 3653}]),
        "traces": st.sampled_from([{}, {"sampleRatio": 1.0}]),
        "alarms": st.sampled_from(
            [
                {"emails": ["on-call@example.com", "second@example.com"]},
                {"topicArn": f"arn:aws:sns:{region}:{account}:on-call"},
            ]
        ),
        "canary": st.sampled_from([{}, {"everyMinutes": 60}]),
    }
    return st.fixed_dictionaries({}, optional=optional)


@st.composite
def repairs(draw: Callable[..., Any], pools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return GPU health or nothing, and name who repairs each pool: Karpenter all of them or none."""
    known = catalog.instance_types()
    watched = [pool for pool in pools if any(known[name].device_count for name in pool["instanceTypes"])]
    if not watched or draw(st.booleans()):
        return {}
    action = draw(st.sampled_from(["observe", "replace"]))
    if action == "replace" or draw(st.booleans()):
        owners = st.sampled_from(["gpuHealth", "nvSentinel", "nobody"])
        for pool in pools:
            pool["repairedBy"] = draw(owners) if pool in watched else "nobody"
        if action == "replace":
            watched[0]["repairedBy"] = "gpuHealth"
    limits: dict[str, st.SearchStrategy[Any]] = {
        "maxUnhealthyPercent": st.integers(1, 50),
        "replacementsPerHour": st.integers(1, 100),
        "maxRepairingPercent": st.just(1),
        "slowGpus": st.booleans(),
    }
    if action == "replace":
        limits["rebootsPerNodePerDay"] = st.integers(0, 5)
    return {"gpuHealth": {"action": action} | draw(st.fixed_dictionaries({}, optional=limits))}
