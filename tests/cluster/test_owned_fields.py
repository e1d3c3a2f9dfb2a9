"""Deployments over fields that a controller or a person has set, with the layer's Helm on a real API server.

Helm 4 applies on the server, and a field that somebody else has set makes it fail, in the rollback too. A
field that only Helm had and that a chart leaves out goes back to the default of the API server: no replica
for KEDA, one for a Deployment.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from capacity_shift.cluster_numbers import KubernetesNumbers, LiveWorkers

from inference_blueprints.operate.kubernetes import Kubectl
from inference_blueprints.render.eks.batch_worker_values import QueueScaling, batch_worker_values
from inference_blueprints.render.eks.model_values import deployment_values
from inference_catalog.charts import charts_directory, stage_chart
from inference_constructs.capacity.job_queue import QueueProperties, cluster_queue
from inference_contracts.shift_names import ShiftedQueue, ShiftedWorkers
from inference_local.control_plane.control_plane import ControlPlane
from operations.operations_errors import KubernetesError
from tests.charts import direct, dynamo, llm_d
from tests.cluster.helm import HelmError, deployed_helm, helm
from tests.runtime.capacity_shift.shift_platform import shifted_workers

_RELEASE = "model"
Values = dict[str, Any]


@dataclass(frozen=True)
class Release:
    """A release of a chart of models in a namespace of its own."""

    control_plane: ControlPlane
    namespace: str
    folder: Path
    chart: str

    @property
    def kubectl(self) -> Kubectl:
        return self.control_plane.kubectl

    def plain(self, values: Values, *options: str) -> None:
        """Run the layer's Helm as CDK's handler does."""
        self._upgrade(values, *options)

    def deploy(self, values: Values) -> None:
        """Run Helm as a deployment does: CDK's handler finds the program of our layer first."""
        self._upgrade(values, program=deployed_helm(self.folder))

    def _upgrade(self, values: Values, *options: str, program: Path | None = None) -> None:
        path = self.folder / "values.json"
        path.write_text(json.dumps(values, indent=2))
        chart = stage_chart(charts_directory() / self.chart, self.folder)
        arguments = ("upgrade", _RELEASE, str(chart), "--install", "--values", str(path), *options)
        helm(self.control_plane, self.namespace, *arguments, program=program)

    def uninstall(self) -> None:
        helm(self.control_plane, self.namespace, "uninstall", _RELEASE)

    def only(self, kind: str) -> dict[str, Any]:
        (found,) = self.kubectl.get(kind, "--namespace", self.namespace)
        return found

    def patch(self, kind: str, change: dict[str, Any], *options: str) -> None:
        name = self.only(kind)["metadata"]["name"]
        text = json.dumps(change)
        self.kubectl.run(
            "patch", kind, name, "--namespace", self.namespace, "--type=merge", f"--patch={text}", *options
        )

    @property
    def range(self) -> tuple[int, int]:
        spec = self.only("scaledobjects")["spec"]
        return spec["minReplicaCount"], spec["maxReplicaCount"]


@pytest.fixture
def release_of(control_plane: ControlPlane, namespace: str, tmp_path: Path) -> Callable[[str], Release]:
    return lambda chart: Release(control_plane, namespace, tmp_path, chart)


def _values(*, shifted: bool, minimum: int = 4, maximum: int = 12) -> Values:
    values = deployment_values(llm_d.planned(direct.DIRECT, of=direct.ELASTIC), shifted=shifted)
    (process,) = values["processes"]
    process["scaling"] |= {"least": minimum, "most": maximum}
    return values


def _workers(release: Release) -> ShiftedWorkers:
    return _workers_named(release, release.only("scaledobjects")["metadata"]["name"])


def _workers_named(release: Release, name: str) -> ShiftedWorkers:
    return dataclasses.replace(shifted_workers(), name=name, namespace=release.namespace)


#: Who made the release, by the options of the Helm of that time: Helm 3 applied in the client.
_MADE_BY = {"Helm 4": (), "Helm 3": ("--server-side=false",)}


