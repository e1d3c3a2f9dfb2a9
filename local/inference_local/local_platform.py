"""Runs a blueprint on this machine: synthesises it, deploys it to the emulator and serves its models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.serving.types import ServingPlan
from inference_local import platform_steps
from inference_local.processes.child_processes import ProcessGroup, Restarts
from inference_local.run_scope import RunScope
from inference_local.run_state import RunningBatch, RunningDoor, RunningSignals, StreamDoor
from inference_local.run_steps import BATCH_JOBS, EMULATOR, FRONT_DOOR, KILLS, Steps
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.local_endpoint import LocalEndpoint, ServedProcess
from inference_local.serving.local_serving import LocalServing
from inference_local.serving.platform_parts import PlatformPart, Replacement
from inference_local.serving.simulated_kind import SimulatedKind
from inference_local.worker_kills import WorkerLoss

# What comes after the engines is imported when it is needed: clients of AWS, Kafka and OpenAI take seconds.
if TYPE_CHECKING:
    from inference_blueprints.spec.types import StreamingJob
    from inference_local.batch.batch_outcome import BatchOutcome
    from inference_local.batch.local_batch import LocalBatch
    from inference_local.controllers.controlled_run import ControlledRun
    from inference_local.emulator.emulator import Emulator
    from inference_local.front_door.front_door_outcome import FrontDoorOutcome
    from inference_local.front_door.front_door_run import LocalFrontDoor
    from inference_local.prometheus.local_prometheus import LocalPrometheus, ScrapeTarget
    from inference_local.scaling.elastic_run import ElasticRun
    from inference_local.scaling.local_shift import LocalShift


@dataclass(frozen=True, slots=True)
class Deployed:
    """A platform whose models are served and whose stacks are deployed."""

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
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables that point AWS clients at the emulator."""
    door: RunningDoor | None = None
    """The front door. None if the blueprint has none."""


