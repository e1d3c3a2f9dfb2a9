"""Stand-ins for the controller of Deployments and the kubelet, which start and end pods of llm-d."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
from aiohttp import web

from inference_blueprints.loading import load_blueprint
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import Process
from inference_local.processes.child_processes import ProcessGroup, RunningProcess
from inference_local.processes.free_ports import free_ports
from inference_local.serving.http_forwarding import Handler, application, forwarding_session
from inference_local.serving.llm_d.picker_stand_in import Picker
from inference_local.serving.llm_d.sidecar_stand_in import SidecarStandIn
from inference_local.serving.ready_workers import ReadyWorkers
from tests.local.scaling import serve_stand_in

_MAXIMUM = 3
_LOOPBACK = "127.0.0.1"
# Limit of one wait. It bounds a hang, not a speed.
_LONGEST_SECONDS = 120.0


@dataclass(eq=False, slots=True)
class Pod:
    """A place for a pod of a role."""

    worker: int
    port: int
    """`worker`, `port`: Ports of ``vllm serve``, and of what the picker calls: the sidecar if there is
    one."""
    process: RunningProcess | None = None
    """The process of ``vllm serve``, if it runs."""

    @property
    def address(self) -> tuple[str, int]:
        """What the picker calls."""
        return _LOOPBACK, self.port


@dataclass(frozen=True, slots=True)
class EndedPod:
    """A pod that has ended."""

    running: int
    """Requests that its engine ran when it got SIGTERM."""
    exit_code: int
    """That of its engine."""


@dataclass(slots=True)
class RolePods:
    """The Deployment of one role."""

    planned: Process
    """The role in the plan: how long its pods wait before SIGTERM and have after it."""
    ready: ReadyWorkers
    """What the picker knows of it."""
    pods: list[Pod]
    shutdown_seconds: int
    """Time for streams after SIGTERM."""
    group: ProcessGroup
    directory: Path
    session: aiohttp.ClientSession
    ended: list[EndedPod] = field(default_factory=list)

    async def scale(self, wanted: int) -> None:
        """Start or end pods, the youngest first, until so many are ready, and wait for the ends."""
        running = [each for each in self.pods if each.process]
        free = [each for each in self.pods if not each.process]
        await asyncio.gather(
            *(self._begin(each) for each in free[: max(0, wanted - len(running))]),
            *(self.end(each) for each in running[wanted:]),
        )

    async def end(self, pod: Pod, *, left_out: bool = True) -> None:
        """End a pod as the kubelet does: preStop, SIGTERM, and SIGKILL when its time is over.

        left_out: Whether the picker learns of it before, as from a pod with a time of deletion.
        """
        assert pod.process is not None
        if left_out:
            self.ready.ready.discard(pod.address)
            await asyncio.sleep(self.planned.pre_stop_seconds)
        running = await self._running(pod)
        self.group.end(pod.process)
        left = self.planned.termination_grace_seconds - self.planned.pre_stop_seconds
        exit_code = await asyncio.to_thread(pod.process.popen.wait, left)
        self.ready.ready.discard(pod.address)
        pod.process = None
        self.ended.append(EndedPod(running, exit_code))

    async def _begin(self, pod: Pod) -> None:
        module = serve_stand_in.__name__
        pod.process = self.group.start(
            f"{self.planned.role} {pod.worker}",
            [sys.executable, "-m", module, str(pod.worker), str(self.shutdown_seconds)],
            environment=os.environ,
            log_path=self.directory / f"{self.planned.role}-{pod.worker}.log",
        )
        async with asyncio.timeout(_LONGEST_SECONDS):
            while await self._page(pod, "health") is None:
                self.group.check()
                await asyncio.sleep(0.1)
        self.ready.ready.add(pod.address)

    async def _running(self, pod: Pod) -> int:
        page = await self._page(pod, "metrics")
        (count,) = re.findall(r"^vllm:num_requests_running (\d+)$", page or "", re.MULTILINE)
        return int(count)

    async def _page(self, pod: Pod, path: str) -> str | None:
        try:
            async with self.session.get(f"http://{_LOOPBACK}:{pod.worker}/{path}") as answer:
                return await answer.text()
        except aiohttp.ClientError:
            return None


@dataclass(frozen=True, slots=True)
class LlmDPods:
    """A deployment of llm-d with separate prefill and decode, behind the stand-in for its router."""

    url: str
    """URL of the router."""
    prefill: RolePods
    decode: RolePods
    """`prefill`, `decode`: The pods of each role."""


@asynccontextmanager
async def llm_d_pods(directory: Path, *, shutdown_seconds: int | None = None) -> AsyncIterator[LlmDPods]:
    """Run the shipped deployment with two pods per role.

    shutdown_seconds: Time for streams after SIGTERM. By default, the plan's ``--shutdown-timeout``.
    """
    (model,) = build_plan(load_blueprint("llm-d-disaggregated").blueprint).models
    async with AsyncExitStack() as resources:
        group = resources.enter_context(ProcessGroup(grace_seconds=1))
        session = await resources.enter_async_context(forwarding_session())

        async def listen(handler: Handler, port: int) -> None:
            runner = application(handler)
            await runner.setup()
            resources.push_async_callback(runner.cleanup)
            await web.TCPSite(runner, _LOOPBACK, port).start()

        roles: dict[str, RolePods] = {}
        for planned in model.deployments[0].workers:
            ports = free_ports(_MAXIMUM)
            pods = [Pod(port, port) for port in ports]
            if planned.sidecars:
                pods = [Pod(worker, port) for worker, port in zip(ports, free_ports(_MAXIMUM), strict=True)]
                for pod in pods:
                    await listen(SidecarStandIn((_LOOPBACK, pod.worker), session).handle, pod.port)
            planned_seconds = planned.arguments[planned.arguments.index("--shutdown-timeout") + 1]
            roles[planned.role] = RolePods(
                planned,
                ReadyWorkers(f"{_LOOPBACK}:{each.port}" for each in pods),
                pods,
                shutdown_seconds or int(planned_seconds),
                group,
                directory,
                session,
            )
        (router,) = free_ports(1)
        await listen(Picker(roles["decode"].ready, roles["prefill"].ready, session).handle, router)
        await asyncio.gather(*(role.scale(2) for role in roles.values()))
        yield LlmDPods(f"http://{_LOOPBACK}:{router}", roles["prefill"], roles["decode"])
