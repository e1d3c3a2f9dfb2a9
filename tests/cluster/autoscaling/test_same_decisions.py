"""The simulator, the real KEDA and the real HorizontalPodAutoscaler choose the same numbers of workers."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from inference_blueprints.operate.kubernetes import Kubectl
from inference_local.control_plane import definitions
from inference_local.control_plane.control_plane import ControlPlane
from tests.cluster.autoscaling.branches import BRANCHES, SECONDS, Branch, changes, daily
from tests.cluster.autoscaling.keda import CONTROLLER_FLAGS, api_server_flags, keda
from tests.cluster.autoscaling.llm_d_branches import LLM_D_BRANCHES, rendered_branch
from tests.cluster.autoscaling.scaled_deployments import branch_deployment, in_namespace, roomy_node
from tests.cluster.autoscaling.scripted_prometheus import ScriptedPrometheus, serving
from tests.cluster.state import has, namespace_object

pytestmark = pytest.mark.scaling

_NAMESPACE = "elastic"
_MINUTE_SECONDS = 60
#: Before the scheduled minute, so that all objects are active by then, also on a busy machine.
_LEAD_SECONDS = 90
#: After it, so that the last decision is carried out.
_TAIL_SECONDS = 20


@dataclass(frozen=True, slots=True)
class _Observed:
    """What happened on the control plane: the scheduled minute, begin and end, and numbers by branch."""

    branches: Mapping[str, Branch]
    window: tuple[str, str]
    begin: float
    end: float
    numbers: Mapping[str, Sequence[int]]


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with KEDA and one node."""
    folder = tmp_path_factory.mktemp("scaling")
    flags = api_server_flags(folder / "front-proxy")
    plane = ControlPlane(folder, report=print, api_server_flags=flags, controller_flags=CONTROLLER_FLAGS)
    with plane:
        definitions.install(plane.kubectl, print)
        plane.kubectl.apply([roomy_node(), namespace_object(_NAMESPACE)])
        with keda(plane):
            yield plane


@pytest.fixture(scope="module")
def branches(tmp_path_factory: pytest.TempPathFactory) -> Sequence[Branch]:
    """All branches. The objects of llm-d's are rendered here."""
    rendered = [rendered_branch(each, tmp_path_factory.mktemp(each.name)) for each in LLM_D_BRANCHES]
    return [*BRANCHES, *rendered]


@pytest.fixture(scope="module")
def observed(control_plane: ControlPlane, branches: Sequence[Branch]) -> _Observed:
    """Run all branches at the same time."""
    kubectl = control_plane.kubectl
    kubectl.apply([branch_deployment(branch, _NAMESPACE) for branch in branches])
    kubectl.wait_until(lambda: _workers_are_ready(kubectl, branches), "the workers")
    scripts = {
        query: branch.scripts[trigger] for branch in branches for trigger, query in branch.queries().items()
    }
    prometheus = ScriptedPrometheus(scripts)
    with serving(prometheus), _watched_numbers(kubectl) as numbers:
        minute = (int(time.time() + _LEAD_SECONDS) // _MINUTE_SECONDS + 1) * _MINUTE_SECONDS
        window = (daily(minute), daily(minute + _MINUTE_SECONDS))
        kubectl.apply(
            [in_namespace(branch.manifest(prometheus.address, window), _NAMESPACE) for branch in branches]
        )
        kubectl.wait_until(
            lambda: _all_are_scaled(kubectl, len(branches)), "KEDA and the HorizontalPodAutoscaler"
        )
        begin = prometheus.begin()
        end = max(begin + SECONDS, minute + _MINUTE_SECONDS + _TAIL_SECONDS)
        assert begin < minute, "the scheduled minute began before the objects were active"
        while time.time() < end:
            control_plane.check()
            time.sleep(1)
        found = {branch.name: changes(branch.start, numbers[branch.name]) for branch in branches}
    return _Observed({branch.name: branch for branch in branches}, window, begin, end, found)


@pytest.mark.parametrize("name", [each.name for each in BRANCHES] + [each.name for each in LLM_D_BRANCHES])
def test_same_decisions(name: str, observed: _Observed) -> None:
    branch = observed.branches[name]
    simulated = branch.simulated_numbers(observed.window, observed.begin, observed.end)
    assert (simulated, observed.numbers[branch.name]) == (branch.numbers, branch.numbers)


def _workers_are_ready(kubectl: Kubectl, branches: Sequence[Branch]) -> bool:
    ready = {
        each["metadata"]["name"]: each.get("status", {}).get("readyReplicas", 0)
        for each in kubectl.get("deployments", "--namespace", _NAMESPACE)
    }
    return ready == {branch.name: branch.start if branch.ready else 0 for branch in branches}


def _all_are_scaled(kubectl: Kubectl, count: int) -> bool:
    found = kubectl.get("horizontalpodautoscalers", "--namespace", _NAMESPACE)
    return sum(has(each, "ScalingActive") for each in found) == count


@contextmanager
def _watched_numbers(kubectl: Kubectl) -> Iterator[Mapping[str, list[int]]]:
    """Collect the wanted numbers of workers of every Deployment, as they change."""
    numbers: dict[str, list[int]] = defaultdict(list)
    columns = '{.metadata.name} {.spec.replicas}{"\\n"}'
    process = kubectl.start(
        *("get", "deployments", "--namespace", _NAMESPACE, "--watch", "--output", f"jsonpath={columns}")
    )

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            name, number = line.split()
            numbers[name].append(int(number))

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        yield numbers
    finally:
        process.terminate()
        process.wait()
        reader.join()