class LocalPlatform:
    """Runs the stacks of a blueprint on the AWS emulator and its models on engines of this machine.

    Use it as a context manager. Engines need only the plan, so `serve` comes before `deploy`.

    run_directory: Folder for templates, logs and records. Files of an earlier run are removed.
    engines: The engines. By default, simulated ones.
    control_plane: Whether the EKS cluster is a real Kubernetes API server with fake nodes. Otherwise, objects
        are only recorded.
    port: Port of the first model's endpoint; those of further models follow it. With a front door, its port.
        None for free ports.
    """

    def __init__(
        self,
        loaded: LoadedBlueprint,
        plan: ServingPlan,
        run_directory: Path,
        *,
        engines: EngineKind | None = None,
        control_plane: bool = False,
        port: int | None = None,
    ) -> None:
        self._engines = engines or SimulatedKind(loaded.blueprint)
        self._loaded = loaded
        self._plan = plan
        self._directory = run_directory.resolve()
        #: Which parts this run has.
        self.scope = RunScope(loaded.blueprint, plan, self._engines, control_plane)
        self._port = port
        self._resources = ExitStack()
        self._checks: list[Callable[[], None]] = []
        self._processes = ProcessGroup()
        self._serving: LocalServing | None = None
        self._batch: LocalBatch | None = None
        self._emulator: Emulator | None = None
        self._shift: LocalShift | None = None
        self._front_door: LocalFrontDoor | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._resources.close()

    def start(self, steps: Steps) -> Deployed:
        """Serve and deploy. Parameters and errors are those of `serve` and `deploy`."""
        self.serve(steps)
        return self.deploy(steps)

    def serve(self, steps: Steps) -> tuple[LocalEndpoint, ...]:
        """Start the engines, and return the endpoint of each model once it answers.

        steps: Where progress is shown.
        Raises UserError if the engines cannot run a part of the blueprint. Raises ProcessDied if a process
            ends during the start. Raises NotReady if the engines do not register in time.
        """
        self._engines.check()
        platform_steps.empty_directory(self._directory)
        if self._engines.preparation:
            with steps.step(self._engines.preparation):
                self._engines.prepare(steps.say)
        with steps.step(self.scope.serving_title) as step:
            processes = self._resources.enter_context(self._processes)
            serving = LocalServing(
                self._plan,
                self._loaded.blueprint,
                self._directory / "serving",
                processes,
                engines=self._engines,
                port=None if self.scope.has_front_door else self._port,
            )
            self._serving = self._resources.enter_context(serving)
            self._checks.append(serving.check)
            return serving.start(lambda what: step.update(detail=what))

    def deploy(self, steps: Steps) -> Deployed:
        """Synthesise and deploy the stacks, and start what needs them.

        steps: Where progress is shown.
        Raises RuntimeError before `serve`. Raises UserError if the app cannot be synthesised or deployed.
            Raises ProcessDied if a process has ended.
        """
        from inference_local.emulator import emulator_parts

        serving = self.serving
        endpoints = serving.endpoints()
        if self.scope.control_plane:
            platform_steps.build_control_plane(steps)
        assembly = self._directory / "cdk.out"
        platform_steps.write_templates(steps, self._loaded.file, assembly)
        self.check()
        emulator = self._emulator = self._emulate(steps)
        platform_steps.deploy_stacks(steps, emulator, assembly, self._log("deploy"))
        self.check()
        parts = serving.parts()
        if self._loaded.blueprint.spec.batch:
            from inference_local.batch.local_batch import LocalBatch
            from inference_local.controllers.deployed_function import MINUTE_HANDLERS, deployed_function

            batch_directory = self._directory / "batch"
            self._batch = LocalBatch(
                self._loaded.blueprint, emulator, endpoints, batch_directory, self._processes
            )
            parts += self._batch.parts()
            if (
                self._loaded.blueprint.spec.capacity_shift
                and self.scope.runs_batch
                and not self.scope.is_controlled
            ):
                # It reaches no cluster here, and would take all places from batch each minute.
                deployed_function(assembly, emulator, MINUTE_HANDLERS["shift"]).stop(emulator)
        front_door = self._start_front_door(steps)
        if front_door is not None:
            parts += front_door.door.parts()
        if self._batch is not None:
            self._batch.start(front_door.door.base_url if front_door else None)
        described = emulator_parts.describe(
            assembly, emulator.recorded_releases(), control_plane=self.scope.control_plane
        )
        return Deployed(
            endpoints,
            (*parts, *described),
            (*serving.replacements(), *(front_door.scenario.replacements if front_door else ())),
            self._batch.running if self._batch else None,
            self._batch.running_signals if self._batch else None,
            serving.served_processes(),
            emulator.environment(),
            front_door.running if front_door else None,
        )

    def control(self, steps: Steps, ramp_seconds: float) -> tuple[ControlledRun, tuple[PlatformPart, ...]]:
        """Start Prometheus. Return the controllers, and their rows of the table of parts.

        steps: Where progress is shown; one step.
        ramp_seconds: Length of each ramp of the load.
        Raises RuntimeError before `deploy`. Raises UserError if Prometheus does not start, or an object or a
            function was not deployed.
        """
        from inference_local.controllers.controlled_parts import (
            HEALTH_FACTOR,
            control,
            controlled_platform_parts,
        )
        from inference_local.controllers.metric_answers import controllers_rules
        from inference_local.scaling.elastic_parts import (
            elastic_platform_parts,
            elastic_roles,
            scrape_targets,
        )

        serving, emulator = self.serving, self._deployed()
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

    def shifted(self) -> Iterator[str]:
        """Yield what the capacity shift moved in this run, a line for each role."""
        for name, (fewest, most) in self._shift.moved.items() if self._shift else ():
            yield f"capacity shift (simulated): {name} was given {fewest} to {most} workers"

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

        Raises RuntimeError before `deploy`. Raises UserError if Prometheus does not start, or a role has no
        ScaledObject.
        """
        from inference_local.scaling.elastic_parts import (
            elastic_platform_parts,
            elastic_roles,
            lent_roles,
            scrape_targets,
        )
        from inference_local.scaling.elastic_run import TIME_FACTOR, ElasticRun
        from inference_local.scaling.local_shift import local_shift_part

        serving, emulator = self.serving, self._deployed()
        blueprint = self._loaded.blueprint
        roles = elastic_roles(blueprint, serving, emulator.records_directory)
        targets = partial(scrape_targets, blueprint, serving)
        prometheus = self._prometheus(steps, targets())
        if not self.scope.lends:
            return ElasticRun(serving, prometheus, roles, targets), elastic_platform_parts(roles)
        shift = self._shift = self._local_shift(prometheus)
        lent = lent_roles(blueprint, serving)
        elastic = ElasticRun(serving, prometheus, roles, targets, shift=shift, lent=lent)
        return elastic, (*elastic_platform_parts(roles), local_shift_part(TIME_FACTOR))

    def _local_shift(self, prometheus: LocalPrometheus) -> LocalShift:
        """Return the capacity shift over this run. Raises RuntimeError without batch or the section."""
        from inference_blueprints.serving.scaling.shift_of_plan import shift_configuration_of
        from inference_local.scaling.local_shift import LocalShift

        configuration = shift_configuration_of(self._loaded.blueprint, self._plan)
        if configuration is None or self._batch is None:
            raise RuntimeError("the blueprint has no capacity shift")

        def demand() -> Mapping[str, float]:
            found = prometheus.query("sum by (release) (dynamo_frontend_inflight_requests)")
            return {each.labels["release"]: each.value for each in found if "release" in each.labels}

        return LocalShift(
            configuration, demand=demand, needed=self._batch.needed_places, lend=self._batch.lend
        )

    def run_batch_jobs(self, steps: Steps) -> tuple[BatchOutcome, ...] | None:
        """Run a job in each batch queue while its workers are killed. Return None if there are no workers.

        steps: Where progress is shown: one step, if there are workers.
        Raises UserError if the batch API refuses a job, or a job takes too long. Raises ProcessDied if a
            process ends unexpectedly.
        """
        if self._batch is None or self._batch.running is None:
            return None
        if self._shift is None:
            self._batch.lend()
        with steps.step(BATCH_JOBS) as step:
            outcomes = self._batch.run_jobs(lambda what: step.update(detail=what))
            requests, whole = sum(each.requests for each in outcomes), all(each.is_whole for each in outcomes)
            step.result = f"{requests} requests" + ("" if whole else ", not all answered exactly once")
        return outcomes

    @property
    def door_of_jobs(self) -> Callable[[StreamingJob], StreamDoor] | None:
        """Returns the front door as a streaming job sees it. None without one."""
        return self._front_door.for_job if self._front_door else None

    def run_front_door(self, steps: Steps) -> FrontDoorOutcome | None:
        """Let all teams call through the front door while a replica is killed. Return None without callers.

        steps: Where progress is shown: one step, if there are callers.
        Raises ProcessDied if a process ends that was not killed. Raises NotReady if a killed replica does not
            start again.
        """
        door = self._front_door if self.scope.has_callers else None
        return platform_steps.call_front_door(steps, door, timed=self._engines.has_times) if door else None

    def kill_workers(self, steps: Steps, *, replace: bool) -> tuple[WorkerLoss, ...]:
        """Kill one worker process per role while streams are in flight, and count their outcomes.

        replace: Whether to start the killed processes again, which takes ten more seconds.
        Raises RuntimeError before `serve`. Raises UserError if a frontend does not answer. Raises ProcessDied
            if a process ends unexpectedly. Raises NotReady if the replacements do not register in time.
        """
        from inference_local.worker_kills import kill_workers

        serving = self.serving
        with steps.step(KILLS) as step:
            losses = kill_workers(serving, lambda what: step.update(detail=what))
            streams, lost = sum(loss.streams for loss in losses), sum(loss.lost for loss in losses)
            step.result = f"{streams} streams in flight, {lost} lost"
            if replace:
                serving.replace_killed(lambda what: step.update(detail=what))
        return losses

    def restarts(self, say: Callable[[str], None]) -> Restarts:
        """Return the restarts of this platform's processes, which `restart_workers` counts.

        say: Called with a line for each restart.
        """
        return Restarts(self._processes, say)

    def restart_workers(self, restarts: Restarts) -> None:
        """Start workers of models and of batch, and parts of the front door, again that have ended."""
        door = self._front_door.door if self._front_door else None
        for workers in (self._serving, self._batch, door):
            if workers is not None:
                workers.restart_ended(restarts)

    def check(self) -> None:
        """Make sure that every process still runs.

        Raises ProcessDied if one has exited, with its exit code and last log lines.
        """
        for check in self._checks:
            check()

    @property
    def serving(self) -> LocalServing:
        """The served models. Raises RuntimeError before `serve`."""
        if self._serving is None:
            raise RuntimeError("the models are not served")
        return self._serving

    def _deployed(self) -> Emulator:
        if self._emulator is None:
            raise RuntimeError("the stacks are not deployed")
        return self._emulator

    def _prometheus(
        self, steps: Steps, targets: Iterable[ScrapeTarget], rules: str | None = None
    ) -> LocalPrometheus:
        return platform_steps.start_prometheus(
            steps, self._directory / "prometheus", self._processes, targets, rules
        )

    def _start_front_door(self, steps: Steps) -> LocalFrontDoor | None:
        """Start the front door of the plan. None without one."""
        plan = self._plan.front_door
        if plan is None:
            return None
        from inference_local.front_door.front_door_run import FrontDoorParts, start_front_door

        parts = FrontDoorParts(
            self._loaded.blueprint,
            plan,
            self.serving,
            self._deployed(),
            self._batch.running if self._batch else None,
            self._directory / "front-door",
            self._processes,
        )
        with steps.step(FRONT_DOOR) as step:
            self._front_door = self._resources.enter_context(
                start_front_door(parts, self._port, lambda what: step.update(detail=what))
            )
            step.result = self._front_door.door.base_url
        return self._front_door

    def _emulate(self, steps: Steps) -> Emulator:
        from inference_local.emulator.emulator import DEFAULT_ACCOUNT, Emulator
        from inference_local.emulator.emulator_deploy import bootstrap

        environment = self._loaded.blueprint.spec.environment
        with steps.step(EMULATOR) as step:
            emulator = Emulator(
                self._directory,
                region=environment.region,
                account=environment.account or DEFAULT_ACCOUNT,
                control_plane=self.scope.control_plane,
            )
            self._resources.enter_context(emulator)
            self._checks.append(emulator.check)
            bootstrap(emulator, log_path=self._log("bootstrap"), on_line=lambda _: step.update())
            step.result = emulator.endpoint_url
        return emulator

    def _log(self, name: str) -> Path:
        return self._directory / "logs" / f"{name}.log"
