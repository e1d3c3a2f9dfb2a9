"""The same file with batch on EKS and on ECS, and a job whose workers are killed meanwhile."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console

from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.traffic import own_means
from inference_contracts import batch_names
from inference_contracts.batch_keys import JobKeys
from inference_local.batch.batch_job import BatchJob, find_batch
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.batch.local_workers import worker_services
from inference_local.local_platform import LocalPlatform
from inference_local.run_steps import Steps
from tests.local.conformance.platforms import AGGREGATED, EcsRendering, blueprint, eventually

_WORKERS = 2


def with_batch(content: dict[str, Any]) -> None:
    """Give the platform a team, a queue and a fixed number of workers."""
    spec = content["spec"]
    role = "arn:aws:iam::123456789012:role/Ads"
    spec["teams"] = [{"name": "ads", "principals": [role], "monthlyBudgetUsd": 1000}]
    rates = {"usdPerMillionInputTokens": 0.1, "usdPerMillionOutputTokens": 1}
    spec["batch"] = {
        "workers": {"min": _WORKERS, "max": _WORKERS},
        "queues": [{"name": "nightly", "model": AGGREGATED.model, "rates": rates}],
    }


class BatchPlatform(Protocol):
    """A platform with one batch queue."""

    def run_job(self) -> BatchOutcome:
        """Run a job, and kill every worker once the job has results."""

    def close(self) -> None:
        """End it."""


class BatchEks:
    """The local run of the file: the stacks in the emulator, and processes with the pods' environment."""

    def __init__(self, directory: Path) -> None:
        loaded = blueprint({"eks": {"version": "1.36"}}, directory, with_batch)
        run = directory / "run"
        run.mkdir()
        self._platform = LocalPlatform(loaded, build_plan(loaded.blueprint), run)
        self._platform.__enter__()
        self._steps = Steps(Console(file=io.StringIO()), self._platform.scope.step_titles)
        self._platform.start(self._steps)

    def run_job(self) -> BatchOutcome:
        outcomes = self._platform.run_batch_jobs(self._steps)
        assert outcomes is not None
        [outcome] = outcomes
        return outcome

    def close(self) -> None:
        self._platform.__exit__(None, None, None)


class BatchEcs:
    """The rendered tasks: workers on Fargate, which call the models through the load balancer."""

    def __init__(self, directory: Path, report: Callable[[str], None]) -> None:
        self._platform = EcsRendering(directory, report, with_batch)

    def run_job(self) -> BatchOutcome:
        emulator, spec = self._platform.platform.emulator, self._platform.loaded.blueprint.spec
        ecs, s3 = emulator.client("ecs"), emulator.client("s3")
        [release] = worker_services(ecs)
        bucket = release.environment[batch_names.BUCKET]

        def has_results(job: str) -> bool:
            listed = s3.list_objects_v2(Bucket=bucket, Prefix=JobKeys(job).chunks, MaxKeys=1)
            return bool(listed["KeyCount"])

        def kill() -> int:
            tasks = self._worker_tasks()
            for task in tasks:
                self._platform.fault("KillTask", task=task.rpartition("/")[2])
            return len(tasks)

        eventually(lambda: len(self._worker_tasks()) == _WORKERS, "batch workers")
        running = find_batch(emulator, self._platform.cluster, spec.teams)
        assert spec.batch is not None
        job = BatchJob(running, spec.batch.queues[0], own_means(spec.models[0]), AGGREGATED.context)
        return job.run(has_results, kill, emulator.check, lambda *_: {})

    def close(self) -> None:
        self._platform.close()

    def _worker_tasks(self) -> list[str]:
        """Return the ARNs of the tasks that run, of the cluster that the batch stack has for its workers."""
        ecs = self._platform.ecs
        for cluster in ecs.list_clusters()["clusterArns"]:
            if cluster.rpartition("/")[2] != self._platform.cluster:
                arns = ecs.list_tasks(cluster=cluster)["taskArns"]
                found = ecs.describe_tasks(cluster=cluster, tasks=arns)["tasks"] if arns else []
                return [each["taskArn"] for each in found if each["lastStatus"] == "RUNNING"]
        raise AssertionError("the batch stack has no cluster for its workers")
