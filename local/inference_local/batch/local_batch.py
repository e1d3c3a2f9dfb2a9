"""Batch of a deployed blueprint: its workers, and a job for each of its queues."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from inference_blueprints.operate.signals import Record, read_signals
from inference_blueprints.serving.traffic import model_traffic
from inference_blueprints.spec.types import BatchQueue, Blueprint
from inference_contracts import batch_names
from inference_contracts.batch_keys import JobKeys
from inference_contracts.batch_limits import SHARDS_PER_WORKER
from inference_contracts.shift_names import (
    CEILING_AT,
    CEILING_PLACES,
    ceiling_identifier,
    deadlines_identifier,
)
from inference_local.batch.batch_job import REQUESTS, BatchJob, find_batch
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.batch.local_workers import LocalBatchWorkers, worker_releases, worker_services
from inference_local.emulator.emulator import Emulator
from inference_local.processes.child_processes import ProcessGroup, Restarts
from inference_local.run_state import RunningBatch
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.platform_parts import PlatformPart
from inference_local.signal_store import find_signals


class LocalBatch:
    """The batch workers and batch jobs of a run.

    blueprint: A blueprint with the section batch.
    emulator: The emulator that it is deployed to.
    endpoints: The endpoint of each model.
    directory: Folder for the workers' logs.
    processes: The group that the workers join.
    Raises UserError if no team has a role that can submit jobs.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        emulator: Emulator,
        endpoints: Sequence[LocalEndpoint],
        directory: Path,
        processes: ProcessGroup,
    ) -> None:
        self._queues = blueprint.spec.batch.queues if blueprint.spec.batch else []
        store = blueprint.spec.signal_store
        self._signals = store.signals if store else []
        self._workloads = {
            model.name: model_traffic(blueprint.spec, model).means for model in blueprint.spec.models
        }
        self._contexts = {endpoint.model: endpoint.context_length for endpoint in endpoints}
        self._s3, self._dynamodb = emulator.client("s3"), emulator.client("dynamodb")
        found = [*worker_releases(emulator.recorded_releases()), *worker_services(emulator.client("ecs"))]
        self._releases = {release.model: release for release in found}
        self._workers = LocalBatchWorkers(
            list(self._releases.values()), endpoints, emulator.environment(), directory, processes
        )
        #: The table with the ceiling of each model whose places the capacity shift limits.
        self._ceilings = {
            model: table
            for model, release in self._releases.items()
            if (table := release.environment.get(batch_names.CEILINGS_TABLE))
        }
        self._places = blueprint.spec.batch.workers.max * SHARDS_PER_WORKER if blueprint.spec.batch else 0
        platform = blueprint.metadata.name
        #: The running API. None if no chart requests workers, as with a control plane.
        self.running = find_batch(emulator, platform, blueprint.spec.teams) if self._releases else None
        #: The running signal store. None if the blueprint has none.
        self.running_signals = find_signals(emulator, platform) if store else None

    def start(self, door_url: str | None) -> None:
        """Start the workers.

        door_url: Base URL of the front door, ending in ``/v1``. None if they call the models.
        """
        self._workers.start(door_url)

    def restart_ended(self, restarts: Restarts) -> None:
        """Start workers again that have ended.

        restarts: Counts the restarts of each worker.
        """
        self._workers.restart_ended(restarts)

    def needed_places(self, model: str) -> int | None:
        """Return the places that deadlines of a model need, as batch's scheduler says. None if unknown."""
        key = {batch_names.ID_ATTRIBUTE: {"S": deadlines_identifier(model)}}
        item = self._dynamodb.get_item(TableName=self._ceilings[model], Key=key).get("Item")
        return None if item is None else int(item["record"]["M"][CEILING_PLACES]["N"])

    def lend(self, places: Mapping[str, int] | None = None) -> None:
        """Write the places that jobs may have together, by model, as the capacity shift does.

        places: The places. None for all that a model has: nothing shifts in this run.
        """
        for model, table in self._ceilings.items():
            number = self._places if places is None else places.get(model, 0)
            record = {CEILING_PLACES: {"N": str(number)}, CEILING_AT: {"N": str(int(time.time()))}}
            self._dynamodb.put_item(
                TableName=table,
                Item={
                    batch_names.ID_ATTRIBUTE: {"S": ceiling_identifier(model)},
                    "record": {"M": record},
                },
            )

    def parts(self) -> tuple[PlatformPart, ...]:
        """Return which parts are real, emulated and stubbed."""
        return describe({model: release.replicas for model, release in self._releases.items()})

    def run_jobs(self, on_progress: Callable[[str], None]) -> tuple[BatchOutcome, ...]:
        """Run one job per queue, one after the other, and kill the workers of its model while it runs.

        on_progress: Called with a description of the current action.
        Raises UserError if the API refuses a job, or a job takes too long. Raises ProcessDied if a process
            ends unexpectedly.
        """
        if self.running is None:
            return ()
        return tuple(self._run_job(self.running, queue, on_progress) for queue in self._queues)

    def run_beside(self, requests: int) -> BatchOutcome:
        """Run one job in the first queue and let its workers alone.

        Raises RuntimeError if no workers run. Raises UserError if the API refuses the job, or it takes too
        long. Raises ProcessDied if a process ends unexpectedly.
        """
        if self.running is None:
            raise RuntimeError("no batch workers run")
        job = self._job(self.running, self._queues[0], requests=requests)
        return job.run(lambda _: False, lambda: 0, self._workers.check, self._read_signals)

    def _run_job(
        self, running: RunningBatch, queue: BatchQueue, on_progress: Callable[[str], None]
    ) -> BatchOutcome:
        bucket = self._releases[queue.model].environment[batch_names.BUCKET]

        def has_results(job: str) -> bool:
            # Workers commit results as chunks.
            listed = self._s3.list_objects_v2(Bucket=bucket, Prefix=JobKeys(job).chunks, MaxKeys=1)
            return bool(listed["KeyCount"])

        def replace() -> int:
            on_progress(f"{queue.name}: killing and replacing workers")
            return self._workers.replace(queue.model)

        on_progress(f"{queue.name}: waiting for results")
        job = self._job(running, queue, requests=REQUESTS)
        return job.run(has_results, replace, self._workers.check, self._read_signals)

    def _job(self, running: RunningBatch, queue: BatchQueue, *, requests: int) -> BatchJob:
        signal = next((each.name for each in self._signals if each.team == running.team), None)
        workload, context = self._workloads[queue.model], self._contexts[queue.model]
        return BatchJob(running, queue, workload, context, signal, requests=requests)

    def _read_signals(self, name: str, keys: Sequence[str]) -> Mapping[str, Record]:
        if self.running_signals is None:
            raise RuntimeError("the blueprint has no signal store")
        store = self.running_signals
        return read_signals(store.address, name, keys, environment=store.environment)


