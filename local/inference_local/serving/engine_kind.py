"""The base class of the engines that can run behind a local platform."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.traffic import model_traffic
from inference_blueprints.serving.types import DeploymentPlan, KvTransfer
from inference_blueprints.spec.types import Blueprint, RoundRobinRouting, Routing, Workload
from inference_catalog import Model
from inference_contracts.errors import Finding, UserError
from inference_contracts.number_text import number
from inference_local.environments.dynamo import dynamo_python
from inference_local.serving.local_deployment import LocalDeployment, LocalWorkers
from inference_local.serving.local_frontend import DynamoFrontend, LocalFrontend
from inference_local.serving.platform_parts import Replacement

#: Name of the stack whose frontend finds its workers itself.
DYNAMO = "dynamo"
#: Workers that go while clients stream have this time for their streams; the plan's would fill a short run.
ELASTIC_FINISH_SECONDS = 15
ElasticLoad = Literal["replay", "clients"]


def _in_turn(resolved: ResolvedWorkers) -> ResolvedWorkers:
    """Return workers to which Dynamo's frontend sends requests in turn."""
    model = resolved.model.model_copy(update={"routing": Routing(round_robin=RoundRobinRouting())})
    return replace(resolved, model=model)


class EngineKind(ABC):
    """One kind of engine: simulated, or real on the processors of this machine.

    blueprint: The blueprint of the plan.
    """

    title: str
    """What a step of the run starts, such as ``the simulated engines``."""
    mark: str
    """What responses state about the engines, in the header of ``served_models``."""
    kv_transfer: KvTransfer | None
    """Back end that moves KV cache between workers here. None if nothing is moved."""
    ready_seconds: float
    """Longest time until all workers are registered, in seconds."""
    answer_seconds: float
    """Longest time of one answer, in seconds."""
    killed_answer_tokens: int = 200
    """Length of the answers during which workers are killed, in tokens: all have begun before the first
    ends."""
    reads_images: bool = False
    """Whether the engines read the images in requests."""
    elastic_load: ElasticLoad | None = None
    """What the number of elastic workers follows: the replay, which rises and falls, or clients that come and
    go, because the replay is too small for real engines here. If None, the smallest number runs."""
    has_times: bool = True
    """Whether the times of answers say something about the planned hardware."""
    highest_rate: float | None = None
    """Highest rate of a replay on this machine, in requests per second. None for the blueprint's."""
    preparation: str | None = None
    """What `prepare` does, in the imperative. None if it does nothing."""

    def __init__(self, blueprint: Blueprint) -> None:
        self._blueprint = blueprint

    @property
    def ends_at_once(self) -> bool:
        """Whether processes end at once instead of completing their streams."""
        return False

    @abstractmethod
    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each part of the blueprint that cannot run on this machine."""

    def check(self) -> None:
        """Make sure that the engines can run the blueprint on this machine.

        Raises UserError with every finding. If a deployment needs Dynamo, and it is not installed.
        """
        if refusals := [finding.message for finding in self.findings()]:
            raise UserError("\n".join(refusals))
        if any(isinstance(frontend, DynamoFrontend) for frontend in self._frontends()):
            dynamo_python()

    def _frontends(self) -> Iterator[LocalFrontend]:
        for model_index, model in enumerate(build_plan(self._blueprint).models):
            for index, plan in enumerate(model.deployments):
                yield self.frontend(plan, resolve(self._blueprint, model_index, index))

    def prepare(self, report: Callable[[str], None]) -> None:  # noqa: B027 -- most kinds need nothing
        """Install what the engines need.

        report: Called with a line of progress.
        Raises UserError if it cannot be installed.
        """

    def replayed_workload(self, workload: Workload) -> Workload:
        """Return the workload that a replay on this machine has.

        workload: That of the blueprint.
        """
        rate = workload.peak_requests_per_second
        return workload.model_copy(update={"peak_requests_per_second": min(rate, self.highest_rate or rate)})

    def replay_replacements(self) -> tuple[Replacement, ...]:
        """Return the rates of the blueprint that a replay on this machine does not reach."""
        changed = (
            (model.name, means.peak_requests_per_second, self.replayed_workload(means))
            for model in self._blueprint.spec.models
            for means in [model_traffic(self._blueprint.spec, model).means]
        )
        return tuple(
            Replacement(
                name,
                "peakRequestsPerSecond of the replay",
                number(planned, 6),
                number(replayed.peak_requests_per_second, 6),
                "what the processors of this machine answer",
            )
            for name, planned, replayed in changed
            if replayed.peak_requests_per_second != planned
        )

    def frontend(self, plan: DeploymentPlan, roles: Sequence[ResolvedWorkers]) -> LocalFrontend:
        """Return the entry point of a deployment: Dynamo's, whose workers most kinds start."""
        if plan.stack == DYNAMO:
            return DynamoFrontend(plan.entry_point, None)
        if STACKS[plan.stack].serves_directly:
            return DynamoFrontend(STACKS[DYNAMO].entry_point(_in_turn(roles[0])), "the load balancer")
        return DynamoFrontend(STACKS[DYNAMO].entry_point(roles[0]), f"{plan.stack}'s router")

    @abstractmethod
    def workers(self, plan: DeploymentPlan, roles: Sequence[ResolvedWorkers]) -> tuple[LocalWorkers, ...]:
        """Return the workers of each role of a deployment, in the order of the plan."""

    @abstractmethod
    def write_model(self, deployment: LocalDeployment, shape: Model, directory: Path) -> None:
        """Write the files of a model that its workers and frontends read.

        shape: The catalogue's description of the model.
        directory: Folder for the files. It is created.
        """
