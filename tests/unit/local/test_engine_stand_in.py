"""Which planned process a task's arguments belong to."""

from __future__ import annotations

from collections.abc import Sequence

from inference_blueprints.loading import load_blueprint
from inference_blueprints.render.ecs.ecs_target import EcsTarget
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.types import ModelPlan, Process
from inference_local.ecs_platform.engine_stand_in import is_of

_TEMPORARY = "/run/tmp"


def started(name: str) -> tuple[list[Process], list[list[str]]]:
    """Return the planned workers of a blueprint, and the arguments of the engines in their tasks."""
    blueprint = load_blueprint(name).blueprint
    plan = build_plan(blueprint)
    [model] = plan.models
    workers = [process for process in model.deployments[0].processes if process.is_worker]
    return workers, [_filled(words) for words in _rendered(EcsTarget(blueprint, plan), model)]


def _rendered(target: EcsTarget, model: ModelPlan) -> list[Sequence[str]]:
    [deployment] = target.render(model)
    commands = [
        next(each.command for each in service.task.containers if each.name == "main")
        for service in deployment.services
        if service.role != "frontend"
    ]
    return [command[command.index("--") + 2 :] for command in commands]


def _filled(words: Sequence[str]) -> list[str]:
    """Replace what the start of a task and the agent replace."""
    names = ("system", "kv-events", "nixl", "side-channel")
    text = "\0".join(words).replace("/tmp/cache", f"{_TEMPORARY}/cache")  # noqa: S108
    for number, name in enumerate(names):
        text = text.replace(f"$(port:{name})", str(20_000 + number))
    return text.split("\0")


def test_a_worker_is_found_whatever_its_ports() -> None:
    [worker], [words] = started("ecs-g6e")
    assert "$(" not in " ".join(words)
    assert is_of(words, worker, _TEMPORARY)


def test_another_argument_is_no_planned_worker() -> None:
    [worker], [words] = started("ecs-g6e")
    place = words.index("--max-model-len") + 1
    assert not is_of([*words[:place], "4096", *words[place + 1 :]], worker, _TEMPORARY)
    assert not is_of(words[:-1], worker, _TEMPORARY)
    assert not is_of([*words, "--enforce-eager"], worker, _TEMPORARY)


def test_roles_are_told_apart() -> None:
    workers, words = started("ecs-p5en-disaggregated")
    matches = [[is_of(each, worker, _TEMPORARY) for worker in workers] for each in words]
    assert matches == [[True, False], [False, True]]
