"""Simulated engines: Dynamo's mocker with the latencies of the planned accelerators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.measure.completions.served_models import SIMULATED
from inference_blueprints.measure.simulation.simulated_workers import (
    SimulatedWorkers,
    simulated_workers,
    write_profile,
)
from inference_blueprints.measure.tokenizer import write_model_directory
from inference_blueprints.serving.command_line import arguments_by_name
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.serving.engines.serving_engine import TEMPLATE_FILE
from inference_blueprints.serving.resolved import ResolvedWorkers, resolve
from inference_blueprints.serving.stacks import STACKS
from inference_blueprints.serving.stacks.dynamo import TEMPLATE_VARIABLE
from inference_blueprints.serving.types import DeploymentPlan, FilePath, Process
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.types import Blueprint
from inference_catalog import Accelerator, Model
from inference_contracts.errors import Finding, UserError
from inference_local.serving.direct.scripted_role import ScriptedRole
from inference_local.serving.direct.worker_balancer import WorkerBalancer
from inference_local.serving.engine_kind import DYNAMO, ELASTIC_FINISH_SECONDS, EngineKind
from inference_local.serving.local_deployment import (
    LocalDeployment,
    LocalWorkers,
    WorkerPlace,
)
from inference_local.serving.local_frontend import DynamoFrontend, LocalFrontend
from inference_local.serving.platform_parts import State
from inference_local.serving.process_commands import (
    FINISH_SECONDS,
    Launch,
    SimulatedEngine,
    environment,
    worker_command,
)
from inference_local.serving.structured_answers import ALIASES_VARIABLE, NAME_VARIABLE, SUFFIX

#: Up to this number, each worker of a role has its own process, so that a single worker can be killed.
WORKER_PROCESSES = 8
#: Maximum number of workers of all deployments. On two processors, 128 workers register in seven seconds. Of
#: 256 workers, some time out while they wait for the lock of Dynamo's file discovery (1.6.1).
WORKER_LIMIT = 128
#: Folders that a frontend watches for changes: 12 for the workers of its deployment, and 4 for their second
#: name (counted with Dynamo 1.6.1).
WATCHED_FOLDERS = 16
_WATCHES_LIMIT = Path("/proc/sys/fs/inotify/max_user_instances")
#: Real workers register a request that tests their health. The mocker registers none, and without one Dynamo
#: 1.6.1 still reads this deprecated variable, which says the same.
HEALTHY_ONCE_IT_SERVES: Mapping[str, str] = {"DYN_SYSTEM_USE_ENDPOINT_HEALTH_STATUS": '["generate"]'}


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRole(LocalWorkers):
    """The simulated workers of one role."""

    accelerator: Accelerator
    """The accelerator that they are planned for."""
    simulated: SimulatedWorkers
    """Settings of the simulated engine."""
    finish_seconds: int
    """How long they serve on after SIGTERM."""

    @property
    def maximum(self) -> int:
        if self.planned.lent_most is not None:
            return self.planned.lent_most
        return self.planned.scaling.most if self.planned.scaling else self.replicas

    @property
    def answers_with_structure_apart(self) -> bool:
        return True

    @property
    def by_process(self) -> tuple[int, ...]:
        """Number of workers per process on this machine, spread evenly."""
        if self.maximum > self.replicas:
            return (1,) * self.maximum
        count = min(self.replicas, WORKER_PROCESSES)
        return tuple(self.replicas // count + (index < self.replicas % count) for index in range(count))

    @property
    def state(self) -> State:
        return "simulated"

    @property
    def detail(self) -> str:
        processes = self.by_process
        shared = "one process per worker" if max(processes) == 1 else f"in {len(processes)} processes"
        engine = self.simulated.settings.engine
        return f"{self.replicas} of Dynamo's mocker for {engine}, {shared}; {self._latencies}"

    @property
    def answers(self) -> str:
        return "no weights: answers are random words, counted by this library's tokenizer"

    def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:
        profile, template = self.simulated.profile, self._chat_template
        if template is not None:
            # The mocker takes no template, and Dynamo prefers this file to that of the tokenizer.
            (place.model_directory / "chat_template.jinja").write_text(template, encoding="utf-8")
        engine = SimulatedEngine(
            model_name=model,
            model_directory=place.model_directory,
            arguments=self.planned.arguments,
            workers=self.simulated,
            profile_file=write_profile(profile, place.home / f"{self.name}.npz") if profile else None,
        )
        return Launch(
            worker_command(engine, workers),
            {
                **environment(
                    {FINISH_SECONDS: str(self.finish_seconds), NAME_VARIABLE: model + SUFFIX}, place.home
                ),
                **({ALIASES_VARIABLE: ",".join(self.aliases)} if self.aliases else {}),
                **_pages_environment(place),
            },
        )

    @property
    def _chat_template(self) -> str | None:
        """The planned chat template, of Dynamo's frontend or of an engine's own server; None without one."""
        planned = self.planned.environment
        file = planned.get(TEMPLATE_VARIABLE, planned.get(TEMPLATE_FILE))
        in_arguments = dict(arguments_by_name(self.planned.arguments)).get("chat-template", (None,))[0]
        return file.text if isinstance(file, FilePath) else in_arguments

    def pages_at(self, place: WorkerPlace) -> tuple[int, str]:
        return place.pages_port, "/health"

    @property
    def _latencies(self) -> str:
        profile = self.profile
        if profile is None:
            return (
                f"latencies are the simulator's default curve, not those of {self.accelerator.name}: "
                "they give no throughput or price"
            )
        return (
            f"latencies simulated for {profile.model} on {profile.tensor_parallel_size} "
            f"{profile.accelerator} ({profile.source}, {profile.date}, error at most "
            f"{profile.largest_error_percent:g} %), for prompts of at most "
            f"{profile.max_prompt_tokens:,.0f} tokens"
        )


def _pages_environment(place: WorkerPlace) -> dict[str, str]:
    """Let a process show its health and metrics, as Dynamo's workers do."""
    return {
        "DYN_SYSTEM_HOST": place.address,
        "DYN_SYSTEM_PORT": str(place.pages_port),
        **HEALTHY_ONCE_IT_SERVES,
    }


