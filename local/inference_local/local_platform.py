"""Runs a blueprint on this machine: synthesises it, deploys it to the emulator and serves its models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.controllers import controllers_of
from inference_contracts.controller_calls import CONTROLLERS
from inference_local.batch.batch_outcome import BatchOutcome
from inference_local.batch.local_batch import LocalBatch
from inference_local.controllers.controlled_parts import (
    HEALTH_FACTOR,
    control,
    controlled_platform_parts,
)
from inference_local.controllers.controlled_run import ControlledRun
from inference_local.controllers.worker_series import controllers_rules
from inference_local.emulator import emulator_parts
from inference_local.emulator.emulator import DEFAULT_ACCOUNT, Emulator
from inference_local.emulator.emulator_deploy import bootstrap
from inference_local.platform_steps import (
    build_control_plane,
    deploy_stacks,
    empty_directory,
    start_prometheus,
    write_templates,
)
from inference_local.processes.child_processes import ProcessGroup
from inference_local.processes.restarts import Restarts
from inference_local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget
from inference_local.run_state import RunningBatch, RunningSignals
from inference_local.run_steps import Steps
from inference_local.scaling.elastic_parts import (
    elastic_platform_parts,
    elastic_roles,
    scrape_targets,
)
from inference_local.scaling.elastic_run import ElasticRun
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.local_endpoint import LocalEndpoint
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.platform_parts import PlatformPart, Replacement
from inference_local.serving.served_process import ServedProcess
from inference_local.serving.simulated_kind import SimulatedKind
from inference_local.worker_kills import kill_workers
from inference_local.worker_losses import WorkerLoss

_STEP_COUNT = 4


@dataclass(frozen=True, slots=True)
class Deployed:
    """A started platform."""

    endpoints: tuple[LocalEndpoint, ...]
    """The endpoint of each model."""
    parts: tuple[PlatformPart, ...]
    """Which parts are real, emulated, simulated or stubbed."""
    replacements: tuple[Replacement, ...] = ()
    """Settings of the plan that have another value on this machine."""
    batch: RunningBatch | None = None
    """The batch API. None if no workers run."""
    signals: RunningSignals | None = None
    """The signal store. None if the blueprint has none."""
    processes: tuple[ServedProcess, ...] = ()
    """Its frontends and worker processes."""


class LocalPlatform:
    """Runs the stacks of a blueprint on the AWS emulator and its models on engines of this machine.

    Use it as a context manager.

    run_directory: Folder for templates, logs and records. Files of an earlier run are removed.
    engines: The engines. By default, simulated ones.
    control_plane: Whether the EKS cluster is a real Kubernetes API server with fake nodes. Otherwise, objects
        are only recorded.
    """

    def __init__(
        self,
        loaded: LoadedBlueprint,
        plan: ServingPlan,
        run_directory: Path,
        *,
        engines: EngineKind | None = None,
        control_plane: bool = False,
    ) -> None:
        self._engines = engines or SimulatedKind(loaded.blueprint)
        self._loaded = loaded
        self._plan = plan
        self._directory = run_directory.resolve()
        self._control_plane = control_plane
        self._resources = ExitStack()
        self._checks: list[Callable[[], None]] = []
        self._processes = ProcessGroup()
        self._serving: LocalServing | None = None
        self._batch: LocalBatch | None = None
        self._emulator: Emulator | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._resources.close()

    @property
    def step_count(self) -> int:
        """How many steps `start` and `run_batch_jobs` show."""
        runs_batch = self._loaded.blueprint.spec.batch is not None and not self._control_plane
        prepares = self._engines.preparation is not None
        return _STEP_COUNT + self._control_plane + runs_batch + prepares + self.is_elastic

    def start(self, steps: Steps) -> Deployed:
        """Synthesise, deploy and serve.

        steps: Where progress is shown.
        Raises UserError if the engines cannot run a part of the blueprint, or the app cannot be synthesised
            or deployed. Raises ProcessDied if a process ends during the start. Raises NotReady if the engines
            do not register in time.
        """
        self._engines.check()
        empty_directory(self._directory)
        if self._engines.preparation:
            with steps.step(self._engines.preparation):
                self._engines.prepare(steps.say)
        if self._control_plane:
            build_control_plane(steps)
        assembly = self._directory / "cdk.out"
        write_templates(steps, self._loaded.file, assembly)
        emulator = self._emulator = self._deploy(steps, assembly)
        serving, endpoints = self._serve(steps)
        parts = serving.parts()
        if self._loaded.blueprint.spec.batch:
            batch_directory = self._directory / "batch"
            self._batch = LocalBatch(
                self._loaded.blueprint, emulator, endpoints, batch_directory, self._processes
            )
            self._batch.start()
            parts += self._batch.parts()
        described = emulator_parts.describe(
            assembly, emulator.recorded_releases(), control_plane=self._control_plane
        )
        return Deployed(
            endpoints,
            (*parts, *described),
            serving.replacements(),
            self._batch.running if self._batch else None,
            self._batch.running_signals if self._batch else None,
            serving.served_processes(),
        )

    @property
    def is_elastic(self) -> bool:
        """Whether some workers follow the load here: KEDA's decisions can be made here, those of ECS not."""
        on_eks = bool(self._loaded.blueprint.spec.cluster.eks)
        return on_eks and self._engines.elastic_load is not None and self._plan.is_elastic

    @property
    def is_controlled(self) -> bool:
        """Whether GPU health and the capacity shift run beside the load."""
        spec = self._loaded.blueprint.spec
        controlled = len(controllers_of(spec)) == len(CONTROLLERS)
        return controlled and self.is_elastic and spec.batch is not None and not self._control_plane

    def control(self, steps: Steps, ramp_seconds: float) -> tuple[ControlledRun, tuple[PlatformPart, ...]]:
        """Start Prometheus. Return the controllers, and their rows of the table of parts.

        steps: Where progress is shown; one step.
        ramp_seconds: Length of each ramp of the load.
        Raises RuntimeError before `start`. Raises UserError if Prometheus does not start, or an object or a
            function was not deployed.
        """
        serving, emulator = self._started()
        blueprint = self._loaded.blueprint
        roles = elastic_roles(blueprint, serving, emulator.records_directory)
        rules = controllers_rules(blueprint.metadata.name, self._plan, HEALTH_FACTOR)
        controlled = control(
            blueprint,
            serving,
            emulator,
            self._prometheus(steps, (), rules),
            roles=roles,
            targets=partial(scrape_targets, blueprint, serving),
            processes=self._processes,
            directory=self._directory,
            ramp_seconds=ramp_seconds,
        )
        return controlled, (*elastic_platform_parts(roles), *controlled_platform_parts())

    def run_batch_beside(self, requests: int) -> BatchOutcome:
        """Run a batch job without killing its workers.

        Raises RuntimeError if there are no workers. Raises UserError if the batch API refuses the job, or it
        takes too long.
        """
        if self._batch is None:
            raise RuntimeError("the blueprint has no batch")
        return self._batch.run_beside(requests)

    def follow_load(self, steps: Steps) -> tuple[ElasticRun, tuple[PlatformPart, ...]]:
        """Start Prometheus. Return what lets workers follow the load, and its rows of the table of parts.

        Raises RuntimeError before `start`. Raises UserError if Prometheus does not start, or a role has no
        ScaledObject.
        """
        serving, emulator = self._started()
        blueprint = self._loaded.blueprint
        roles = elastic_roles(blueprint, serving, emulator.records_directory)
        targets = partial(scrape_targets, blueprint, serving)
        elastic = ElasticRun(serving, self._prometheus(steps, targets()), roles, targets)
        return elastic, elastic_platform_parts(roles)

    def run_batch_jobs(self, steps: Steps) -> tuple[BatchOutcome, ...] | None:
        """Run a job in each batch queue while its workers are killed. Return None if there are no workers.

        steps: Where progress is shown: one step, if there are workers.
        Raises UserError if the batch API refuses a job, or a job takes too long. Raises ProcessDied if a
            process ends unexpectedly.
        """
        if self._batch is None or self._batch.running is None:
            return None
        with steps.step("Run batch jobs while workers are killed") as step:
            outcomes = self._batch.run_jobs(lambda what: step.update(detail=what))
            requests, whole = sum(each.requests for each in outcomes), all(each.is_whole for each in outcomes)
            step.result = f"{requests} requests" + ("" if whole else ", not all answered exactly once")
        return outcomes

    def kill_workers(self, steps: Steps, *, replace: bool) -> tuple[WorkerLoss, ...]:
        """Kill one worker process per role while streams are in flight, and count their outcomes.

        replace: Whether to start the killed processes again, which takes ten more seconds.
        Raises RuntimeError before `start`. Raises UserError if a frontend does not answer. Raises ProcessDied
            if a process ends unexpectedly. Raises NotReady if the replacements do not register in time.
        """
        if self._serving is None:
            raise RuntimeError("the platform is not started")
        with steps.step("Kill workers while they serve requests") as step:
            losses = kill_workers(self._serving, lambda what: step.update(detail=what))
            streams, lost = sum(loss.streams for loss in losses), sum(loss.lost for loss in losses)
            step.result = f"{streams} streams in flight, {lost} lost"
            if replace:
                self._serving.replace_killed(lambda what: step.update(detail=what))
        return losses

    def restarts(self, say: Callable[[str], None]) -> Restarts:
        """Return the restarts of this platform's processes, which `restart_workers` counts.

        say: Called with a line for each restart.
        """
        return Restarts(self._processes, say)

    def restart_workers(self, restarts: Restarts) -> None:
        """Start workers of models and of batch again that have ended, as the cluster does."""
        for workers in (self._serving, self._batch):
            if workers is not None:
                workers.restart_ended(restarts)

    def check(self) -> None:
        """Make sure that every process still runs.

        Raises ProcessDied if one has exited, with its exit code and last log lines.
        """
        for check in self._checks:
            check()

    def _started(self) -> tuple[LocalServing, Emulator]:
        if self._serving is None or self._emulator is None:
            raise RuntimeError("the platform is not started")
        return self._serving, self._emulator

    def _prometheus(
        self, steps: Steps, targets: Iterable[ScrapeTarget], rules: str | None = None
    ) -> LocalPrometheus:
        return start_prometheus(steps, self._directory / "prometheus", self._processes, targets, rules)

    def _deploy(self, steps: Steps, assembly: Path) -> Emulator:
        environment = self._loaded.blueprint.spec.environment
        with steps.step("Start the AWS emulator and bootstrap it") as step:
            emulator = Emulator(
                self._directory,
                region=environment.region,
                account=environment.account or DEFAULT_ACCOUNT,
                control_plane=self._control_plane,
            )
            self._resources.enter_context(emulator)
            self._checks.append(emulator.check)
            bootstrap(emulator, log_path=self._log("bootstrap"), on_line=lambda _: step.update())
            step.result = emulator.endpoint_url
        deploy_stacks(steps, emulator, assembly, self._log("deploy"))
        return emulator

    def _serve(self, steps: Steps) -> tuple[LocalServing, tuple[LocalEndpoint, ...]]:
        with steps.step(f"Start the router and {self._engines.title}") as step:
            processes = self._resources.enter_context(self._processes)
            serving = LocalServing(
                self._plan,
                self._loaded.blueprint,
                self._directory / "serving",
                processes,
                engines=self._engines,
            )
            self._serving = self._resources.enter_context(serving)
            self._checks.append(serving.check)
            endpoints = serving.start(lambda what: step.update(detail=what))
            step.result = ", ".join(endpoint.base_url for endpoint in endpoints)
        return serving, endpoints

    def _log(self, name: str) -> Path:
        return self._directory / "logs" / f"{name}.log"
