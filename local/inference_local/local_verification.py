"""All checks of a local run in order, and the access to its processes.

The checks are those of a deployed platform that apply here. The others say why they do not.
"""

from __future__ import annotations

import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.client import HTTPException
from pathlib import Path
from types import MappingProxyType

from inference_blueprints.loading import LoadedBlueprint
from inference_blueprints.operate.check_results import CheckResult, Checks, run_checks
from inference_blueprints.operate.verify import endpoint_checks, worker_checks
from inference_blueprints.operate.verify.kv_transfer_checks import kv_transfer, read_transfers
from inference_blueprints.operate.verify.serving_access import (
    Instance,
    Instances,
    ModelAddress,
    ServedPlatform,
    Transferred,
)
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import DeploymentPlan, KvTransfer, Process, ServingPlan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import UserError
from inference_local.run_state import RunState, live_state
from inference_local.serving.engine_kinds import ENGINE_KINDS
from inference_local.serving.engine_names import EngineName
from inference_local.serving.local_deployment import LocalDeployment
from inference_local.serving.local_endpoint import ServedProcess
from inference_local.serving.local_target import LocalTarget

# Access to the processes of a local run, by the addresses and log files that it publishes.

_TIMEOUT_SECONDS = 30.0
#: Pages are on the loopback interface, which no proxy of the user reaches.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class LocalAccess:
    """The processes of a local run."""

    state: RunState
    """What the run published."""
    answer_seconds: float
    """Longest time of one answer."""

    def instances(self, deployment: DeploymentPlan) -> Instances:
        """Return the processes of a deployment by their name in the plan."""
        return {
            process.name: [
                Instance(each.name, process.name, _unready(each))
                for each in self._published(deployment, process)
            ]
            for process in deployment.processes
        }

    def expected(self, deployment: DeploymentPlan, process: Process) -> int:
        """Return the number of processes that the run started, at least one."""
        return max(1, len(self._published(deployment, process)))

    def log(self, deployment: DeploymentPlan, instance: Instance) -> str:
        """Return the log of a process, with those of its earlier starts; empty if the file is gone."""
        try:
            return Path(self._process(deployment, instance).log_file).read_text(errors="replace")
        except OSError:
            return ""

    def metrics(self, deployment: DeploymentPlan, instance: Instance) -> str:
        """Return the metrics of a process; empty if it does not answer."""
        try:
            return _page(f"{self._process(deployment, instance).url}/metrics")
        except (OSError, HTTPException):
            return ""

    @contextmanager
    def open_frontend(self, deployment: DeploymentPlan, instance: Instance) -> Iterator[str]:
        """Yield the URL of a frontend."""
        yield self._process(deployment, instance).url

    def model_address(self, model: str) -> ModelAddress:
        """Return the address of the relay for a model."""
        (url,) = [each.base_url for each in self.state.models if each.name == model]
        return ModelAddress(url, only_in_vpc=False, command=None)

    def look_command(self, deployment: DeploymentPlan, process: Process) -> str:
        """Return the command that shows the ends of the logs of a process."""
        files = [each.log_file for each in self._published(deployment, process)]
        return f"tail {' '.join(files)}"

    def log_command(self, deployment: DeploymentPlan, instance: Instance | None, *words: str) -> str:
        """Return the command that searches log files."""
        names = {process.name for process in deployment.workers}
        files = [
            each.log_file
            for each in self.state.processes
            if each.release == deployment.release
            and (each.name == instance.name if instance else each.process in names)
        ]
        return f"grep -i {' '.join(f'-e {word}' for word in words)} {' '.join(files)}"

    def _published(self, deployment: DeploymentPlan, process: Process) -> list[ServedProcess]:
        return [
            each
            for each in self.state.processes
            if (each.release, each.process) == (deployment.release, process.name)
        ]

    def _process(self, deployment: DeploymentPlan, instance: Instance) -> ServedProcess:
        (found,) = [
            each
            for each in self.state.processes
            if (each.release, each.name) == (deployment.release, instance.name)
        ]
        return found


def _unready(process: ServedProcess) -> str:
    """Return why a process is not ready, according to its health; empty if it is."""
    try:
        _page(f"{process.url}{process.health_path}")
    except urllib.error.HTTPError as error:
        return f"{process.health_path} answers HTTP {error.code}"
    except (OSError, HTTPException) as error:
        return f"{process.health_path} does not answer: {error}"
    return ""


def _page(url: str) -> str:
    with _DIRECT.open(url, timeout=_TIMEOUT_SECONDS) as response:
        content: bytes = response.read()
        return content.decode(errors="replace")