def _moves(process: Process) -> bool:
    """Return whether workers go while others serve."""
    return process.scaling is not None or process.lent_most is not None


def _is_scripted(roles: Sequence[ResolvedWorkers]) -> bool:
    """Return whether the simulated engine does not know the engine: it knows those that Dynamo runs."""
    return roles[0].model.engine.chosen not in STACKS[DYNAMO].frameworks


def _scripted(role: ResolvedWorkers, process: Process) -> ScriptedRole:
    """Return scripted servers in place of the workers of a role.

    Raises ValueError if the engine has no server of its own. The checks report it.
    """
    server = ENGINES[role.model.engine.chosen].own_server
    if server is None:
        raise ValueError(f"the engine '{role.model.engine.chosen}' has no server of its own")
    return ScriptedRole(
        planned=process,
        replicas=max(1, process.replicas),
        context_length=process.engine.max_model_len if process.engine else 0,
        profile=None,
        engine=role.model.engine.chosen,
        server=server,
        answer_tokens=role.traffic.means.output_tokens,
        most_pixels=images.pixels if (images := role.traffic.means.images) else None,
    )


class SimulatedKind(EngineKind):
    """Dynamo's mocker in place of every engine that it knows, and a scripted server in place of others.

    finish_seconds: How long workers serve on after SIGTERM. By default, all processes end at once: no load
        balancer sends requests, and no stream has to complete.
    """

    title = "the simulated engines"
    ready_seconds = 120.0
    answer_seconds = 60.0
    mark = SIMULATED
    kv_transfer = None
    elastic_load = "replay"

    def __init__(self, blueprint: Blueprint, *, finish_seconds: int = 0) -> None:
        super().__init__(blueprint)
        self._finish_seconds = finish_seconds

    @property
    def ends_at_once(self) -> bool:
        return self._finish_seconds == 0

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each part of the blueprint that cannot be simulated on this machine.

        Dynamo's simulated engine writes tokens and no vectors (``dynamo/mocker`` of ai-dynamo 1.6.1).
        """
        models = self._blueprint.spec.models
        for index, model in usable(models):
            if model.only_reads:
                message = (
                    f"the model '{model.name}' has 'task: {model.task}', and the simulated engine computes "
                    "no vectors or scores; remove the model in a copy of the blueprint"
                )
                yield Finding(("spec", "models", index, "task"), message)
        workers = sum(
            role.workers.maximum
            for model_index, model in usable(models)
            for deployment_index, _ in usable(model.deployments)
            for role in resolve(self._blueprint, model_index, deployment_index)
        )
        if workers > WORKER_LIMIT:
            message = (
                f"the blueprint has {workers} workers, a local run simulates at most {WORKER_LIMIT}; lower "
                "`replicas` in a copy of it"
            )
            yield Finding(("spec", "models"), message)

    def check(self) -> None:
        super().check()
        frontends = sum(each.replicas for each in self._frontends() if isinstance(each, DynamoFrontend))
        needed = WATCHED_FOLDERS * frontends
        if _WATCHES_LIMIT.is_file() and needed > (allowed := int(_WATCHES_LIMIT.read_text("ascii"))):
            raise UserError(
                f"the {frontends} frontends of the blueprint watch {needed} folders, and Linux allows the "
                f"programs of a user {allowed}; run 'sudo sysctl fs.inotify.max_user_instances={4 * needed}' "
                "once, or remove deployments in a copy of the blueprint"
            )

    def frontend(self, plan: DeploymentPlan, roles: Sequence[ResolvedWorkers]) -> LocalFrontend:
        return WorkerBalancer(plan.entry_point) if _is_scripted(roles) else super().frontend(plan, roles)

    def workers(self, plan: DeploymentPlan, roles: Sequence[ResolvedWorkers]) -> tuple[LocalWorkers, ...]:
        if _is_scripted(roles):
            return tuple(map(_scripted, roles, plan.workers))
        return tuple(
            SimulatedRole(
                planned=process,
                # A run begins with one of those that may all go, so that their address answers.
                replicas=max(1, process.replicas),
                context_length=simulated.settings.max_model_len,
                profile=simulated.profile,
                accelerator=role.accelerator,
                simulated=simulated,
                finish_seconds=self._finish_seconds or (ELASTIC_FINISH_SECONDS if _moves(process) else 0),
            )
            for role, process, simulated in zip(
                roles, plan.workers, simulated_workers(roles, plan.workers), strict=True
            )
        )

    def write_model(self, deployment: LocalDeployment, shape: Model, directory: Path) -> None:  # noqa: ARG002 -- the same for all
        write_model_directory(shape, directory)
