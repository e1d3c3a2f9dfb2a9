"""Every shipped blueprint with one word changed renders on ECS, or is refused with a reason of the list."""

from __future__ import annotations

import functools
import json
from collections import defaultdict
from typing import Any

import botocore.session
import pytest
from botocore.validate import ParamValidator

from inference_blueprints.loading import LoadedBlueprint, load_blueprint, parse_blueprint
from inference_blueprints.render.ecs.ecs_limits import ECS_LIMITS
from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.render.ecs.services import RenderedService
from inference_blueprints.render.ecs.task_program import TASK_PROGRAM
from inference_blueprints.render.ecs.tasks import TaskReferences, to_register
from inference_blueprints.serving.nodes.ecs_capacity import managed_pools
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ServingPlan
from inference_blueprints.spec.source import shipped
from inference_contracts.ecs_names import MAIN_CONTAINER, capacity_provider
from inference_contracts.errors import BlueprintError
from tests.unit.render.ecs.one_word import MANAGED, REFUSED, on_ecs

RENDERED = [name for name, limits in REFUSED.items() if not limits]
REFERENCES = TaskReferences(
    region="us-west-2",
    task_role_arn="arn:aws:iam::111122223333:role/task",
    execution_role_arn="arn:aws:iam::111122223333:role/execution",
    discovery_secret=lambda key: f"arn:aws:secretsmanager:us-west-2:111122223333:secret:discovery:{key}::",
    weights_bucket="weights",
    kv_cache_bucket="kv-cache",
    certificate_arns=defaultdict(
        lambda: "arn:aws:secretsmanager:us-west-2:111122223333:secret:certificate-AbCdEf"
    ),
)


@functools.cache
def loaded(name: str) -> LoadedBlueprint:
    return parse_blueprint(on_ecs(name), str(shipped()[name]))


@functools.cache
def plan_of(name: str) -> ServingPlan:
    return build_plan(loaded(name).blueprint)


@functools.cache
def services(name: str) -> tuple[RenderedService, ...]:
    target = EcsTarget(loaded(name).blueprint, plan_of(name))
    return tuple(
        service
        for model in plan_of(name).models
        for deployment in target.render(model)
        for service in deployment.services
    )


def test_the_list_has_every_shipped_blueprint() -> None:
    files = {name: path.read_text(encoding="utf-8") for name, path in shipped().items()}
    assert set(REFUSED) == {name for name, text in files.items() if "cluster: {ecs:" not in text}


@pytest.mark.parametrize("name", [name for name, limits in REFUSED.items() if limits])
def test_a_blueprint_is_refused_with_the_reasons_of_the_list(name: str) -> None:
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(on_ecs(name), str(shipped()[name]))
    reasons = {limit.message: limit.name for limit in ECS_LIMITS if limit.severity == "error"}
    found = [reasons[problem.message] for problem in caught.value.problems]
    assert sorted(set(found)) == sorted(REFUSED[name])


@pytest.mark.parametrize("name", RENDERED)
def test_one_word_changes_neither_the_plan_nor_the_other_warnings(name: str) -> None:
    there = load_blueprint(name)
    assert plan_of(name) == build_plan(there.blueprint)
    before = {each.message for each in there.warnings}
    assert before <= {each.message for each in loaded(name).warnings}


@pytest.mark.parametrize("name", RENDERED)
def test_pools_have_the_capacity_of_the_list(name: str) -> None:
    assert managed_pools(loaded(name).blueprint, plan_of(name)) == set(MANAGED[name])


@functools.cache
def _shape() -> Any:
    model = botocore.session.Session().get_service_model("ecs")
    return model.operation_model("RegisterTaskDefinition").input_shape


@pytest.mark.parametrize("name", RENDERED)
def test_the_api_takes_every_task_definition(name: str) -> None:
    for service in services(name):
        request = to_register(service.task, REFERENCES)
        report = ParamValidator().validate(request, _shape())
        assert not report.has_errors(), report.generate_report()
        assert len(json.dumps(request)) < 64 * 1024
        assert len(request["containerDefinitions"]) <= 10
        _check_enums(request, _shape())


def _check_enums(value: Any, shape: Any) -> None:
    """The validator of botocore does not look at the values of enumerations."""
    if shape.type_name == "structure":
        for name, each in value.items():
            _check_enums(each, shape.members[name])
    elif shape.type_name == "list":
        for each in value:
            _check_enums(each, shape.member)
    elif shape.type_name == "string" and shape.enum:
        assert value in shape.enum


