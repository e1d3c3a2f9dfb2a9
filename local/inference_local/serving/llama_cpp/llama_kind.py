"""The real llama-server on this machine's processors, with random weights, for workers of ``llamaCpp``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from inference_blueprints.measure.completions.served_models import ON_PROCESSORS
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.resolved import ResolvedWorkers
from inference_blueprints.serving.types import DeploymentPlan
from inference_blueprints.spec.invalid_values import usable
from inference_blueprints.spec.types import Blueprint
from inference_catalog import Model
from inference_contracts.errors import Finding
from inference_contracts.number_text import number
from inference_local.serving.direct.worker_balancer import WorkerBalancer
from inference_local.serving.engine_kind import ELASTIC_FINISH_SECONDS, EngineKind
from inference_local.serving.llama_cpp.model_file import PlannedFile, TinyModel, check_file
from inference_local.serving.llama_cpp.replaced_arguments import (
    PlannedCache,
    ServerPlace,
    arguments_here,
    planned_cache,
)
from inference_local.serving.llama_cpp.server_build import BUILD, SERVER, llama_server
from inference_local.serving.local_deployment import (
    LocalDeployment,
    LocalWorkers,
    WorkerPlace,
)
from inference_local.serving.local_frontend import LocalFrontend
from inference_local.serving.platform_parts import Replacement, State
from inference_local.serving.process_commands import NO_SECRETS, OWN_FOLDER, Launch
from inference_local.serving.vllm_cpu.machine import Machine

#: Engine of the blueprints that it serves, by their key.
ENGINE = "llamaCpp"
_MODEL_FILE = "model.gguf"
#: The replay counts words of four letters (`random_text`). The vocabulary of the random model has up to two
#: tokens for each of them, and any vocabulary has at most one for each byte, with the space.
_TOKENS_PER_WORD, _BYTES_PER_WORD = 2, 5
_NOT_SET, _LEFT_OUT = "not set", "left out"
_WHAT_FITS = "three servers per role, or one per processor of this machine"
_FEWEST_SERVERS = 3
#: Triggers whose target grows with the requests that a server computes at once. Waiting requests do not.
_LOADS_AT_ONCE = ("tokens-in-flight", "requests-in-flight")
_FEWER_AT_ONCE = "a server here computes fewer sequences at once, and carries the same share of the load"
_SHORT_WAIT = "answers here are short, and the plan's wait would fill a short run"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaRole(LocalWorkers):
    """The servers of one role."""

    release: str
    """Name of their deployment's release."""
    program: Path
    """The program llama-server."""
    threads: int
    """Threads of each server."""
    processor: str
    """Processor of the plan, which this machine does not have."""
    max_here: int
    """Most servers that fit on this machine."""
    file: Path | None
    """The file of GGUF that the user named. None for random weights."""

    @property
    def maximum(self) -> int:
        return min(self.planned.scaling.most, self.max_here) if self.planned.scaling else self.replicas

    @property
    def at_once(self) -> int:
        return self._cache.sequences_here

    @property
    def targets(self) -> Mapping[str, float]:
        share = self._cache.sequences_here / self._cache.sequences
        triggers = self.planned.scaling.triggers if self.planned.scaling else ()
        return {each.name: each.target * share for each in triggers if each.name in _LOADS_AT_ONCE}

    @property
    def seconds_before_sigterm(self) -> float:
        return min(self.planned.pre_stop_seconds, ELASTIC_FINISH_SECONDS)

    @property
    def state(self) -> State:
        return "real"

    @property
    def detail(self) -> str:
        return (
            f"{SERVER} {BUILD} of llama.cpp, built from source; {self._weights}; the processor is this "
            f"machine's and not {self.processor}, so times mean nothing; {self.replicas} of "
            f"{self.planned.replicas} planned servers"
        )

    @property
    def answers(self) -> str:
        if self.file is not None:
            return f"the model of {self.file.name}, which is not the planned one"
        return "random weights of a tiny model: answers are words without meaning"

    @property
    def replacements(self) -> tuple[Replacement, ...]:
        _, replaced = arguments_here(self.planned.arguments, self._at(WorkerPlace(Path("…"), "127.0.0.x", 0)))
        return (
            *self._counts(),
            *(
                Replacement(self._label, f"--{each.name}", _text(each.planned), _text(each.here), each.reason)
                for each in replaced
            ),
            *(
                Replacement(self._label, name, "a secret", _LEFT_OUT, NO_SECRETS)
                for name in self.planned.environment
            ),
            Replacement(self._label, "HOME", _NOT_SET, "…", OWN_FOLDER),
        )

    def launch(self, model: str, place: WorkerPlace, workers: int) -> Launch:  # noqa: ARG002 -- the plan names the model, each process has one worker
        words, _ = arguments_here(self.planned.arguments, self._at(place))
        return Launch([str(self.program), *words], {"HOME": str(place.home)})

    def _at(self, place: WorkerPlace) -> ServerPlace:
        model = place.model_directory / _MODEL_FILE
        return ServerPlace(model, place.address, self.threads, is_named=self.file is not None)

    @property
    def _weights(self) -> str:
        return f"weights of {self.file.name}" if self.file else "random weights"

    def _counts(self) -> Iterator[Replacement]:
        """Yield which numbers of workers differ from the plan."""
        planned = self.planned
        if self.replicas != planned.replicas:
            yield Replacement(self._label, "replicas", str(planned.replicas), str(self.replicas), _WHAT_FITS)
        if planned.scaling is None:
            return
        if self.maximum != planned.scaling.most:
            maximum, here = str(planned.scaling.most), str(self.maximum)
            yield Replacement(self._label, "most elastic replicas", maximum, here, _WHAT_FITS)
        for each in planned.scaling.triggers:
            if each.name in self.targets:
                here = number(self.targets[each.name], 4)
                yield Replacement(
                    self._label, f"target of {each.name}", number(each.target, 6), here, _FEWER_AT_ONCE
                )
        if self.seconds_before_sigterm != planned.pre_stop_seconds:
            before, here = f"{planned.pre_stop_seconds} s", f"{self.seconds_before_sigterm:g} s"
            yield Replacement(self._label, "wait before SIGTERM", before, here, _SHORT_WAIT)

    @property
    def _cache(self) -> PlannedCache:
        return planned_cache(self.planned.arguments)

    @property
    def _label(self) -> str:
        return self.release if self.role == "worker" else f"{self.release}, {self.role}"


