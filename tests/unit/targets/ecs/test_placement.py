"""A placement that cannot succeed is said before a deployment, and what passes `validate` has a place."""

from __future__ import annotations

from itertools import zip_longest

import pytest

from inference_blueprints.catalog import instance_type
from inference_blueprints.errors import BlueprintError
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.local.emulator.ecs.control.task_placement import needs_of
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.targets.ecs.task_requests import to_register
from inference_constructs.ecs.host_user_data import RESERVED_MEMORY_MIB
from tests.unit.targets.ecs.test_one_word import REFERENCES, RENDERED, loaded, plan_of, services

_CPU_UNITS = 1024


@pytest.mark.parametrize(
    ("word", "other", "said"),
    [
        ("replicas: 2", "replicas: 3", "its deployments need 3 nodes"),
        ("tensorParallelSize: 1", "tensorParallelSize: 2", "spans several nodes"),
    ],
)
def test_workers_that_no_host_has_room_for_are_refused(word: str, other: str, said: str) -> None:
    text = (blueprints_directory() / "ecs-g6e.yaml").read_text(encoding="utf-8")
    assert word in text
    with pytest.raises(BlueprintError) as error:
        parse_blueprint(text.replace(word, other), "file")
    assert said in str(error.value)


@pytest.mark.parametrize("name", RENDERED)
def test_a_worker_fits_an_empty_host_of_each_type_of_its_pool(name: str) -> None:
    # ECS places by what a host registers, less ECS_RESERVED_MEMORY (Amazon ECS Developer Guide, "Reserving
    # Amazon ECS Linux container instance memory").
    pools = {pool.name: pool for pool in loaded(name).blueprint.spec.pools}
    processes = [
        process
        for model in plan_of(name).models
        for deployment in model.deployments
        for process in deployment.processes
    ]
    for process, service in zip_longest(processes, services(name)):
        if process.pool is None:
            continue
        needs = needs_of(to_register(service.task, REFERENCES))
        for type_name in pools[process.pool].instance_types:
            known = instance_type(type_name)
            assert needs.gpus <= known.accelerator_count
            assert needs.cpu <= known.vcpu * _CPU_UNITS
            assert needs.memory_mib <= known.memory_mib - RESERVED_MEMORY_MIB
