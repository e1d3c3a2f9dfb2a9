"""Generated observability of a platform."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st


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