class LlamaKind(EngineKind):
    """The real llama-server on the processors of this machine.

    machine: The machine that bounds the number of servers and threads. By default, this one.
    file: A file of GGUF to serve in place of the planned one. By default, a model with random weights.
    """

    title = f"{SERVER} {BUILD}"
    ready_seconds = 120.0
    answer_seconds = 120.0
    killed_answer_tokens = 400
    has_times = False
    mark = ON_PROCESSORS
    kv_transfer = None
    highest_rate = 1.0
    elastic_load = "clients"
    preparation = f"Prepare {SERVER} {BUILD}, once per machine"

    def __init__(
        self, blueprint: Blueprint, machine: Machine | None = None, *, file: Path | None = None
    ) -> None:
        super().__init__(blueprint)
        self._file = file.resolve() if file else None
        self._machine = machine or Machine.this()
        self._program = Path(SERVER)
        self._models: Mapping[int, Path] = {}

    def findings(self) -> Iterator[Finding]:
        for index, model in usable(self._blueprint.spec.models):
            engine = model.engine.chosen
            if engine != ENGINE:
                message = (
                    f"the model '{model.name}' has the engine {engine}, and llama-server runs {ENGINE} only; "
                    "use simulated engines, or remove the model in a copy of the blueprint"
                )
                yield Finding(("spec", "models", index, "engine"), message)
        if self._file and len(self._blueprint.spec.models) > 1:
            message = "--gguf names one file, and the blueprint has several models; keep one in a copy"
            yield Finding(("spec", "models"), message)

    def prepare(self, report: Callable[[str], None]) -> None:
        self._program = llama_server(report)
        contexts = {
            _context(deployment)
            for model in build_plan(self._blueprint).models
            for deployment in model.deployments
        }
        if self._file is None:
            self._models = {context: TinyModel(context).file(report) for context in sorted(contexts)}
            return
        weights = self._blueprint.spec.models[0].weights
        if weights.gguf is None:
            raise ValueError("a model of llamaCpp has no gguf; the rules report it")
        check_file(self._file, PlannedFile(weights.gguf.type, max(contexts)), report)
        self._models = dict.fromkeys(contexts, self._file)

    def frontend(self, plan: DeploymentPlan, roles: Sequence[ResolvedWorkers]) -> LocalFrontend:  # noqa: ARG002 -- the base class names them
        return WorkerBalancer(plan.entry_point)

    def workers(self, plan: DeploymentPlan, roles: Sequence[ResolvedWorkers]) -> tuple[LocalWorkers, ...]:
        maximum = max(_FEWEST_SERVERS, self._machine.processors)
        per_word = _BYTES_PER_WORD if self._file else _TOKENS_PER_WORD
        return tuple(
            LlamaRole(
                planned=process,
                replicas=min(max(1, process.replicas), maximum),
                context_length=process.engine.max_model_len // per_word if process.engine else 0,
                profile=None,
                release=plan.release,
                program=self._program,
                threads=max(1, self._machine.processors // min(role.workers.maximum, maximum)),
                processor=role.accelerator.name,
                max_here=maximum,
                file=self._file,
            )
            for role, process in zip(roles, plan.workers, strict=True)
        )

    def write_model(self, deployment: LocalDeployment, shape: Model, directory: Path) -> None:  # noqa: ARG002 -- the model is the same for every shape
        directory.mkdir(parents=True, exist_ok=True)
        (directory / _MODEL_FILE).symlink_to(self._models[_context(deployment.plan)])


def _context(plan: DeploymentPlan) -> int:
    """Return the tokens that the servers of a deployment keep for a sequence."""
    caches = [planned_cache(process.arguments) for process in plan.workers]
    return max(cache.tokens // cache.sequences for cache in caches)


def _text(words: Sequence[str] | None) -> str:
    return _LEFT_OUT if words is None else " ".join(words)
