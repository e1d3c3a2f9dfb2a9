"""Tasks of engines' own servers, which the load balancer reaches."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from inference_blueprints.loading import parse_blueprint
from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.render.ecs.services import RenderedService
from inference_blueprints.render.ecs.tasks import Dependency, RenderedContainer
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.serving.command_line import flag_values
from inference_blueprints.serving.plan import build_plan
from inference_contracts.ecs_names import MAIN_CONTAINER, NEURON_LOCKS_FOLDER, TASK_START_VARIABLE
from inference_contracts.task_tags import METRICS_PORT_TAG
from tests.unit.render.ecs.one_word import on_ecs

TEXT = (blueprints_directory() / "ecs-g6e.yaml").read_text("utf-8")


def service_on(stack: str, managed: str = "allowed") -> RenderedService:
    """Return the workers of the shipped blueprint on another stack."""
    text = TEXT.replace("{ecs: {}}", f"{{ecs: {{managedInstances: {managed}}}}}", 1)
    text = text.replace("    deployments:\n", f"    stack: {{{stack}: {{}}}}\n    deployments:\n", 1)
    blueprint = parse_blueprint(text, "own.yaml").blueprint
    plan = build_plan(blueprint)
    rendered = EcsTarget(blueprint, plan).render(plan.models[0])[0]
    return rendered.services[-1]


@pytest.fixture(scope="module")
def server() -> RenderedService:
    return service_on("direct")


def main_of(service: RenderedService) -> RenderedContainer:
    [main] = [each for each in service.task.containers if each.name == MAIN_CONTAINER]
    return main


def test_the_load_balancer_reaches_a_server_at_an_address_of_its_own(server: RenderedService) -> None:
    assert (server.task.network, server.entry_port, server.health_path) == ("awsvpc", 8000, "/health")
    assert main_of(server).port == 8000
    start = json.loads(str(main_of(server).environment[TASK_START_VARIABLE]))
    assert start["network"] == "awsvpc"
    assert start["tag"] == {"inference-blueprints/metrics": 8000}


@pytest.mark.parametrize(("managed", "network"), [("allowed", "awsvpc"), ("never", "host")])
def test_a_worker_behind_frontends_is_in_the_network_of_its_host_if_that_guards_its_metadata(
    managed: str, network: str
) -> None:
    """A worker in the network of a managed instance reads the instance's role, and turns this red."""
    worker = service_on("dynamo", managed)
    assert (worker.task.network, worker.entry_port, main_of(worker).port) == (network, None, None)
    assert json.loads(str(main_of(worker).environment[TASK_START_VARIABLE]))["network"] == network
    assert "DYN_NAMESPACE_WORKER_SUFFIX" in main_of(worker).environment


def test_a_server_discovers_nothing(server: RenderedService) -> None:
    main = main_of(server)
    assert "--discovery-backend" not in main.command
    assert not [name for name in main.environment if name.startswith(("DYN_", "ETCD_"))]
    assert main_of(service_on("dynamo")).environment.keys() >= {"DYN_NAMESPACE", "ETCD_ENDPOINTS"}


def test_a_server_has_time_for_its_answers_after_the_load_balancer_has_let_go(
    server: RenderedService,
) -> None:
    main = main_of(server)
    answers = int(flag_values(main.command)["shutdown-timeout"])
    assert server.drain_seconds is not None
    assert server.drain_seconds > answers
    assert main.stop_timeout_seconds > answers


@pytest.fixture(scope="module")
def processors() -> RenderedService:
    """Return the workers of llama.cpp on Graviton, whose image has no Python."""
    blueprint = parse_blueprint(on_ecs("graviton-llama-cpp"), "own.yaml").blueprint
    plan = build_plan(blueprint)
    [service] = EcsTarget(blueprint, plan).render(plan.models[0])[0].services
    return service


def test_an_image_without_python_runs_its_server_and_nothing_of_ours(processors: RenderedService) -> None:
    """It turns red if the task of such an image starts with a program that its image cannot run."""
    [main] = processors.task.containers
    assert main.entry_point == ("/app/llama-server",)
    assert not [name for name in main.environment if name.startswith("TASK_")]
    assert flag_values(main.command)["model"].startswith("/tmp/cache/")  # noqa: S108 -- in its own container
    assert processors.tags[METRICS_PORT_TAG] == str(processors.entry_port)


def test_a_task_on_processors_requests_no_gpus_and_names_its_architecture(
    processors: RenderedService,
) -> None:
    """It turns red if ECS looks for a host with GPUs, or starts an image of another architecture."""
    [main] = processors.task.containers
    assert (main.gpus, processors.task.architecture) == (0, "arm64")
    assert main.cpu_units
    assert main.memory_mib


