"""The monthly cost of a team's jobs, and the rest of its budget."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from inference_blueprints.operate.batch.batch_api_client import BatchApiClient
from inference_contracts.errors import UserError

#: A team's month in the format of the API.
Costs = Mapping[str, Any]


def costs_of(api: BatchApiClient, month: str | None) -> Costs:
    """Return the cost of the team's jobs in a month, the most expensive model and queue first.

    month: Month in UTC, such as ``2026-11``; None for this month.
    Raises UserError if the month is not valid, the API refuses it, or the API is not reached.
    """
    if month is not None and not re.fullmatch(r"\d{4}-(0[1-9]|1[0-2])", month, re.ASCII):
        raise UserError(f"got --month {month}; allowed are months such as 2026-11")
    costs = api.get("/costs", {"month": month} if month else None)
    rows = sorted(costs["data"], key=lambda each: (-each["usd"], each["model"], each["queue"]))
    return {**costs, "data": rows}
