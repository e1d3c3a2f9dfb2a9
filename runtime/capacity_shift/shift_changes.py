"""Carries a decision out: floors of KEDA's ScaledObjects, quotas of Kueue's queues, ceilings of batch.

Each change is made only where the live value differs, so a run that was killed is completed by the next one,
and a value that ``helm upgrade`` or a person set back is set again within a minute. What gives capacity to
real time comes first. If any of it fails, nothing is lent in that run.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aws_lambda_powertools import Logger
from botocore.exceptions import BotoCoreError, ClientError

from capacity_shift.cell_reader import CLUSTER_QUEUES, SCALED_OBJECTS, LiveCell, quota_of
from inference_blueprints.capacity_shift.shift_answer import ShiftDecision
from inference_blueprints.contracts.batch_names import EXPIRY_ATTRIBUTE, ID_ATTRIBUTE
from inference_blueprints.contracts.shift_configuration import (
    ShiftConfiguration,
    ShiftedQueue,
    ShiftedWorkers,
)
from inference_blueprints.contracts.shift_names import (
    CEILING_AT,
    CEILING_PLACES,
    CEILING_SECONDS,
    ceiling_identifier,
)
from operations.kubernetes_api import KubernetesApi, KubernetesObject
from operations.operations_errors import KubernetesError, OperationsError, TableError

_logger = Logger(child=True)
#: DynamoDB deletes a ceiling that nobody renews.
_KEPT_SECONDS: Final = 10 * CEILING_SECONDS
_CONFLICT: Final = 409
#: Attempts to change a queue whose status Kueue writes at the same time.
_ATTEMPTS: Final = 5


@dataclass(frozen=True, slots=True)
class ShiftChange:
    """A change to make.

    Parameters
    ----------
    what
        What is changed, for the audit record.
    lends
        Whether it takes capacity from real time.
    make
        Makes it.
    """

    what: str
    lends: bool
    make: Callable[[], object]


def model_ceilings(configuration: ShiftConfiguration, decision: ShiftDecision) -> Mapping[str, int]:
    """Return the places that batch may have, by model. Workers without a decision have none.

    Parameters
    ----------
    configuration
        What the shift moves.
    decision
        Its decision.
    """
    decided = {each.name: each.batch_places for each in decision.deployments}
    releases: dict[tuple[str, str], int] = {}
    for workers in configuration.workers:
        if workers.model in configuration.batch_places:
            key = workers.model, workers.release
            places = decided.get(workers.name, 0)
            releases[key] = min(places, releases.get(key, places))
    ceilings: dict[str, int] = {}
    for (model, _), places in releases.items():
        ceilings[model] = ceilings.get(model, 0) + places
    return ceilings


class ShiftActuators:
    """Makes changes.

    Parameters
    ----------
    configuration
        What the shift moves.
    kubernetes
        The API server.
    batch_table
        Table of batch's records, a resource of boto3.
    """

    def __init__(
        self, configuration: ShiftConfiguration, kubernetes: KubernetesApi, batch_table: Any
    ) -> None:
        self._configuration, self._kubernetes, self._batch_table = configuration, kubernetes, batch_table

    def changes(self, decision: ShiftDecision, live: LiveCell) -> list[ShiftChange]:
        """Return the changes of floors and quotas, those in favour of real time first."""
        found = [*self._floors(decision, live), *self._quotas(decision, live)]
        return sorted(found, key=lambda each: each.lends)

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
            before, workers = live.floors[each.name], by_name[each.name]
            # The range of the blueprint holds whatever was decided.
            floor = min(max(each.floor, workers.least), workers.most)
            if floor != before:
                yield ShiftChange(
                    f"floor of {each.name}: {before} to {floor}",
                    floor < before,
                    partial(self._set_floor, workers, floor),
                )

    def _quotas(self, decision: ShiftDecision, live: LiveCell) -> Iterator[ShiftChange]:
        by_pool = {each.pool: each for each in self._configuration.queues}
        for each in decision.pools:
            queue, found = by_pool[each.name], live.queues[each.name]
            before = quota_of(queue, found)
            quota = min(max(each.batch_accelerators, queue.quota), queue.accelerators)
            if quota != before:
                yield ShiftChange(
                    f"quota of {each.name}: {before} to {quota} {queue.resource}",
                    quota > before,
                    partial(self._set_quota, queue, found, quota),
                )

    def _set_floor(self, workers: ShiftedWorkers, floor: int) -> None:
        path = SCALED_OBJECTS.format(namespace=workers.namespace, name=workers.name)
        self._kubernetes.patch(path, {"spec": {"minReplicaCount": floor}})

    def _set_quota(self, queue: ShiftedQueue, found: KubernetesObject, quota: int) -> None:
        """Write the list of groups with one other quota. It fails if somebody else changed them since.

        Kueue writes the status of a queue whenever a job comes or goes. That makes another version of the
        queue, too, and is no reason to fail.
        """
        path = CLUSTER_QUEUES.format(pool=queue.pool)
        groups = copy.deepcopy(found["spec"]["resourceGroups"])
        for group in groups:
            for flavor in group["flavors"]:
                for resource in flavor["resources"]:
                    if flavor["name"] == queue.pool and resource["name"] == queue.resource:
                        resource["nominalQuota"] = str(quota)
        live = found
        for left in reversed(range(_ATTEMPTS)):
            change = {
                "metadata": {"resourceVersion": live["metadata"]["resourceVersion"]},
                "spec": {"resourceGroups": groups},
            }
            try:
                self._kubernetes.patch(path, change)
            except KubernetesError as error:
                newer = self._kubernetes.get(path) if error.status == _CONFLICT and left else None
                if newer is None or newer["spec"] != found["spec"]:
                    raise
                live = newer
            else:
                return


def make(changes: list[ShiftChange], *, may_lend: bool) -> tuple[list[str], list[str]]:
    """Make changes, and return what was done and what failed.

    Parameters
    ----------
    changes
        The changes in their order.
    may_lend
        Whether those that take capacity from real time are made, too.
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