@pytest.mark.parametrize("made_by", _MADE_BY)
@pytest.mark.parametrize("moved_by", ["nobody", "the shift", "a person"])
def test_a_deployment_keeps_the_floor_that_the_shift_has_set(
    release_of: Callable[[str], Release], numbers: KubernetesNumbers, made_by: str, moved_by: str
) -> None:
    """Red if the deployment fails, in the rollback too, or if the floor falls for a moment."""
    release = release_of("direct-model")
    of_today = _values(shifted=False)
    release.plain(of_today, *_MADE_BY[made_by])
    assert release.range == (4, 12)
    floor = 4 if moved_by == "nobody" else 7
    if moved_by == "the shift":
        numbers.set_floor(_workers(release), floor)
    elif moved_by == "a person":
        release.patch("scaledobjects", {"spec": {"minReplicaCount": floor}})
    if moved_by != "nobody" and made_by == "Helm 4":
        with pytest.raises(HelmError, match=r"conflict(.|\n)*minReplicaCount"):
            release.plain(of_today)

    generation = release.only("scaledobjects")["metadata"]["generation"]
    release.deploy(_values(shifted=True))
    assert release.range == (floor, 12)
    changed = release.only("scaledobjects")["metadata"]["generation"] != generation
    assert not changed, "nothing fell for a moment and came back"
    # The shift goes on, and each later deployment keeps what it set.
    numbers.set_floor(_workers(release), 9)
    release.deploy(_values(shifted=True, maximum=11))
    assert release.range == (9, 11)
    # The blueprint's range holds, whatever was set.
    release.deploy(_values(shifted=True, maximum=6))
    assert release.range == (6, 6)
    numbers.set_floor(_workers(release), 4)
    release.deploy(_values(shifted=True, minimum=5))
    assert release.range == (5, 12)
    # CloudFormation rolls back with the former values, here those of before the upgrade.
    numbers.set_floor(_workers(release), 8)
    release.deploy(of_today)
    assert release.range == (4, 12)
    release.uninstall()
    assert release.kubectl.get("scaledobjects", "--namespace", release.namespace) == []


def test_a_deployment_keeps_floor_and_ceiling_on_a_pool_that_models_share(
    release_of: Callable[[str], Release], numbers: KubernetesNumbers
) -> None:
    """Red if KEDA may for a moment take what another model was given, or if a roll-back fails."""
    release = release_of("direct-model")
    of_today = _values(shifted=False)
    release.plain(of_today)
    shared = _values(shifted=True)
    shared["processes"][0]["scaling"]["ceiling"] = 8
    release.deploy(shared)
    # Nobody has decided yet: what lives is kept, and the first decision comes within a minute.
    assert release.range == (4, 12)
    numbers.set_floor(_workers(release), 9, 10)
    generation = release.only("scaledobjects")["metadata"]["generation"]
    release.deploy(shared)
    assert release.range == (9, 10)
    assert release.only("scaledobjects")["metadata"]["generation"] == generation, "nothing fell and came back"
    live = numbers.workers([_workers(release)])
    assert list(map(type, live.values())) == [KubernetesError], "it has no autoscaler without KEDA"
    # Both move in one change: a floor above the ceiling would be refused, and nothing would move.
    numbers.set_floor(_workers(release), 4, 5)
    numbers.set_floor(_workers(release), 11, 12)
    assert release.range == (11, 12)
    narrower = copy.deepcopy(shared)
    narrower["processes"][0]["scaling"] |= {"most": 7, "ceiling": 6}
    release.deploy(narrower)
    assert release.range == (7, 7)
    numbers.set_floor(_workers(release), 5, 6)
    release.deploy(of_today)
    assert release.range == (4, 12)
    release.uninstall()
    release.deploy(shared)
    assert release.range == (4, 8), "a new one begins with its share"


