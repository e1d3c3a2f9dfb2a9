"""Serves a plan on this machine."""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

from inference_blueprints.serving.resolved import shape_of
from inference_blueprints.serving.traffic import further_routes, model_traffic, own_deployments
from inference_blueprints.serving.types import Role, ServingPlan
from inference_blueprints.spec.types import Blueprint, ImageRequests
from inference_local.processes.child_processes import ProcessGroup, Restarts, RunningProcess
from inference_local.processes.free_ports import free_ports
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.frontend_process import FrontendProcess, open_listeners, routes
from inference_local.serving.isolation import Isolation, open_isolation
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.local_endpoint import LocalEndpoint, ServedProcess
from inference_local.serving.local_target import LocalTarget
from inference_local.serving.platform_parts import PlatformPart, Replacement
from inference_local.serving.process_commands import FRONTEND_ENDS_AT_ONCE, Launch
from inference_local.serving.readiness import (
    registered_workers,
    wait_until_answered,
    wait_until_forgotten,
    wait_until_listed,
    wait_until_ready,
)
from inference_local.serving.running_workers import RunningWorkers, WorkerProcess, place_workers
from inference_local.serving.serving_parts import describe
from inference_local.serving.simulated_kind import SimulatedKind
from inference_local.serving.structured_answers import SUFFIX

_FIRST_NAMESPACE_PORT = 8000


