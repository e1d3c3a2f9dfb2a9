"""vLLM on the processors of this machine, with random weights, for the vLLM workers of a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from inference_blueprints.measure.completions.served_models import ON_PROCESSORS
from inference_blueprints.serving.engines.kv_cache import uses_lmcache
from inference_blueprints.serving.engines.serving_engine import find_draft
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.stacks.request_filter import command_behind_filter
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.types import Blueprint
from inference_catalog import Model
from inference_contracts.errors import Finding
from inference_local.serving.direct.worker_balancer import WorkerBalancer
from inference_local.serving.engine_kind import EngineKind
from inference_local.serving.llm_d.llm_d_router import LlmDRouter, sidecar_launch, sidecar_part
from inference_local.serving.local_deployment import (
    LocalDeployment,
    LocalWorkers,
    WorkerPlace,
)
from inference_local.serving.local_frontend import DynamoFrontend, LocalFrontend
from inference_local.serving.platform_parts import PlatformPart, Replacement, State
from inference_local.serving.process_commands import (
    DISCOVERY,
    OWN_ADDRESS,
    Launch,
    environment,
    expand_variables,
)
from inference_local.serving.vllm_cpu.argument_rules import draft_directory, process_replacements
from inference_local.serving.vllm_cpu.exceptions import (
    FREE_PORT,
    FRONTEND_HOST,
    FRONTEND_VARIABLES,
    SERVE,
    LocalSettings,
    local_settings,
    rank_count,
    split,
)
from inference_local.serving.vllm_cpu.installation import VLLM
from inference_local.serving.vllm_cpu.machine import (
    Machine,
    WantedWorkers,
    needed_gib,
    replicas_here,
)
from inference_local.serving.vllm_cpu.scaled_models import (
    refusal,
    write_scaled_draft,
    write_scaled_model,
)

_VLLM = f"vLLM {VLLM.locked_version('vllm-cpu')} on CPU"
_WHAT_FITS = "what fits into the memory of this machine, at least one per role"
_NO_SCALING = "the targets of the autoscaler follow from the times of the planned hardware"
_ONE_MACHINE = "all processes of a worker run on this machine"

# What the program ``vllm`` runs.
_SERVE_MODULE = "vllm.entrypoints.cli.main"


@dataclass(frozen=True, slots=True, kw_only=True)
class VllmRole(LocalWorkers):
    """The vLLM workers of one role."""

    release: str
    """Name of their deployment's release."""
    python: Path
    """Python of the environment with vLLM."""
    latent_attention: bool
    """Whether the model's attention is latent (MLA)."""

    @property
    def state(self) -> State:
        return "real"

    @property
    def detail(self) -> str:
        count = f"{self.replicas} of {self.planned.replicas} planned workers"
        return f"{_VLLM}, random weights; times mean nothing; {count}"

    @property
    def answers(self) -> str:
        return "random weights of a small copy of the model: answers are words without meaning"

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        place = WorkerPlace(Path("…"), "127.0.0.x", 0)
        settings = self._settings(place)
        return (
            *self._counts(),
            *settings.replacements,
            *process_replacements(
                settings.environment,
                self._label,
                place.home,
                place.address,
                dynamo=self.planned.command != SERVE,
            ),
        )

    def _counts(self) -> Iterator[Replacement]:
        """Yield which numbers of workers and of machines differ from the plan."""
        planned = self.planned
        if self.replicas != planned.replicas:
            yield Replacement(self._label, "replicas", str(planned.replicas), str(self.replicas), _WHAT_FITS)
        if planned.scaling:
            maximum = f"up to {planned.scaling.most}, with the load"
            yield Replacement(self._label, "elastic replicas", maximum, str(self.replicas), _NO_SCALING)
        if planned.nodes > 1:
            yield Replacement(self._label, "nodes per worker", str(planned.nodes), "1", _ONE_MACHINE)

    def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:  # noqa: ARG002 -- the plan names the model, each process has one worker
        settings = self._settings(place)
        variables = environment(settings.environment, place.home, place.address)
        words = expand_variables(settings.arguments, variables)
        # Here an engine runs without the filter: the relay reaches it as the load balancer does.
        if command_behind_filter(self.planned) == SERVE:
            return Launch([str(self.python), "-m", _SERVE_MODULE, *SERVE[1:], *words], variables)
        return Launch([str(self.python), *self.planned.command[1:], *words, *DISCOVERY], variables)

    def sidecars(self, place: WorkerPlace) -> Mapping[str, Launch]:
        return {
            f"{sidecar.name} sidecar": sidecar_launch(sidecar, self.planned.ports[0].number, place)
            for sidecar in self.planned.sidecars
            if not sidecar.certificates
        }

    def sidecar_parts(self, release: str) -> tuple[PlatformPart, ...]:
        return tuple(
            sidecar_part(sidecar, release) for sidecar in self.planned.sidecars if not sidecar.certificates
        )

    @property
    def _label(self) -> str:
        return self.release if self.role == "worker" else f"{self.release}, {self.role}"

    def _settings(self, place: WorkerPlace) -> LocalSettings:
        return local_settings(
            self.planned,
            workers=self._label,
            model_directory=place.model_directory,
            address=place.address,
            latent_attention=self.latent_attention,
        )