_AWS = "AWS is emulated on this machine"
_CLUSTER = "the processes run on this machine, not on a cluster"
_WEIGHTS = "no weights are loaded on this machine"
_ROUTER = "llm-d's router does not run on this machine"
_EFA = "this machine has no EFA, and times on its processors mean nothing"
#: Checks of a deployed platform that cannot run here, with the reason.
NOT_HERE: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(
            (
                "credentials",
                "stacks",
                "caller certificates",
                "control plane",
                "add-ons",
                "control plane logs",
                "controllers",
                "streaming",
            ),
            _AWS,
        ),
        **dict.fromkeys(
            (
                *("API server", "nodes", "node images", "pools", "device plug-ins", "charts", "metrics"),
                "known callers",
            ),
            _CLUSTER,
        ),
        **dict.fromkeys(("weights", "streamed weights"), _WEIGHTS),
        **dict.fromkeys(("inference pools", "picks"), _ROUTER),
        **dict.fromkeys(("EFA memory", "EFA bandwidth"), _EFA),
    }
)
_NOT_MOVED = "simulated engines move no KV cache"
#: The checks of a deployed platform that run here, in the order of `verify`.
LOCAL_CHECKS: Checks[ServedPlatform] = {
    "workers": worker_checks.workers,
    "routes": endpoint_checks.routes,
    "tokens": endpoint_checks.deployments,
    "requests": worker_checks.requests,
    "KV transfer": kv_transfer,
}


@dataclass(frozen=True, slots=True)
class ServedHere:
    """A local run as the checks see it."""

    blueprint: Blueprint
    plan: ServingPlan
    """The plan with the processes that run here."""
    access: LocalAccess
    transferred: Mapping[str, Transferred] = field(default_factory=dict)
    answered: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """`read_transfers`, `answered`: Counters before the requests of the checks, as `ServedPlatform` describes
    them."""


def verify_local(loaded: LoadedBlueprint, run_directory: Path) -> Iterator[CheckResult]:
    """Iterate over the results of all checks of the run that uses a folder.

    Raises UserError if no run of this blueprint is ready there.
    """
    state = live_state(run_directory)
    if state is None or state.phase != "ready":
        raise UserError(
            f"{run_directory}: no platform is ready; start it with `blueprints local up {loaded.file} "
            "--keep`, and wait until it says that it runs"
        )
    served = served_here(loaded.blueprint, state)
    published = {process.release for process in state.processes}
    planned = {deployment.release for model in served.plan.models for deployment in model.deployments}
    if published != planned:
        raise UserError(
            f"{run_directory}: {state.blueprint} runs, with the deployments {', '.join(sorted(published))}; "
            f"{loaded.file} has {', '.join(sorted(planned))}"
        )
    return verify_served(served, state.engines)


def verify_served(served: ServedHere, engines: EngineName) -> Iterator[CheckResult]:
    """Iterate over the results of all checks of a local run."""
    reasons = dict(NOT_HERE)
    checks = dict(LOCAL_CHECKS)
    if engines is EngineName.SIMULATED:
        del checks["KV transfer"]
        reasons["KV transfer"] = _NOT_MOVED
    for name, reason in reasons.items():
        yield CheckResult(name, "unknown", f"not checked here: {reason}")
    counted = replace(served, transferred=read_transfers(served), answered=worker_checks.answered(served))
    yield from run_checks(checks, counted)


def served_here(blueprint: Blueprint, state: RunState) -> ServedHere:
    """Return a local run as the checks see it.

    state: What the run published.
    """
    kind = ENGINE_KINDS[state.engines](blueprint)
    target, plan = LocalTarget(blueprint, kind), build_plan(blueprint)
    models = tuple(
        replace(
            model,
            deployments=tuple(_as_run(each, kind.kv_transfer) for each in target.render(model)),
        )
        for model in plan.models
    )
    return ServedHere(blueprint, replace(plan, models=models), LocalAccess(state, kind.answer_seconds))


def _as_run(deployment: LocalDeployment, back_end: KvTransfer | None) -> DeploymentPlan:
    """Return a deployment of the plan with the processes that run here.

    back_end: What moves KV cache here.
    """
    plan = deployment.plan
    return replace(
        plan,
        stack=deployment.frontend.stack,
        processes=(deployment.frontend.process, *(workers.planned for workers in deployment.workers)),
        kv_transfer=back_end if plan.kv_transfer else None,
        picker=None,
    )