@pytest.mark.parametrize("chart", ["direct-model", "dynamo-model", "llm-d-model"])
def test_a_deployment_keeps_how_many_workers_batch_was_lent(
    release_of: Callable[[str], Release], numbers: KubernetesNumbers, chart: str
) -> None:
    """Red if a deployment ends workers of batch, or starts some that real time has not left."""
    release = release_of(chart)
    kind, plan = _LENT[chart]
    nothing = _fixed(deployment_values(plan), 0)
    lent = copy.deepcopy(nothing)
    lent["processes"][-1]["lent"] = True
    release.deploy(lent)
    assert _replicas(release, kind) == 0
    release.deploy(_with_more_memory(lent))
    assert _replicas(release, kind) == 0
    name, scale = release.only(kind)["metadata"]["name"], _SCALES[kind]
    if kind == "dynamographdeployments":
        name = _adapter(release, lent["processes"][-1]["name"])
    workers = dataclasses.replace(_workers_named(release, name), batch_only=True, scale=scale)
    (none,) = numbers.workers([workers]).values()
    assert none == LiveWorkers(floor=0, ceiling=0, replicas=0, current=0)
    numbers.set_floor(workers, 7, 7)
    (live,) = numbers.workers([workers]).values()
    assert isinstance(live, LiveWorkers)
    assert (live.floor, live.ceiling, live.replicas) == (7, 7, 7)
    if kind == "dynamographdeployments":
        # Dynamo's operator copies the number of the adapter
        # (deploy/operator/internal/controller/dynamographdeploymentscalingadapter_controller.go).
        _scale(release, kind, release.only(_ADAPTERS)["spec"]["replicas"])
    release.deploy(lent)
    assert _replicas(release, kind) == 7
    release.deploy(_with_more_memory(lent))
    assert _replicas(release, kind) == 7
    release.deploy(nothing)
    assert _replicas(release, kind) == 0


def test_a_deployment_overwrites_what_a_person_has_set_elsewhere(
    release_of: Callable[[str], Release],
) -> None:
    """Red if any field that a person has changed makes all later deployments fail."""
    release = release_of("direct-model")
    release.deploy(_values(shifted=False))
    release.patch("scaledobjects", {"spec": {"pollingInterval": 77, "maxReplicaCount": 99}})
    release.patch("deployments", {"spec": {"progressDeadlineSeconds": 7}}, "--field-manager=kubectl-edit")
    release.deploy(_values(shifted=False, maximum=10))
    assert release.range == (4, 10)
    assert release.only("scaledobjects")["spec"]["pollingInterval"] != 77
    assert release.only("deployments")["spec"]["progressDeadlineSeconds"] != 7


#: Charts with the kind of object that has the number of workers.
_NUMBERED = {
    "direct-model": ("deployments", llm_d.planned(direct.DIRECT, of=direct.ELASTIC)),
    "dynamo-model": ("dynamographdeployments", dynamo.DEPLOYMENTS["qwen3-8b-elastic"]),
}
_ADAPTERS = "dynamographdeploymentscalingadapters"
#: What the shift sets the number of, as the plan says (`serving/scaling/shift_of_plan.py`).
_SCALES = {
    "deployments": "apps/v1/deployments",
    "dynamographdeployments": f"nvidia.com/v1beta1/{_ADAPTERS}",
    "leaderworkersets": "leaderworkerset.x-k8s.io/v1/leaderworkersets",
}
#: By chart: what has the number of workers, and a plan whose last process has it.
_LENT = {**_NUMBERED, "llm-d-model": ("leaderworkersets", llm_d.DEPLOYMENTS["llm-d-two-nodes"])}


def _adapter(release: Release, component: str) -> str:
    """Make the adapter of a component as Dynamo's operator does, and return its name."""
    graph = release.only("dynamographdeployments")["metadata"]["name"]
    name = f"{graph}-{component.lower()}"
    spec = {"dgdRef": {"name": graph, "serviceName": component}, "replicas": 0}
    adapter = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeploymentScalingAdapter",
        "metadata": {"name": name, "namespace": release.namespace},
        "spec": spec,
    }
    release.kubectl.apply([adapter])
    return name