@pytest.mark.parametrize("name", RENDERED)
def test_tasks_keep_the_rules_of_their_compute(name: str) -> None:
    for service in services(name):
        task = service.task
        for container in task.containers:
            if container.health:
                health = container.health
                assert 5 <= health.interval_seconds <= 300
                assert 2 <= health.timeout_seconds <= 60
                assert 1 <= health.retries <= 10
                assert 0 <= health.start_seconds <= 300
            if task.compute != "group":
                # Not valid on Managed Instances and Fargate, or longer than they allow.
                assert not container.shared_memory_mib
                assert not container.devices
                assert 2 <= container.stop_timeout_seconds <= 120
            if task.compute == "fargate":
                assert not container.gpus
                assert not container.capabilities
            if container.shared_memory_mib:
                placed = (container.reservation_mib or 0) + container.shared_memory_mib
                assert placed == container.memory_mib
        if task.compute != "group":
            assert not any(volume.host_folder for volume in task.volumes)
        # An engine's own server is a target of the load balancer, with an address of its own. On Managed
        # Instances, the network of the host leads to the host's credentials.
        has_address = task.compute != "group" or service.entry_port is not None
        assert (task.network == "awsvpc") == has_address


@pytest.mark.parametrize("name", RENDERED)
def test_every_worker_takes_ports_of_its_own(name: str) -> None:
    numbers = {
        str(number)
        for model in plan_of(name).models
        for deployment in model.deployments
        for process in deployment.workers
        for number in (
            *(port.number for port in process.ports),
            *(port.number for port in process.engine_ports),
        )
    }
    for service in services(name):
        if service.entry_port:
            continue
        [main] = [each for each in service.task.containers if each.name == MAIN_CONTAINER]
        assert main.port is None
        texts = [*main.command[3:], *(value for value in main.environment.values() if isinstance(value, str))]
        program = main.environment[TASK_PROGRAM]
        for text in texts:
            if text != program:
                words = text.replace(":", " ").replace('"', " ").replace("\\", " ").replace(",", " ").split()
                assert not numbers.intersection(words), text


@pytest.mark.parametrize("name", RENDERED)
def test_programs_do_not_depend_on_the_entry_point_of_their_image(name: str) -> None:
    """It turns red if an image's entry point is the first process of a worker and keeps SIGTERM to itself."""
    for service in services(name):
        for container in service.task.containers:
            if TASK_PROGRAM in container.environment:
                assert (container.entry_point, container.command[0]) == (("python3",), "-c")


def test_spot_with_fall_back_uses_both_providers() -> None:
    [worker] = [each for each in services("spot-g6e") if each.entry_port is None]
    shares = [(each.provider, each.base, each.weight) for each in worker.strategy]
    assert shares == [
        (capacity_provider("spot", "l40s"), 1, 1),
        (capacity_provider("spot", "l40s", spot=True), 0, 3),
    ]


def test_an_elastic_service_has_no_number_of_tasks() -> None:
    [worker] = [each for each in services("elastic-g6e") if each.entry_port is None]
    assert worker.tasks is None
    assert worker.scaling is not None
    [frontend] = [each for each in services("elastic-g6e") if each.entry_port]
    assert frontend.tasks == 2


def test_workers_of_a_new_configuration_have_a_new_namespace() -> None:
    """A frontend refuses workers whose configuration differs from that of the first (ai-dynamo 1.6.1)."""
    name = "p5en-disaggregated"
    text = on_ecs(name)
    changed = parse_blueprint(text.replace("inputTokens: 3000", "inputTokens: 2000"), name).blueprint
    plan = build_plan(changed)
    assert plan != plan_of(name)
    [after] = EcsTarget(changed, plan).render(plan.models[0])

    def suffixes(workers: tuple[RenderedService, ...]) -> set[Any]:
        return {
            container.environment["DYN_NAMESPACE_WORKER_SUFFIX"]
            for each in workers
            if each.entry_port is None
            for container in each.task.containers
            if container.name == MAIN_CONTAINER
        }

    [before_suffix], [after_suffix] = suffixes(services(name)), suffixes(after.services)
    assert before_suffix != after_suffix
    fronts = [each.task.containers[0].environment for each in (services(name)[0], after.services[0])]
    assert fronts[0]["DYN_NAMESPACE_PREFIX"] == fronts[1]["DYN_NAMESPACE_PREFIX"]