class LocalServing:
    """Runs the frontends and the engines of every deployment of a plan.

    Use it as a context manager.

    plan: The plan to serve.
    blueprint: The blueprint of the plan. It lists the instance types of the pools.
    run_directory: Folder for logs, model directories and profiles. Files of an earlier run of a deployment
        are removed.
    processes: The process group that the processes join. It ends all of them.
    engines: The engines. By default, simulated ones.
    isolate: Whether to use a network namespace, if this machine allows one.
    port: Port of the first model's endpoint; those of further models follow it. None for free ports.
    Raises UserError if the engines cannot run a part of the blueprint.
    """

    def __init__(
        self,
        plan: ServingPlan,
        blueprint: Blueprint,
        run_directory: Path,
        processes: ProcessGroup,
        *,
        engines: EngineKind | None = None,
        isolate: bool = True,
        port: int | None = None,
    ) -> None:
        self._engines = engines or SimulatedKind(blueprint)
        self._engines.check()
        target = LocalTarget(blueprint, self._engines)
        self._models = {model.name: target.render(model) for model in plan.models}
        self._images = {
            model.name: model_traffic(blueprint.spec, model).means.images for model in blueprint.spec.models
        }
        #: Addresses of each model: its own, and those of queues and jobs with deployments of their own.
        self._further = {model.name: further_routes(blueprint.spec, model) for model in blueprint.spec.models}
        self._addresses = {
            address: {f"{model.name}-{name}" for name in names}
            for model in blueprint.spec.models
            for address, names in {
                model.name: own_deployments(blueprint.spec, model),
                **self._further[model.name],
            }.items()
        }
        #: Deployments that a front door reaches one by one, by their releases.
        self._apart = {
            cluster.name: f"deployment {cluster.name}"
            for cluster in (plan.front_door.clusters if plan.front_door else ())
        }
        self._addresses |= {address: {release} for release, address in self._apart.items()}
        self._shapes = {model.name: shape_of(model.weights) for model in blueprint.spec.models}
        self._directory = run_directory.resolve()
        self._processes = processes
        self._isolate = isolate
        self._wanted_ports = {} if port is None else dict(zip(self._models, count(port), strict=False))
        self._isolation = Isolation(None, "not requested")
        self._started: list[RunningProcess] = []
        self._frontend_ports: list[tuple[FrontendProcess, int]] = []
        self._ports: Mapping[str, int] = {}
        self._workers = RunningWorkers(processes, self._start_launch)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._workers.cancel_signals()
        for process in self._started:
            if process.popen.poll() is None:
                process.popen.terminate()

    def start(self, on_progress: Callable[[str], None]) -> tuple[LocalEndpoint, ...]:
        """Start everything and wait until all workers are registered with their frontends.

        on_progress: Called with a description of the current wait.
        Returns: One per model, in the plan's order.
        Raises ProcessDied if a process ends during the wait. The message contains the end of its log. Raises
            NotReady if it takes too long.
        """
        self.begin()
        self._wait(on_progress)
        return self.endpoints()

    def images_of(self, model: str) -> ImageRequests | None:
        """Return what requests to a model ask for; None if it writes text."""
        return self._images[model]

    def begin(self) -> None:
        """Start everything without waiting for it. `start` does both."""
        if self._isolate:
            hold = partial(self._start, "network namespace")
            self._isolation = open_isolation(lambda command, pipes: hold(command, {}, pipes))
        frontends = self._frontends()
        placed = place_workers(self.deployments, self._home, isolated=self._isolation.holder is not None)
        self._workers.place(placed)
        pages = {name: each.pages(self._engines.mark) for name, each in placed.items()}
        ports = open_listeners(
            {**routes(frontends, self._addresses, self._engines.mark), **pages},
            lambda command, sockets: self._start("relay", command, {}, sockets),
            self._wanted_ports,
        )
        for deployment in self.deployments:
            self._start_workers(deployment)
        for frontend in frontends:
            self._start_frontend(frontend)
        self._ports = ports
        self._frontend_ports = [(frontend, ports[frontend.name]) for frontend in frontends]

    def endpoints(self) -> tuple[LocalEndpoint, ...]:
        """Return one endpoint per model, in the plan's order, once `begin` or `start` has returned."""
        return tuple(self._endpoint(model) for model in self._models)

    def parts(self) -> tuple[PlatformPart, ...]:
        """Return which parts are real and which are simulated. Complete once `start` has returned."""
        return describe(self.deployments, self._isolation)

    def replacements(self) -> tuple[Replacement, ...]:
        """Return the settings of the plan that have another value on this machine."""
        return tuple(
            each
            for deployment in self.deployments
            for settings in (
                *(workers.replacements for workers in deployment.workers),
                deployment.frontend.replacements(deployment.plan.release),
            )
            for each in settings
        )

    @property
    def engines(self) -> EngineKind:
        """The engines."""
        return self._engines

    def served_processes(self) -> tuple[ServedProcess, ...]:
        """Return all frontends and worker processes, once `start` has returned."""
        frontends = [
            ServedProcess(
                frontend.name,
                frontend.deployment.plan.release,
                frontend.deployment.frontend.process.name,
                self._url(frontend.name),
                frontend.deployment.frontend.process.probes.readiness.path,
                str(self._log(frontend.name)),
            )
            for frontend, _ in self._frontend_ports
        ]
        workers = [
            each.served(self._url(name), self._log(name))
            for name, each in self._workers.placed.items()
            if self._workers.runs(each.worker)
        ]
        return (*frontends, *workers)

    def check(self) -> None:
        """Make sure that every process of the group still runs.

        Raises ProcessDied if one has exited, with its exit code and last log lines.
        """
        self._processes.check()

    def first_workers(self) -> tuple[WorkerProcess, ...]:
        """Return the first worker process of each role of each deployment, once `start` has returned."""
        return tuple(each.worker for each in self._workers.placed.values() if each.worker.index == 0)

    @property
    def workers(self) -> RunningWorkers:
        """The worker processes, once `start` has returned."""
        return self._workers

    def frontend_urls(self, deployment: LocalDeployment) -> tuple[str, ...]:
        """Return the URLs of a deployment's frontends, without ``/v1``, once `start` has returned.

        deployment: A deployment of the plan.
        """
        ports = [port for frontend, port in self._frontend_ports if frontend.deployment is deployment]
        return tuple(f"http://127.0.0.1:{port}" for port in ports)

    def deployment_ports(self) -> Mapping[str, int]:
        """Return the port of 127.0.0.1 of each deployment that a front door reaches, by its release.

        It leads to all frontends of the deployment in turn. Complete once `start` has returned.
        """
        return {release: self._ports[address] for release, address in self._apart.items()}

    def registered(self, deployment: LocalDeployment) -> tuple[int | None, ...]:
        """Return how many workers each frontend of a deployment lists now; None if it does not answer."""
        ports = [port for frontend, port in self._frontend_ports if frontend.deployment is deployment]
        return tuple(registered_workers(port, deployment.model.name) for port in ports)

    def kill(self, worker: WorkerProcess) -> None:
        """Kill a worker process with SIGKILL.

        worker: A running worker process.
        """
        self._workers.kill(worker)

    def restart_ended(self, restarts: Restarts) -> None:
        """Start worker processes again that have ended. The frontends send them requests once they register.

        restarts: Counts the restarts of each process.
        """
        self._workers.restart_ended(restarts)

    def await_removal(self, on_progress: Callable[[str], None]) -> None:
        """Wait until the frontends have removed the killed worker processes from their lists.

        Before, they still send some requests to them: a stream that moves may get such a worker.

        Raises ProcessDied if a process ends during the wait. The message contains the end of its log. Raises
        NotReady if it takes too long.
        """
        dead = Counter({deployment.plan.release: 0 for deployment in self.deployments})
        for worker in self._workers.killed:
            dead[worker.deployment.plan.release] += worker.workers
        deadline = time.monotonic() + self._engines.ready_seconds
        for frontend, port in self._frontend_ports:
            deployment = frontend.deployment
            on_progress(f"{frontend.name}: waiting until killed workers are deregistered")
            wait_until_forgotten(
                frontend.name,
                port,
                deployment.model.name,
                deployment.worker_count - dead[deployment.plan.release],
                deadline=deadline,
                check=self.check,
            )

    def replace_killed(self, on_progress: Callable[[str], None]) -> None:
        """Restart the killed worker processes, and wait until they are registered.

        Raises ProcessDied if a process ends during the wait. The message contains the end of its log. Raises
        NotReady if it takes too long.
        """
        self.await_removal(on_progress)
        self._workers.begin_all(self._workers.killed)
        self._wait(on_progress)

    @property
    def deployments(self) -> list[LocalDeployment]:
        """Every deployment of the plan."""
        return [deployment for deployments in self._models.values() for deployment in deployments]

    def _home(self, deployment: LocalDeployment) -> Path:
        return self._directory / deployment.plan.release

    def _frontends(self) -> list[FrontendProcess]:
        """Give each frontend a port: a fixed one in a namespace, otherwise a free one."""
        named = [
            (f"frontend {index + 1} of {deployment.plan.release}", deployment)
            for deployment in self.deployments
            for index in range(deployment.frontend.replicas)
        ]
        ports = list(range(_FIRST_NAMESPACE_PORT, _FIRST_NAMESPACE_PORT + len(named)))
        if self._isolation.holder is None:
            ports = free_ports(len(named))
        return [FrontendProcess(*each, port) for each, port in zip(named, ports, strict=True)]

    def _start_workers(self, deployment: LocalDeployment) -> None:
        """Write the files that the engines read, and start their processes."""
        home = self._home(deployment)
        if home.exists():  # workers of a killed run are still registered there
            shutil.rmtree(home)
        self._engines.write_model(deployment, self._shapes[deployment.model.name], home / "model")
        for placed in self._workers.placed.values():
            if placed.worker.deployment is deployment and placed.worker.is_first:
                self._workers.begin(placed.worker)
                for name, launch in placed.sidecars.items():
                    self._start_launch(name, launch)

    def _start_frontend(self, frontend: FrontendProcess) -> None:
        """Start one frontend of the plan."""
        deployment = frontend.deployment
        workers: dict[Role, list[str]] = {}
        for placed in self._workers.placed.values():
            if placed.worker.deployment is deployment:
                workers.setdefault(placed.worker.role, []).append(placed.api)
        launch = deployment.frontend.launch(frontend.port, self._home(deployment), workers)
        ending = FRONTEND_ENDS_AT_ONCE if self._engines.ends_at_once else {}
        self._start(frontend.name, launch.command, {**launch.environment, **ending})

    def _start_launch(self, name: str, launch: Launch) -> RunningProcess:
        return self._start(name, launch.command, launch.environment)

    def _start(
        self, name: str, command: Sequence[str], variables: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> RunningProcess:
        """Start a process in the namespace, with a log of its own."""
        process = self._processes.start(
            name,
            self._isolation.command(command),
            environment={"PATH": os.defpath, **variables},
            log_path=self._log(name),
            pass_fds=pass_fds,
            working_directory=self._directory,
        )
        self._started.append(process)
        return process

    def _url(self, name: str) -> str:
        return f"http://127.0.0.1:{self._ports[name]}"

    @property
    def logs(self) -> Path:
        """The folder with a log file per process."""
        return self._directory / "logs"

    def _log(self, name: str) -> Path:
        return self.logs / f"{name.replace(' ', '-')}.log"

    def _wait(self, on_progress: Callable[[str], None]) -> None:
        """Wait until all workers are registered with their frontends, and roles work together."""
        deadline = time.monotonic() + self._engines.ready_seconds
        for frontend, port in self._frontend_ports:
            deployment = frontend.deployment
            on_progress(f"{frontend.name}: waiting for {deployment.worker_count} workers")
            wait_until_ready(
                frontend.name,
                port,
                deployment.model.name,
                deployment.worker_count,
                deadline=deadline,
                check=self.check,
            )
            if deployment.answers_with_structure_apart:
                wait_until_listed(
                    frontend.name, port, deployment.model.name + SUFFIX, deadline=deadline, check=self.check
                )
            if len(deployment.workers) > 1:
                wait_until_answered(
                    frontend.name, port, deployment.model.name, deadline=deadline, check=self.check
                )

    def _endpoint(self, model: str) -> LocalEndpoint:
        """Describe the endpoint of a model."""
        deployments = self._models[model]
        profiles = [deployment.profile for deployment in deployments]
        frontends = [each for each, _ in self._frontend_ports if each.deployment.model.name == model]
        return LocalEndpoint(
            model=model,
            base_url=f"{self._url(model)}/v1",
            metrics_urls=tuple(f"{self._url(frontend.name)}/metrics" for frontend in frontends),
            profile=profiles[0] if all(profiles) else None,
            context_length=min(deployment.context_length for deployment in deployments),
            addresses={address: self._url(address) for address in (model, *self._further[model])},
            aliases=deployments[0].aliases,
        )
