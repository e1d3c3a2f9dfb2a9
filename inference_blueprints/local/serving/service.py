"""Serves a plan on this machine."""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from inference_blueprints import catalog
from inference_blueprints.local.parts import Part
from inference_blueprints.local.processes import ProcessGroup, RunningProcess
from inference_blueprints.local.serving import relay
from inference_blueprints.local.serving.commands import (
    SimulatedEngine,
    environment,
    frontend_command,
    worker_command,
)
from inference_blueprints.local.serving.description import describe
from inference_blueprints.local.serving.endpoint import Endpoint
from inference_blueprints.local.serving.isolation import Isolation, open_isolation
from inference_blueprints.local.serving.layout import LocalDeployment, layout
from inference_blueprints.local.serving.model_directory import write_model_directory
from inference_blueprints.local.serving.profile_file import write_profile
from inference_blueprints.local.serving.readiness import wait_until_ready
from inference_blueprints.serving.types import EnvironmentValue, ServingPlan
from inference_blueprints.spec.types import Blueprint

_LOOPBACK = "127.0.0.1"
_READY_SECONDS = 120.0
_BACKLOG = 1024
_FIRST_NAMESPACE_PORT = 8000


@dataclass(frozen=True, slots=True)
class _Frontend:
    """One frontend process and the port on which it listens, inside the namespace."""

    name: str
    deployment: LocalDeployment
    port: int


