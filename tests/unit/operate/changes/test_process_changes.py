"""Which processes of models a change gives other arguments, and which restart, from deployed templates."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from inference_blueprints.operate.aws.account import Account
from inference_blueprints.operate.changes import deployment_steps
from inference_blueprints.operate.changes.platform_change import REFERENCE, PlatformChange, spelled
from inference_blueprints.operate.changes.process_changes import (
    ArgumentChange,
    ProcessResult,
    changed_processes,
    has_processes,
)
from tests.releases.recorded_releases import recorded_releases

Templates = dict[str, dict[str, Any]]
Edit = Callable[[dict[str, Any]], object]


@cache
def recorded(blueprint: str) -> Templates:
    """Return templates that a former release deployed."""
    [release] = [each for each in recorded_releases() if each.commit == "95795729"]
    return dict(release.templates(blueprint))


def compared(old: Templates, new: Templates) -> list[ProcessResult]:
    change = PlatformChange(cast("Account", None), {}, old, new)
    return [cast("ProcessResult", each) for each in changed_processes(change)]


def lines(old: Templates, new: Templates) -> list[str]:
    return [str(each) for each in compared(old, new)]


# On EKS, in the values of a chart


def release_of(templates: Templates) -> dict[str, Any]:
    """Return the properties of the model's only release."""
    [release] = [
        resource["Properties"]
        for stack, template in templates.items()
        for name, resource in template["Resources"].items()
        if "-Model-" in stack and name.startswith("Deployment") and "Values" in resource["Properties"]
    ]
    return cast("dict[str, Any]", release)


def released(blueprint: str, edit: Edit) -> Templates:
    """Return the templates with edited values of the model's release, and their references."""
    templates = copy.deepcopy(recorded(blueprint))
    release = release_of(templates)
    values = json.loads(spelled(release["Values"]))
    edit(values)
    first, *others = json.dumps(values, ensure_ascii=False).split(REFERENCE)
    joined = [first, *(part for each in others for part in ({"Ref": "Bucket"}, each))]
    release["Values"] = {"Fn::Join": ["", joined]}
    return templates


def process(values: dict[str, Any], role: str) -> dict[str, Any]:
    [found] = [each for each in values["processes"] if each["role"] == role]
    return cast("dict[str, Any]", found)


def fewer_sequences(values: dict[str, Any]) -> None:
    words = process(values, "decode")["arguments"]
    words[words.index("--max-num-seqs") + 1] = "192"
    words.remove("--enable-prefix-caching")
    words += ["--kv-cache-dtype", "fp8"]


def test_arguments_that_differ_have_their_old_and_new_value() -> None:
    """An argument that stays, or one that is left out, turns this red."""
    old, new = recorded("p5en-disaggregated"), released("p5en-disaggregated", fewer_sequences)
    prefill, decode = compared(old, new)
    assert str(decode) == (
        "warning  processes: model 'qwen3-32b' deployment 'main' (decode): --max-num-seqs 256 -> 192; "
        "--kv-cache-dtype fp8 added; --enable-prefix-caching removed; its only worker restarts, and none "
        "answers in its place until it is ready"
    )
    assert decode.change.arguments[0] == ArgumentChange("--max-num-seqs", "256", "192")
    assert (decode.change.effect, decode.change.parts) == ("restarts", ())
    # Dynamo's operator has one hash for all workers of a graph; frontends are outside it.
    assert (prefill.change.role, prefill.change.arguments) == ("prefill", ())
    assert prefill.message.endswith(
        "another worker of its deployment changes, and Dynamo replaces all of them: its 12 workers restart, "
        "with at most 1 missing and 1 extra at a time"
    )