@pytest.mark.parametrize("chart", _NUMBERED)
def test_workers_stay_when_they_become_elastic_and_fixed_again(
    release_of: Callable[[str], Release], chart: str
) -> None:
    """Red if all workers but one end when KEDA takes over, or if it cannot give the number back."""
    release = release_of(chart)
    kind, plan = _NUMBERED[chart]
    elastic = deployment_values(plan)
    release.deploy(_fixed(elastic, 5))
    assert _replicas(release, kind) == 5
    # From here on KEDA sets the number, but it has not yet.
    release.deploy(elastic)
    assert _replicas(release, kind) == 5
    release.deploy(_with_more_memory(elastic))
    assert _replicas(release, kind) == 5
    _scale(release, kind, 8)
    release.deploy(elastic)
    assert _replicas(release, kind) == 8
    release.deploy(_with_more_memory(elastic))
    assert _replicas(release, kind) == 8
    release.deploy(_fixed(elastic, 3))
    assert _replicas(release, kind) == 3


def test_workers_of_batch_stay_when_they_follow_the_queue(release_of: Callable[[str], Release]) -> None:
    """Red if all but one of them end in the deployment that lets KEDA count them."""
    release = release_of("batch-worker")
    queue = QueueScaling(min=0, max=8, messages=2, queue_url="https://sqs/q", region="us-west-2")

    def deploy(workers: int | QueueScaling) -> int:
        release.deploy(batch_worker_values(image="image", environment={"A": "b"}, workers=workers))
        return int(release.only("deployments")["spec"]["replicas"])

    assert deploy(5) == 5
    assert deploy(queue) == 5
    _scale(release, "deployments", 7)
    assert deploy(queue) == 7
    assert deploy(3) == 3


def _fixed(elastic: Values, replicas: int) -> Values:
    """Values with as many workers, which KEDA does not scale."""
    values = copy.deepcopy(elastic)
    worker = values["processes"][-1]
    worker.pop("scaling", None)
    return {**values, "processes": [*values["processes"][:-1], {**worker, "replicas": replicas}]}


def _with_more_memory(elastic: Values) -> Values:
    values = copy.deepcopy(elastic)
    values["processes"][-1]["resources"]["sharedMemoryMib"] += 1024
    return values


def _replicas(release: Release, kind: str) -> int:
    spec = release.only(kind)["spec"]
    return int(spec["components"][-1]["replicas"] if kind == "dynamographdeployments" else spec["replicas"])


def _scale(release: Release, kind: str, replicas: int) -> None:
    """Set the number of workers as the autoscaler does, or Dynamo's operator for it."""
    name = release.only(kind)["metadata"]["name"]
    where = ("--namespace", release.namespace)
    if kind == "deployments":
        release.kubectl.run("scale", kind, name, *where, f"--replicas={replicas}")
        return
    last = len(release.only(kind)["spec"]["components"]) - 1
    change = [{"op": "replace", "path": f"/spec/components/{last}/replicas", "value": replicas}]
    release.kubectl.run("patch", kind, name, *where, "--type=json", f"--patch={json.dumps(change)}")


def test_a_changed_queue_is_applied_over_the_quota_that_the_shift_has_set(
    kubectl: Kubectl, numbers: KubernetesNumbers, tmp_path: Path
) -> None:
    """Red if turning the shift off fails, or leaves the quota that it has lent."""
    name = "owned-fields"
    properties = QueueProperties(name, (), {"nvidia.com/gpu": "2"}, shifted=True)
    path = tmp_path / "queue.json"

    def apply(properties: QueueProperties, *options: str) -> None:
        """Run kubectl as CDK's handler does when a manifest is created or changed."""
        path.write_text(json.dumps(cluster_queue(properties, cohort=name, namespace="inference")))
        verb = "create" if options else "apply"
        kubectl.run(verb, "-f", str(path), *options)

    apply(properties, "--save-config")
    queue = ShiftedQueue(pool=name, resource="nvidia.com/gpu", accelerators=12, quota=2)
    try:
        numbers.queue(queue).set_quota(9)
        assert numbers.queue(queue).quota == 9
        apply(dataclasses.replace(properties, shifted=False))
        assert numbers.queue(queue).quota == 2
    finally:
        kubectl.run("delete", "clusterqueue", name, "--wait=false")