def test_a_server_that_drops_its_answers_is_told_to_end_after_them(processors: RenderedService) -> None:
    """It turns red if ECS sends SIGTERM while the load balancer still waits for answers."""
    blueprint = parse_blueprint(on_ecs("graviton-llama-cpp"), "own.yaml").blueprint
    [process] = build_plan(blueprint).models[0].deployments[0].workers
    assert processors.drain_seconds == process.pre_stop_seconds


@pytest.fixture(scope="module")
def neuron() -> RenderedService:
    """Return the workers on Inferentia2, which keep what they compile."""
    blueprint = parse_blueprint(on_ecs("inf2"), "own.yaml").blueprint
    plan = build_plan(blueprint)
    [service] = EcsTarget(blueprint, plan).render(plan.models[0])[0].services
    return service


def test_a_task_on_neuron_names_the_devices_of_its_host_and_requests_no_gpus(neuron: RenderedService) -> None:
    """It turns red if ECS looks for a host with GPUs, or if the engine sees no device."""
    main = main_of(neuron)
    assert (main.gpus, main.devices) == (0, ("/dev/neuron0",))
    assert neuron.task.compute == "group"


def test_artefacts_are_loaded_before_the_engine_and_kept_beside_it(neuron: RenderedService) -> None:
    """It turns red if the engine starts without its artefacts, or sees those of another worker."""
    containers = {each.name: each for each in neuron.task.containers}
    volumes = {each.name: each.host_folder for each in neuron.task.volumes}
    load, keep, main = containers["artefacts-load"], containers["artefacts-keep"], main_of(neuron)
    assert load.depends_on == (Dependency("artefacts-folder", "SUCCESS"),)
    assert Dependency("artefacts-load", "SUCCESS") in main.depends_on
    assert keep.depends_on == (Dependency(MAIN_CONTAINER, "START"),)
    assert not load.essential
    assert not keep.essential
    [mount] = load.mounts
    assert volumes[mount.volume] is None
    assert keep.mounts == containers["artefacts-folder"].mounts == (mount,)
    assert mount in main.mounts
    assert main.environment["NEURON_COMPILED_ARTIFACTS"] == mount.path
    assert load.environment["ARTEFACTS_FOLDER"] == keep.environment["ARTEFACTS_FOLDER"] == mount.path


def test_root_only_opens_the_volume_of_artefacts(neuron: RenderedService) -> None:
    """Docker gives an empty volume to root. It turns red if another container runs as root."""
    roots = [each for each in neuron.task.containers if each.user == "0:0"]
    assert [(*each.entry_point, *each.command) for each in roots] == [("chmod", "0777", "/artefacts")]
    assert not roots[0].capabilities


@pytest.fixture(scope="module")
def parts() -> RenderedService:
    """Return the workers on Trainium2: four of a host."""
    blueprint = parse_blueprint(on_ecs("trn2"), "own.yaml").blueprint
    plan = build_plan(blueprint)
    [service] = EcsTarget(blueprint, plan).render(plan.models[0])[0].services
    return service


def test_a_task_with_a_part_of_a_host_takes_its_cores_when_it_starts(parts: RenderedService) -> None:
    """It turns red if two tasks of a host would use one core, or a task sees a part of the devices only."""
    main = main_of(parts)
    assert main.devices == tuple(f"/dev/neuron{index}" for index in range(16))
    assert json.loads(str(main.environment[TASK_START_VARIABLE]))["neuron"] == {
        "folder": "/neuron",
        "devices": 4,
        "of": 16,
        "cores": 4,
        "variable": "NEURON_VISIBLE_DEVICES",
    }
    # As many cores as vLLM splits layers over, which the plug-in asserts.
    assert flag_values(main.command)["tensor-parallel-size"] == "16"
    [locks] = [each for each in main.mounts if each.path == "/neuron"]
    [volume] = [each for each in parts.task.volumes if each.name == locks.volume]
    assert volume.host_folder == NEURON_LOCKS_FOLDER
    assert not locks.read_only


def test_each_way_of_serving_has_its_variable(neuron: RenderedService) -> None:
    start = json.loads(str(main_of(neuron).environment[TASK_START_VARIABLE]))
    assert start["neuron"] | {"folder": ""} == {
        "folder": "",
        "devices": 1,
        "of": 1,
        "cores": 2,
        "variable": "NEURON_RT_VISIBLE_CORES",
    }


@pytest.mark.thorough
def test_the_program_of_artefacts_starts_from_its_variable(neuron: RenderedService) -> None:
    """It turns red if the archive lacks a module, or the program is called with another word."""
    containers = {each.name: each for each in neuron.task.containers}
    for name in ("artefacts-load", "artefacts-keep"):
        words = containers[name].command
        environment = {"TASK_PROGRAM": str(containers[name].environment["TASK_PROGRAM"])}
        ended = subprocess.run(
            [sys.executable, *words], check=False, env=environment, capture_output=True, text=True
        )
        # Without the other variables, the program itself says what is missing.
        assert "error: set ARTEFACTS_BUCKET, ARTEFACTS_KEY" in ended.stderr, ended.stderr