def test_a_graph_whose_workers_span_nodes_replaces_only_what_changes() -> None:
    """Grove replaces one at a time, whatever the annotations say; without it, prefill would restart too."""

    def spans(values: dict[str, Any]) -> None:
        process(values, "prefill").update(nodes=2, rollout={"maxSurge": 3, "maxUnavailable": 4})

    def changes(values: dict[str, Any]) -> None:
        spans(values)
        process(values, "prefill")["arguments"].append("--seed=1")

    old, new = (released("p5en-disaggregated", each) for each in (spans, changes))
    [line] = lines(old, new)
    assert line.endswith("(prefill): --seed 1 added; its 12 workers restart one after the other")


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (lambda each: each.update(image="engine:2"), "also changed: image"),
        (lambda each: each["environment"].append({"name": "A", "value": "1"}), "also changed: environment"),
        (
            lambda each: each.update(followerArguments=["--headless"], preStopSeconds=9),
            "also changed: arguments of further nodes, time before it stops",
        ),
    ],
)
def test_a_pod_that_differs_restarts_with_the_same_arguments(edit: Edit, said: str) -> None:
    old = recorded("batch-g6e")
    [found] = compared(old, released("batch-g6e", lambda values: edit(process(values, "worker"))))
    assert found.change.arguments == ()
    assert found.message == (
        f"model 'qwen3-8b' deployment 'jobs' (worker): {said}; its 2 workers restart, with at most 1 missing "
        "and 1 extra at a time"
    )


@pytest.mark.parametrize(
    "edit",
    [
        lambda _: None,
        lambda values: process(values, "worker").update(replicas=5),
        lambda values: process(values, "worker").update(scaling={"least": 2, "most": 3}),
        lambda values: values.update(program={"node_cache.py": "another"}),
    ],
)
def test_numbers_and_files_of_their_own_restart_nothing(edit: Edit) -> None:
    """A finding for each deployment that only scales turns this red."""
    assert lines(recorded("batch-g6e"), released("batch-g6e", edit)) == []


def test_workers_that_follow_the_load_have_no_number() -> None:
    def scaled(values: dict[str, Any]) -> None:
        process(values, "worker").update(image="engine:2", scaling={"least": 2, "most": 3})

    [line] = lines(recorded("batch-g6e"), released("batch-g6e", scaled))
    assert line.endswith("its workers restart, with at most 1 missing and 1 extra at a time")


def test_another_chart_alone_leaves_it_open_what_restarts() -> None:
    """The templates hold the values and not the chart, so neither "restarts" nor silence would be true."""
    new = copy.deepcopy(recorded("batch-g6e"))
    release_of(new)["ChartAssetURL"] = {"Fn::Sub": f"s3://assets-${{AWS::Region}}/{'0a1b2c3d' * 8}.zip"}
    found = compared(recorded("batch-g6e"), new)
    assert {(each.severity, each.change.effect) for each in found} == {("unknown", "unknown")}
    old = str(release_of(recorded("batch-g6e"))["ChartAssetURL"]).rpartition("/")[2][:12]
    assert f"its values stay, and the archive of its chart changes ({old} -> 0a1b2c3d0a1b)" in str(found[1])
    assert str(found[1]).endswith("extra at a time, else none does")


def test_a_process_that_comes_or_goes() -> None:
    def without(values: dict[str, Any]) -> None:
        values["processes"] = [each for each in values["processes"] if each["role"] != "prefill"]

    full, less = recorded("p5en-disaggregated"), released("p5en-disaggregated", without)
    assert lines(full, less) == ["warning  processes: model 'qwen3-32b' deployment 'main' (prefill): it ends"]
    assert lines(less, full) == [
        "ok       processes: model 'qwen3-32b' deployment 'main' (prefill): it is new"
    ]


# On ECS, in task definitions


def on_ecs(edit: Callable[[dict[str, Any], dict[str, Any]], object]) -> Templates:
    """Return the templates with an edited service of the workers, and its task definition."""
    templates = copy.deepcopy(recorded("ecs-g6e"))
    resources = templates["ecs-g6e-Model-qwen3-8b"]["Resources"]
    [service] = [
        each["Properties"] for name, each in resources.items() if name.startswith("qwen38bmainworkerService")
    ]
    edit(service, resources[service["TaskDefinition"]["Ref"]]["Properties"])
    return templates


def main(task: dict[str, Any]) -> dict[str, Any]:
    return cast(
        "dict[str, Any]", next(each for each in task["ContainerDefinitions"] if each["Name"] == "main")
    )


