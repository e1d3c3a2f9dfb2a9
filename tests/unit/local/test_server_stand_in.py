"""Which planned server a task's arguments belong to, and what stands for it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.serving.plan import build_plan
from inference_local.ecs_platform.engine_stand_in import STAND_IN_VARIABLE, document
from inference_local.ecs_platform.server_stand_in import SERVERS, main, scripted_launch
from tests.unit.render.ecs.one_word import on_ecs


def arguments(file: Path) -> tuple[str, list[str]]:
    """Return the program of a rendered task's server, and its arguments."""
    blueprint = load_blueprint(str(file)).blueprint
    plan = build_plan(blueprint)
    [service] = EcsTarget(blueprint, plan).render(plan.models[0])[0].services
    [main_container] = [each for each in service.task.containers if each.name == "main"]
    words = [*main_container.entry_point, *main_container.command]
    words = words[words.index("--") + 1 :] if "--" in words else words
    # As its filter starts it, if it has one.
    words = words[words.index("request_filter") + 1 :] if "request_filter" in words else words
    program, *rest = words
    return program, [word.replace("/tmp/cache", "/run/tmp/cache") for word in rest]  # noqa: S108


@pytest.fixture(params=["image-generation", "graviton-llama-cpp"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    made = tmp_path / "blueprint.yaml"
    made.write_text(on_ecs(request.param), encoding="utf-8")
    return made


def variables(file: Path) -> Mapping[str, str]:
    given = document(file, file.parent)
    return {STAND_IN_VARIABLE: given, "HOME": str(file.parent), "TMPDIR": "/run/tmp"}


def test_a_task_with_the_planned_arguments_becomes_the_scripted_server(file: Path) -> None:
    program, words = arguments(file)
    assert program in SERVERS
    launch = scripted_launch(words, variables(file))
    assert launch is not None
    settings = json.loads(launch.command[-1])
    assert settings["port"] == 8000
    [flag] = {"--alias", "--served-model-name"} & set(words)
    assert settings["model"] == words[words.index(flag) + 1]


def test_another_argument_is_no_planned_server(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _, words = arguments(file)
    assert scripted_launch([*words, "--verbose"], variables(file)) is None
    assert main(words[:-1], variables(file)) == 2
    assert "no planned process has the arguments" in capfd.readouterr().err
