"""Carries a decision out: floors of workers, quotas of queues for jobs, ceilings of batch.

Each change is made only where the live value differs, so a run that was killed is completed by the next one,
and a value that a deployment or a person set back is set again within a minute. What gives capacity to
real time comes first. If any of it fails, nothing is lent in that run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from capacity_shift.cell_reader import LiveCell
from capacity_shift.cluster_numbers import ClusterNumbers, LiveWorkers
from inference_contracts.batch_names import EXPIRY_ATTRIBUTE, ID_ATTRIBUTE
from inference_contracts.shift_names import (
    CEILING_AT,
    CEILING_PLACES,
    CEILING_SECONDS,
    ShiftConfiguration,
    ShiftedWorkers,
    ceiling_identifier,
)
from inference_decisions.capacity_shift.hand_over import RoleNow, hand_over
from inference_decisions.capacity_shift.shift_answer import DeploymentDecision, ShiftDecision
from operations.operations_errors import OperationsError, TableError

_logger = Logger(child=True)
#: DynamoDB deletes a ceiling that nobody renews.
_KEPT_SECONDS: Final = 10 * CEILING_SECONDS


@dataclass(frozen=True, slots=True)
class ShiftChange:
    """A change to make."""

    what: str
    """What is changed, for the audit record."""
    lends: bool
    """Whether it takes capacity from real time."""
    order: int
    """Changes of a shared pool are made in this order: first those that give up replicas."""
    make: Callable[[], object]


class ShiftActuators:
    """Makes changes.

    numbers: What the cluster says and keeps.
    batch_table: Table of batch's records, a resource of boto3.
    """

    def __init__(self, configuration: ShiftConfiguration, numbers: ClusterNumbers, batch_table: Any) -> None:
        self._configuration, self._numbers, self._batch_table = configuration, numbers, batch_table

    def possible(
        self, decision: ShiftDecision, live: LiveCell, waiting: Mapping[str, float], now: float
    ) -> tuple[ShiftDecision, Mapping[str, float]]:
        """Return the part of a decision that can be carried out now, and which pools wait since when.

        Where the cluster pre-empts, it is all of it.

        waiting: Pools whose real time waits for accelerators, with the time since when.
        """
        decided = {each.name: each for each in decision.deployments}
        since: dict[str, float] = {}
        for pool, found in live.hosts.items():
            users = [each for each in self._configuration.workers if each.pool == pool]
            if not all(each.name in decided for each in users):
                continue
            limit = max(each.handover_seconds or 0.0 for each in users)
            began = waiting.get(pool, now)
            roles = [
                _role_now(each, decided[each.name], live.workers[each.name], found.placed[each.name])
                for each in users
            ]
            answer = hand_over(found.hosts, roles, overdue=now - began > limit)
            if answer.waits:
                since[pool] = began
            for each in users:
                floor, ceiling = answer.ranges[each.name]
                # Batch has no places on workers that have not been asked for.
                places = self._configuration.batch_share(each) * ceiling / each.most
                decided[each.name] = replace(
                    decided[each.name],
                    floor=floor,
                    ceiling=ceiling,
                    batch_places=math.ceil(places) if each.batch_only else decided[each.name].batch_places,
                )
        deployments = tuple(decided[each.name] for each in decision.deployments)
        return replace(decision, deployments=deployments), since

    def overdue(self, waiting: Mapping[str, float], now: float) -> list[str]:
        """Return in words which pools wait for longer than a hand-over of any of their roles takes.

        waiting: As of `possible`.
        """
        limits = {
            pool: max(
                each.handover_seconds or 0.0 for each in self._configuration.workers if each.pool == pool
            )
            for pool in waiting
        }
        return [
            f"real time has waited for accelerators of {pool} for {now - began:.0f} s, and a hand-over takes "
            f"{limits[pool]:.0f} s: tasks do not stop, or hosts are missing"
            for pool, began in waiting.items()
            if now - began > limits[pool]
        ]

    def changes(self, decision: ShiftDecision, live: LiveCell) -> list[ShiftChange]:
        """Return the changes of floors and quotas, those in favour of real time first."""
        found = [*self._floors(decision, live), *self._quotas(decision, live)]
        return sorted(found, key=lambda each: (each.lends, each.order))

    def set_ceilings(self, ceilings: Mapping[str, int], now: float) -> None:
        """Write the ceilings of batch, also unchanged ones: one that nobody renews does not count."""
        try:
            for model, places in ceilings.items():
                self._batch_table.put_item(
                    Item={
                        ID_ATTRIBUTE: ceiling_identifier(model),
                        "record": {CEILING_PLACES: places, CEILING_AT: int(now)},
                        EXPIRY_ATTRIBUTE: int(now) + _KEPT_SECONDS,
                    }
                )
        except (ClientError, BotoCoreError) as error:
            raise TableError(f"batch's table did not answer: {error}") from error

    def _floors(self, decision: ShiftDecision, live: LiveCell) -> Iterator[ShiftChange]:
        by_name = {each.name: each for each in self._configuration.workers}
        for each in decision.deployments:
            before, workers = live.workers[each.name], by_name[each.name]
            if not before.exists:
                continue
            # The range of the blueprint holds whatever was decided.
            floor = min(max(each.floor, workers.least), workers.most)
            if each.ceiling is None:
                if floor != before.floor:
                    yield ShiftChange(
                        f"floor of {each.name}: {before.floor} to {floor}",
                        floor < before.floor,
                        0,
                        partial(self._numbers.set_floor, workers, floor),
                    )
                continue
            ceiling = min(max(each.ceiling, floor), workers.most)
            wanted = (ceiling, ceiling) if workers.batch_only else (floor, ceiling)
            if wanted != (before.floor, before.ceiling):
                yield ShiftChange(
                    f"range of {each.name}: {before.floor}-{before.ceiling} to {wanted[0]}-{wanted[1]}",
                    _lends(workers, before, *wanted),
                    each.drain_order or 0,
                    partial(self._numbers.set_floor, workers, *wanted),
                )

    def _quotas(self, decision: ShiftDecision, live: LiveCell) -> Iterator[ShiftChange]:
        by_pool = {each.pool: each for each in self._configuration.queues}
        for each in decision.pools:
            if each.name not in by_pool:
                continue  # a shared pool without a queue: its ranges say who has what
            queue, found = by_pool[each.name], live.queues[each.name]
            quota = min(max(each.batch_accelerators, queue.quota), queue.accelerators)
            if quota != found.quota:
                yield ShiftChange(
                    f"quota of {each.name}: {found.quota} to {quota} {queue.resource}",
                    quota > found.quota,
                    0,
                    partial(found.set_quota, quota),
                )


def _role_now(
    workers: ShiftedWorkers, decided: DeploymentDecision, live: LiveWorkers, placed: int
) -> RoleNow:
    floor = min(max(decided.floor, workers.least), workers.most)
    ceiling = floor if decided.ceiling is None else min(max(decided.ceiling, floor), workers.most)
    return RoleNow(
        name=workers.name,
        accelerators=workers.accelerators,
        least=workers.least,
        floor=floor,
        ceiling=ceiling,
        wanted=live.replicas,
        placed=placed,
        batch_only=workers.batch_only,
        order=decided.drain_order or 0,
    )


def _lends(workers: ShiftedWorkers, before: LiveWorkers, floor: int, ceiling: int) -> bool:
    """Return whether a new range takes capacity from real time.

    A lower ceiling never does: it makes room for whoever comes first. Else one in favour of real time would
    wait whenever anything failed.
    """
    if workers.batch_only:
        return floor > before.floor
    return floor < before.floor and (before.ceiling is None or ceiling >= before.ceiling)


def make(changes: list[ShiftChange], *, may_lend: bool) -> tuple[list[str], list[str]]:
    """Make changes, and return what was done and what failed.

    changes: The changes in their order.
    may_lend: Whether those that take capacity from real time are made, too.
    """
    done: list[str] = []
    failed: list[str] = []
    for change in changes:
        if change.lends and (failed or not may_lend):
            failed.append(f"{change.what}: not made, because real time did not get what it needs")
            continue
        try:
            change.make()
        except OperationsError as error:
            failed.append(f"{change.what}: {error}")
        else:
            done.append(change.what)
    for text in failed:
        _logger.error("%s", text)
    return done, failed