def describe(workers: Mapping[str, int]) -> tuple[PlatformPart, ...]:
    """Return the batch rows of the table of parts.

    workers: Number of worker processes per model. Empty with a control plane, where no charts are recorded.
    """
    return (
        PlatformPart(
            "Batch API",
            "emulated",
            "ministack's API Gateway and Lambda run the functions of the templates; tokens are checked",
        ),
        PlatformPart(
            "Batch jobs",
            "emulated",
            "ministack's Step Functions, SQS, DynamoDB, S3 and EventBridge run the templates' state machine",
        ),
        _workers(workers),
        PlatformPart(
            "Batch worker scaling",
            "stubbed",
            "KEDA, Application Auto Scaling and ECS tasks do not run; the number of workers is fixed at the "
            "minimum, and at least one per model",
        ),
        PlatformPart(
            "Batch worker image", "stubbed", "CodeBuild builds no image; workers run in this project's Python"
        ),
    )


def _workers(workers: Mapping[str, int]) -> PlatformPart:
    if not workers:
        return PlatformPart("Batch workers", "stubbed", "not started with a control plane; no batch job runs")
    listed = ", ".join(f"{count} of {model}" for model, count in workers.items())
    return PlatformPart(
        "Batch workers",
        "real",
        f"{listed}: processes with the environment of the chart or the task, except for addresses, "
        "credentials and shorter timeouts",
    )
