"""Tasks of entry points behind the front door: nothing but the sidecar listens to the network."""

from __future__ import annotations

import json

import pytest

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.ecs.ecs_target import EcsTarget, copies_weights
from inference_blueprints.render.ecs.services import RenderedService
from inference_blueprints.render.ecs.tasks import CertificateSecret, RenderedContainer
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.source import shipped
from inference_contracts.door_identities import (
    BEHIND_PORT,
    CALLERS_PORT,
    FOLDER,
    SECRET_VARIABLE,
)

DOOR = shipped()["front-door"].read_text(encoding="utf-8")
ON_ECS = DOOR.replace('cluster: {eks: {version: "1.35"}}', "cluster: {ecs: {}}")
TEXTS = {
    "dynamo": ON_ECS,
    "vllm": ON_ECS.replace("    deployments:\n", "    stack: {direct: {}}\n    deployments:\n"),
}
OLD_NAMES = ("    timeZone:", "    oldHostNames: {models: {until: '2027-01-31T00:00:00Z'}}\n    timeZone:")


def entry(text: str) -> RenderedService:
    blueprint = parse_blueprint(text, "blueprint.yaml").blueprint
    plan = build_plan(blueprint)
    return EcsTarget(blueprint, plan).render(plan.models[0])[0].entry_point


def containers(service: RenderedService) -> dict[str, RenderedContainer]:
    return {each.name: each for each in service.task.containers}


@pytest.fixture(params=TEXTS)
def service(request: pytest.FixtureRequest) -> RenderedService:
    return entry(TEXTS[request.param])


def test_only_the_sidecar_listens_to_the_network(service: RenderedService) -> None:
    assert service.task.network == "awsvpc"
    main, sidecar = containers(service)["main"], containers(service)["callers"]
    option = next(word for word in ("--http-host", "--host") if word in main.command)
    assert main.command[main.command.index(option) + 1] == "127.0.0.1"
    assert str(BEHIND_PORT) in main.command
    document = json.loads(sidecar.command[sidecar.command.index("--config-yaml") + 1])
    ports = [
        each["address"]["socket_address"]["port_value"] for each in document["static_resources"]["listeners"]
    ]
    assert ports == [CALLERS_PORT, 8000]


def test_the_certificate_comes_first_and_the_sidecar_ends_last(service: RenderedService) -> None:
    """ECS ends containers in the opposite order of their dependencies."""
    found = containers(service)
    needs = {name: {each.container: each.condition for each in one.depends_on} for name, one in found.items()}
    assert needs["callers"] == {"certificate": "HEALTHY"}
    assert needs["main"]["callers"] == "START"
    mounts = {
        name: (mount.path, mount.read_only)
        for name, each in found.items()
        for mount in each.mounts
        if mount.volume == "certificate"
    }
    assert mounts == {"certificate": (FOLDER, False), "callers": (FOLDER, True)}
    assert found["certificate"].environment[SECRET_VARIABLE] == CertificateSecret("qwen3-8b-stable")


def test_containers_fit_their_task_and_start_no_later(service: RenderedService) -> None:
    task = service.task
    if task.cpu_units and task.memory_mib:
        assert sum(each.cpu_units for each in task.containers) <= task.cpu_units
        assert sum(each.memory_mib for each in task.containers) <= task.memory_mib
    copies = {each.name for each in task.containers} > {"main", "certificate", "callers"}
    assert copies_weights(task) is copies


def test_the_load_balancer_uses_the_port_of_before_whatever_the_door_does(service: RenderedService) -> None:
    """Tasks of before and after are in one target group, and pass its check at their own port."""
    old_names = entry(ON_ECS.replace(*OLD_NAMES))
    for each in (service, old_names):
        assert (each.entry_port, containers(each)["main"].port) == (8000, 8000)
        assert each.health_path in ("/live", "/health")
