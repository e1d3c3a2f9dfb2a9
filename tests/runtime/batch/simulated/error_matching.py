"""Which retrier or catcher of a state matches an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def catcher(state: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """Return the first catcher of a state that matches an error."""
    catchers = state.get("Catch", ())
    place = matching(catchers, name)
    return None if place is None else catchers[place]


def matching(retries: Sequence[Mapping[str, Any]], name: str) -> int | None:
    """Return the place of the first retrier or catcher that matches an error.

    ``States.TaskFailed`` matches each error of a task but time-outs, ``States.ALL`` each error
    (https://docs.aws.amazon.com/step-functions/latest/dg/concepts-error-handling.html).
    """
    for place, retry in enumerate(retries):
        for pattern in retry["ErrorEquals"]:
            if pattern in (name, "States.ALL"):
                return place
            if pattern == "States.TaskFailed" and name not in ("States.Timeout", "States.HeartbeatTimeout"):
                return place
    return None
