"""Commands of runbooks for Amazon ECS have the names that the stacks give: cluster, services and logs."""

from __future__ import annotations

import itertools

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.render.ecs.front_door_task import DOOR_SERVICE, POLICY
from inference_blueprints.render.ecs.metrics_task import METRICS_SERVICE, gpu_metrics_service, metrics_task
from inference_blueprints.render.ecs.services import RenderedService
from inference_blueprints.resources import root
from inference_blueprints.serving.plan import build_plan
from inference_contracts.ecs_names import capacity_provider, service_name
from inference_contracts.health_names import DRAIN_ATTRIBUTE
from tests.unit.docs.aws_command import AwsCommand
from tests.unit.docs.test_commands import commands

_WORDS = [
    words
    for page in sorted((root() / "docs/runbooks").glob("*.md"))
    for words in commands(page)
    if words[0] == "aws"
]
_COMMANDS = [AwsCommand.of(words) for words in _WORDS if words[1:3] != ["logs", "tail"]]
#: Services by what their names are made of: the alarms' contributors have RELEASE and ROLE.
_SERVICES = {
    service_name("RELEASE", "ROLE"),
    service_name("RELEASE", "frontend"),
    gpu_metrics_service("POOL"),
    METRICS_SERVICE,
    DOOR_SERVICE,
    # CloudFormation names the services of the discovery store.
    "SERVICE",
}


def _values(*names: str) -> set[str]:
    return {value for each in _COMMANDS for name in names for value in each.options.get(name, ())}


def _rendered(name: str) -> list[RenderedService]:
    blueprint = load_blueprint(name).blueprint
    plan = build_plan(blueprint)
    target = EcsTarget(blueprint, plan)
    return [service for model in plan.models for each in target.render(model) for service in each.services]


def test_the_cluster_has_the_name_of_the_platform() -> None:
    assert _values("cluster") == {"PLATFORM"}


def test_the_services_are_those_of_the_stacks() -> None:
    assert _values("services", "service-name") == _SERVICES
    scaled = _values("resource-id", "resource-ids")
    assert scaled == {f"service/PLATFORM/{service_name('RELEASE', 'ROLE')}"}


def test_hosts_are_looked_for_where_the_stacks_put_them() -> None:
    assert _values("capacity-providers") == {capacity_provider("PLATFORM", "POOL")}
    assert _values("attribute-name") == {DRAIN_ATTRIBUTE}
    assert {value.split(",")[0] for value in _values("attributes")} == {f"name={DRAIN_ATTRIBUTE}"}


def test_log_streams_begin_with_the_prefixes_of_the_tasks() -> None:
    """https://docs.aws.amazon.com/AmazonECS/latest/developerguide/specify-log-config.html."""
    prefixes = {
        after
        for words in _WORDS
        for word, after in itertools.pairwise(words)
        if word == "--log-stream-name-prefix"
    }
    plan = build_plan(load_blueprint("ecs-g6e").blueprint)
    task = metrics_task("PLATFORM", plan, rules={}, gpu_metrics=True, traces=False, region="us-west-2")
    assert prefixes - {f"{task.log_prefix}/{each.name}" for each in task.containers} == {
        service_name("DEPLOYMENT", "ROLE"),
        service_name("DEPLOYMENT", "frontend"),
        f"{DOOR_SERVICE}/{POLICY}",
    }


@pytest.mark.parametrize("name", ["ecs-g6e", "ecs-p5en-disaggregated"])
def test_a_service_and_its_log_are_named_after_the_labels_of_its_series(name: str) -> None:
    blueprint = load_blueprint(name).blueprint
    deployments = {
        each.release: each.name for model in build_plan(blueprint).models for each in model.deployments
    }
    services = _rendered(name)
    assert len(services) >= 2
    for service in services:
        managed = service.compute == "managed"
        release = service.name.removesuffix("-managed").removesuffix(f"-{service.role}")
        assert service.name == service_name(release, service.role, managed=managed)
        assert service.task.log_prefix == service_name(deployments[release], service.role)
