"""A placement that cannot succeed is said before a deployment, and what passes `validate` has a place."""

from __future__ import annotations

from itertools import zip_longest

import pytest

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.ecs.task_devices import NeuronHosts
from inference_blueprints.render.ecs.tasks import to_register
from inference_blueprints.resources import blueprints_directory
from inference_catalog import InstanceType, instance_type, instance_types
from inference_catalog.ecs_hosts import host_kind
from inference_catalog.neuron import device_groups
from inference_constructs.ecs.host_start import RESERVED_MEMORY_MIB
from inference_contracts.errors import BlueprintError
from inference_contracts.task_start import NeuronPart
from inference_local.emulator.ecs.control.task_placement import needs_of
from tests.unit.render.ecs.test_one_word import REFERENCES, RENDERED, loaded, plan_of, services

_CPU_UNITS = 1024


@pytest.mark.parametrize(
    ("word", "other", "said"),
    [
        ("replicas: 2", "replicas: 4", "its deployments need 4 nodes"),
        ("tensorParallelSize: 1", "tensorParallelSize: 2", "spans several nodes"),
    ],
)
def test_workers_that_no_host_has_room_for_are_refused(word: str, other: str, said: str) -> None:
    text = (blueprints_directory() / "ecs-g6e.yaml").read_text(encoding="utf-8")
    assert word in text
    with pytest.raises(BlueprintError) as error:
        parse_blueprint(text.replace(word, other), "file")
    assert said in str(error.value)


def _neuron_types() -> list[InstanceType]:
    return [each for each in instance_types().values() if host_kind(each) == "neuron"]


@pytest.mark.parametrize("known", _neuron_types(), ids=lambda known: known.name)
def test_a_host_has_room_for_as_many_tasks_as_its_neuron_devices_allow(known: InstanceType) -> None:
    """ECS registers 1024 CPU units per vCPU, and no Neuron devices."""
    assert known.accelerator is not None
    hosts = NeuronHosts(known.accelerator_count, known.accelerator.cores, "CORES", known.vcpu)
    for devices in device_groups(known) or range(1, known.accelerator_count + 1):
        part = NeuronPart(folder="", devices=devices, of=hosts.devices, cores=hosts.cores, variable="CORES")
        tasks = known.accelerator_count // devices
        assert known.vcpu * _CPU_UNITS // hosts.cpu_units(part) == tasks
        assert tasks * hosts.cpu_units(part) <= (known.vcpu - 1) * _CPU_UNITS, "the system has no vCPU"


@pytest.mark.parametrize(("name", "tasks"), [("inf2", 1), ("trn2", 4)])
def test_the_tasks_of_a_host_with_neuron_devices_fit_together(name: str, tasks: int) -> None:
    """It turns red if ECS places one task more than a host has parts, or has no room for one of them."""
    [pool], [service] = loaded(name).blueprint.spec.pools, services(name)
    known, needs = instance_type(pool.instance_types[0]), needs_of(to_register(service.task, REFERENCES))
    assert known.vcpu * _CPU_UNITS // needs.cpu == tasks
    assert (known.memory_mib - RESERVED_MEMORY_MIB) // needs.memory_mib >= tasks


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