class LocalServing:
    """Dynamo's frontends and simulated engines for every deployment of a plan; use it as a context manager.

    Parameters
    ----------
    plan
        What to serve.
    blueprint
        Where the plan comes from; names the pools' instance types.
    run_directory
        Where logs, model directories and profiles go; emptying it is the caller's business.
    processes
        The group that the processes join. It makes sure that none is left.
    isolate
        Whether to use a network namespace where this machine has one to give.

    Raises
    ------
    UserError
        If the plan has more workers than a local run simulates.
    """

    def __init__(
        self,
        plan: ServingPlan,
        blueprint: Blueprint,
        run_directory: Path,
        processes: ProcessGroup,
        *,
        isolate: bool = True,
    ) -> None:
        self._models = layout(plan, blueprint)
        self._directory = run_directory.resolve()
        self._processes = processes
        self._isolate = isolate
        self._isolation = Isolation(None, "not asked for")
        self._started: list[RunningProcess] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for process in self._started:
            if process.popen.poll() is None:
                process.popen.terminate()

    def start(self, on_progress: Callable[[str], None]) -> tuple[Endpoint, ...]:
        """Start everything and wait until every frontend knows all of its workers.

        Parameters
        ----------
        on_progress
            Called with what is being waited for.

        Returns
        -------
        tuple of Endpoint
            One a model, in the plan's order.

        Raises
        ------
        ProcessDied
            If a process ends meanwhile; the message has the end of its log.
        NotReady
            If it takes too long.
        """
        if self._isolate:
            self._isolation = open_isolation(self._processes, self._directory / "namespace.log")
        frontends = self._frontends()
        frontend_ports, model_ports = self._start_relay(frontends)
        for deployment in self._deployments():
            self._start_workers(deployment)
        for frontend in frontends:
            home = self._home(frontend.deployment)
            command = frontend_command(frontend.deployment.frontend, frontend.port)
            self._start(frontend.name, command, environment(frontend.deployment.frontend.environment, home))
        deadline = time.monotonic() + _READY_SECONDS
        for frontend, port in zip(frontends, frontend_ports, strict=True):
            on_progress(f"waiting for the workers of {frontend.name}")
            wait_until_ready(
                frontend.name,
                port,
                frontend.deployment.model.name,
                frontend.deployment.worker.replicas,
                seconds=deadline - time.monotonic(),
                check=self.check,
            )
        return tuple(
            _endpoint(
                deployments,
                port,
                [
                    frontend_port
                    for frontend, frontend_port in zip(frontends, frontend_ports, strict=True)
                    if frontend.deployment in deployments
                ],
            )
            for deployments, port in zip(self._models.values(), model_ports, strict=True)
        )

    def parts(self) -> tuple[Part, ...]:
        """Return what of this is real and what is simulated; complete once `start` has returned."""
        return describe(self._deployments(), self._isolation)

    def check(self) -> None:
        """Make sure that every process of the group still runs.

        Raises
        ------
        ProcessDied
            With exit code and last log lines of the first that has exited.
        """
        self._processes.check()

    def _deployments(self) -> list[LocalDeployment]:
        return [deployment for deployments in self._models.values() for deployment in deployments]

    def _home(self, deployment: LocalDeployment) -> Path:
        return self._directory / deployment.plan.release

    def _frontends(self) -> list[_Frontend]:
        """Give every frontend a port: any in a namespace that is empty, a free one of this machine otherwise."""
        named = [
            (f"frontend {index + 1} of {deployment.plan.release}", deployment)
            for deployment in self._deployments()
            for index in range(deployment.frontend.replicas)
        ]
        ports = range(_FIRST_NAMESPACE_PORT, _FIRST_NAMESPACE_PORT + len(named))
        chosen = list(ports) if self._isolation.holder else _free_ports(len(named))
        return [
            _Frontend(name, deployment, port) for (name, deployment), port in zip(named, chosen, strict=True)
        ]

    def _start_relay(self, frontends: Sequence[_Frontend]) -> tuple[list[int], list[int]]:
        """Open one port of this machine a frontend and one a model."""
        single = [[(frontend.port, 1.0)] for frontend in frontends]
        shared = [
            [
                (each.port, each.deployment.worker.replicas / each.deployment.frontend.replicas)
                for each in frontends
                if each.deployment in deployments
            ]
            for deployments in self._models.values()
        ]
        with ExitStack() as sockets:
            listeners = [
                sockets.enter_context(socket.create_server((_LOOPBACK, 0), backlog=_BACKLOG))
                for _ in [*single, *shared]
            ]
            routes = [
                {"listener": listener.fileno(), "targets": targets}
                for listener, targets in zip(listeners, [*single, *shared], strict=True)
            ]
            command = [sys.executable, "-I", "-S", relay.__file__, json.dumps(routes)]
            self._start("relay", command, {}, [listener.fileno() for listener in listeners])
            ports = [listener.getsockname()[1] for listener in listeners]
        return ports[: len(single)], ports[len(single) :]

    def _start_workers(self, deployment: LocalDeployment) -> None:
        """Write what the simulated engine reads, and start its processes."""
        home = self._home(deployment)
        shape = catalog.model(deployment.model.catalog_name)
        tensor_parallel_size = deployment.settings.tensor_parallel_size
        engine = SimulatedEngine(
            model_name=deployment.model.name,
            model_directory=write_model_directory(shape, home / "model"),
            settings=deployment.settings,
            kv_bytes_per_token=round(shape.kv_bytes_per_token(tensor_parallel_size=tensor_parallel_size)),
            profile_file=deployment.profile and write_profile(deployment.profile, home / "latencies.npz"),
        )
        for index, workers in enumerate(deployment.workers_by_process):
            name = f"worker {index + 1} of {deployment.plan.release}"
            self._start(name, worker_command(engine, workers), environment({}, home))

    def _start(
        self, name: str, command: Sequence[str], variables: Mapping[str, str], pass_fds: Sequence[int] = ()
    ) -> None:
        """Start a process in the namespace, with a log of its own."""
        self._started.append(
            self._processes.start(
                name,
                self._isolation.command(command),
                environment={"PATH": os.defpath, **variables},
                log_path=self._directory / "logs" / f"{name.replace(' ', '-')}.log",
                pass_fds=pass_fds,
                working_directory=self._directory,
            )
        )


def _endpoint(deployments: Sequence[LocalDeployment], port: int, frontend_ports: Sequence[int]) -> Endpoint:
    """Describe where a model answers."""
    profiles = [deployment.profile for deployment in deployments]
    return Endpoint(
        model=deployments[0].model.name,
        base_url=f"http://{_LOOPBACK}:{port}/v1",
        metrics_urls=tuple(f"http://{_LOOPBACK}:{each}/metrics" for each in frontend_ports),
        profile=profiles[0] if all(profiles) else None,
        context_length=min(deployment.settings.max_model_len for deployment in deployments),
    )


def _free_ports(count: int) -> list[int]:
    """Return ports that nobody on this machine listens on."""
    with ExitStack() as sockets:
        taken = [sockets.enter_context(socket.create_server((_LOOPBACK, 0))) for _ in range(count)]
        return [each.getsockname()[1] for each in taken]