def test_a_task_definition_that_differs_restarts_the_tasks_of_its_service() -> None:
    """A program of ours that starts the engine is no argument of it."""

    def edit(service: dict[str, Any], task: dict[str, Any]) -> None:
        words = main(task)["Command"]
        words[words.index("--max-num-seqs") + 1] = "48"
        words[1] = "import another_loader"
        words[words.index("dynamo.vllm")] = "dynamo.sglang"
        service["DesiredCount"] = 5
        service["DeploymentConfiguration"] |= {"MinimumHealthyPercent": 50, "MaximumPercent": 130}

    old = on_ecs(lambda service, _: service.update(DesiredCount=5))
    [found] = compared(old, on_ecs(edit))
    assert found.message == (
        "model 'qwen3-8b' deployment 'main' (worker): command python3 -m dynamo.vllm -> python3 -m "
        "dynamo.sglang; --max-num-seqs 32 -> 48; also changed: program; its 5 workers "
        "restart, with at most 2 missing and 1 extra at a time"
    )


def test_tasks_that_stay() -> None:
    """A cross-stack reference that is written otherwise is no other value."""

    def edit(service: dict[str, Any], task: dict[str, Any]) -> None:
        service["DesiredCount"] = 7
        task["ExecutionRoleArn"] = {"Fn::GetStackOutput": {"StackName": "a", "OutputName": "Role"}}

    old = on_ecs(lambda _, task: task.update(ExecutionRoleArn={"Fn::ImportValue": "a:Role"}))
    assert lines(old, on_ecs(edit)) == []


def test_tasks_that_follow_the_load_and_tasks_that_another_service_runs() -> None:
    def scaled(service: dict[str, Any], task: dict[str, Any]) -> None:
        service.pop("DesiredCount", None)
        main(task)["Image"] = "engine:2"

    [line] = lines(recorded("ecs-g6e"), on_ecs(scaled))
    limits = "ECS keeps 50% to 100% of them running"
    assert line.endswith(f"(worker): also changed: image; its workers restart; {limits}")
    moved = copy.deepcopy(recorded("ecs-g6e"))
    resources = moved["ecs-g6e-Model-qwen3-8b"]["Resources"]
    [name] = [each for each in resources if each.startswith("qwen38bmainworkerService")]
    resources["Another"] = resources.pop(name)
    [line] = lines(recorded("ecs-g6e"), moved)
    assert line.endswith(
        "(worker): a new service takes its place, and the old one ends when the new one is stable"
    )


def test_only_models_have_processes() -> None:
    """The discovery store and what measures the platform have services too."""
    templates = recorded("ecs-g6e")
    models = {stack: each for stack, each in templates.items() if "-Model-" in stack}
    others = {stack: each for stack, each in templates.items() if "-Model-" not in stack}
    known = [has_processes(PlatformChange(cast("Account", None), {}, each, {})) for each in (models, others)]
    assert known == [True, False]


def test_deploy_says_what_restarts_before_it_changes_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deployment that begins before it has said so turns this red."""
    old, new = recorded("p5en-disaggregated"), released("p5en-disaggregated", fewer_sequences)
    account = cast("Account", SimpleNamespace(client=lambda _: None))
    console = Console(file=(tmp_path / "said").open("w", encoding="utf-8"), width=400)
    said: list[str] = []

    def deploy(*_: object) -> None:
        console.file.flush()
        said.extend((tmp_path / "said").read_text("utf-8").splitlines())

    change = PlatformChange(account, {}, old, new)
    monkeypatch.setattr(deployment_steps, "settle", lambda *_: None)
    monkeypatch.setattr(deployment_steps, "synthesise_for_deploy", lambda *_: Path("cdk.out"))
    monkeypatch.setattr(deployment_steps, "read_change", lambda *_, **__: change)
    monkeypatch.setattr(deployment_steps, "check_change", lambda each: list(changed_processes(each)))
    monkeypatch.setattr(deployment_steps, "deploy_assembly", deploy)
    changed = deployment_steps.deploy_in_steps("try.yaml", "try", account, [], console)
    assert [line for line in said if "(decode): --max-num-seqs 256 -> 192; " in line]
    assert [each.role for each in changed] == ["prefill", "decode"]
