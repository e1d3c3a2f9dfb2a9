"""`/v1/costs`: cost of a team's jobs in a month, and the rest of its budget."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from typing import Any, Final

from batch.api.api_request import ApiRequest, query_fields
from batch.jobs.door_spending import read_door_spending
from batch.jobs.settings import BatchPlatform
from batch.jobs.spending import SpendingTable, month_of
from batch.scheduling.admissions import AdmissionTable, admitted

_MONTH: Final = r"\d{4}-(0[1-9]|1[0-2])"


class Costs:
    """The routes of costs.

    platform: Clients and tables of the functions.
    """

    def __init__(self, platform: BatchPlatform) -> None:
        self._jobs = platform.jobs
        self._admissions = AdmissionTable(platform.table)
        self._spending = SpendingTable(platform.table)
        self._progress = platform.progress
        self._door = read_door_spending(os.environ)

    def retrieve(self, request: ApiRequest) -> dict[str, Any]:
        """Return the cost of the team's jobs in a month, by model and queue.

        The default is the current month. With a front door, what is left of the budget is what all requests
        of the team leave, in the door's month.
        """
        now = time.time()
        present = month_of(now)
        fields = query_fields(request.event)
        match = fields.matching(
            "month", r"\d{4}-(0[1-9]|1[0-2])", meaning="a month, such as 2026-11", default=""
        )
        fields.finish()
        month = match[0] if match else present
        spent = self._spending.of(request.team.name, month)
        spent_usd = sum(each.figures.usd for each in spent)
        running_usd = self._running_usd(request.team.name) if month == present else 0.0
        budget_usd = request.team.monthly_budget_usd
        door_usd = self._door.usd(request.team.name, now) if self._door and month == present else None
        used_usd = spent_usd if door_usd is None else door_usd
        return {
            "object": "costs",
            "team": request.team.name,
            "month": month,
            "budget_usd": budget_usd,
            "spent_usd": spent_usd,
            "running_usd": running_usd,
            **({} if door_usd is None else {"door_usd": door_usd}),
            "left_usd": max(budget_usd - used_usd - running_usd, 0.0),
            "data": [
                {"object": "cost", "model": each.model, "queue": each.queue, **asdict(each.figures)}
                for each in spent
            ],
        }

    def _running_usd(self, team: str) -> float:
        """Return the estimated cost of the team's admitted jobs; with a front door, of what is left of them.

        The door has charged the answers that they have.
        """
        running = (each for each in admitted(self._jobs, self._admissions) if each.job.team == team)
        if self._door is None:
            return sum(each.admission.usd for each in running)
        return sum(
            # Its cost so far, without that of earlier attempts.
            max(each.admission.usd - self._progress.of(each.job).cost_usd + each.job.cost_usd, 0.0)
            for each in running
            if each.job.state == "in_progress"
        )