class VllmFrontend(DynamoFrontend):
    """Dynamo's frontend before vLLM on the processors of this machine."""

    def replacements(self, release: str) -> tuple[Replacement, ...]:
        label, port = f"{release}, {self.process.role}", str(self.process.ports[0].number)
        listens = (
            Replacement(label, "--http-host", "not set", FRONTEND_HOST, OWN_ADDRESS),
            Replacement(label, "--http-port", port, "a free port", FREE_PORT),
        )
        everywhere = process_replacements(
            self.process.environment, label, Path("…"), FRONTEND_HOST, dynamo=True
        )
        return (*DynamoFrontend.replacements(self, release), *listens, *everywhere)


class VllmKind(EngineKind):
    """vLLM on the processors of this machine.

    machine: The machine that bounds the number of workers. By default, this one.
    """

    role: type[VllmRole] = VllmRole
    """How the workers of a role are started."""

    title = _VLLM
    ready_seconds = 1800.0
    answer_seconds = 600.0
    killed_answer_tokens = 1000
    reads_images = True
    has_times = False
    mark = ON_PROCESSORS
    kv_transfer = "ucx"
    highest_rate = 0.5
    preparation = f"Prepare {_VLLM}, once per machine"

    def __init__(self, blueprint: Blueprint, machine: Machine | None = None) -> None:
        super().__init__(blueprint)
        self._machine = machine or Machine.this()
        self._python = Path("python")

    def findings(self) -> Iterator[Finding]:
        for index, model in usable(self._blueprint.spec.models):
            engine = model.engine.chosen
            if engine != "vllm":
                message = (
                    f"the model '{model.name}' has the engine {engine}, which has no build for processors "
                    "here; use simulated engines, or the engine vllm in a copy of the blueprint"
                )
                yield Finding(("spec", "models", index, "engine"), message)
        roles = self._roles
        for path, shape in {role.model_path: role.shape for role in roles}.items():
            if reason := refusal(shape):
                message = (
                    f"vLLM on CPU cannot run {shape.name}: {reason}; use simulated engines, or another "
                    "model in a copy of the blueprint"
                )
                yield Finding((*path, "weights"), message)
        needed = needed_gib([_wanted(role) for role in roles])
        if needed > self._machine.memory_gib:
            message = (
                f"one vLLM worker per role needs {needed:.0f} GiB of memory, this machine has "
                f"{self._machine.memory_gib:.0f}; remove models in a copy of the blueprint, or use simulated "
                "engines"
            )
            yield Finding(("spec", "models"), message)

    def prepare(self, report: Callable[[str], None]) -> None:
        self._python = VLLM.python(report)

    def frontend(self, plan: DeploymentPlan, roles: Sequence[ResolvedWorkers]) -> LocalFrontend:  # noqa: ARG002 -- the base class names them
        if plan.stack == "llmD":
            return LlmDRouter(plan.entry_point)
        if STACKS[plan.stack].serves_directly:
            return WorkerBalancer(plan.entry_point)
        return VllmFrontend(plan.entry_point, None, FRONTEND_VARIABLES)

    def workers(self, plan: DeploymentPlan, roles: Sequence[ResolvedWorkers]) -> tuple[LocalWorkers, ...]:
        return tuple(
            self.role(
                planned=process,
                replicas=self._replicas[role.path],
                context_length=process.engine.max_model_len if process.engine else 0,
                profile=None,
                release=plan.release,
                python=self._python,
                latent_attention=role.shape.attention == "mla",
            )
            for role, process in zip(roles, plan.workers, strict=True)
        )

    def write_model(self, deployment: LocalDeployment, shape: Model, directory: Path) -> None:
        roles = [role for role in self._roles if role.release == deployment.plan.release]
        write_scaled_model(
            shape, directory, tensor_parallel_size=max(split(role.tensor_parallel_size) for role in roles)
        )
        if draft := find_draft(roles[0].model):
            write_scaled_draft(directory, draft_directory(directory), draft.method)

    @cached_property
    def _roles(self) -> tuple[ResolvedWorkers, ...]:
        return tuple(
            role
            for model_index, model in usable(self._blueprint.spec.models)
            for deployment_index, _ in usable(model.deployments)
            for role in resolve(self._blueprint, model_index, deployment_index)
        )

    @cached_property
    def _replicas(self) -> Mapping[tuple[str | int, ...], int]:
        counts = replicas_here([_wanted(role) for role in self._roles], self._machine)
        return {role.path: count for role, count in zip(self._roles, counts, strict=True)}


def _wanted(role: ResolvedWorkers) -> WantedWorkers:
    lmcache = uses_lmcache(role) and role.shape.attention != "mla"
    return WantedWorkers(max(1, role.workers.minimum), rank_count(role.workers), lmcache)
