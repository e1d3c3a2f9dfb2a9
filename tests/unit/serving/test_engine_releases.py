"""Releases of an engine that run without Dynamo: their image, their flags, and the classes that they have."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints.loading import LoadedBlueprint, load_blueprint
from inference_blueprints.resources import blueprints_directory, root
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.command_line import flag_values
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.serving.stacks.engine_process import DEREGISTRATION_SECONDS
from inference_blueprints.serving.stacks.request_filter import command_behind_filter
from inference_blueprints.serving.types import Process
from inference_blueprints.spec.model_files import with_models
from inference_blueprints.spec.types import Blueprint
from inference_catalog.catalogue import shipped
from inference_catalog.releases import shipped_releases
from inference_contracts.errors import BlueprintError

VLLM = "0.33.0"
SHIPPED = [
    (name, release)
    for name in ("vllm", "sglang")
    for release, engine in shipped().engine_releases[name].items()
    if not engine.on_dynamo
]
STACKS: list[dict[str, Any]] = [
    {"direct": {}},
    {"llmD": {}},
    {"llmD": {"prefixScorer": "precise"}},
]


def engine(release: str = VLLM, **settings: Any) -> dict[str, Any]:
    return {"vllm": {"image": {"release": release}, **settings}}


def worker(blueprint: Blueprint) -> Process:
    [found] = build_plan(blueprint).models[0].deployments[0].workers
    return found


def errors(blueprint: Blueprint) -> list[str]:
    return [each.message for each in serving_findings(blueprint) if each.severity == "error"]


def with_release(blueprint: Blueprint, release: catalog.Engine) -> Blueprint:
    """Return a blueprint with a recorded release next to it."""
    recorded = {release.name: {release.version: release}}
    return blueprint.with_releases(dataclasses.replace(shipped_releases(), recorded_engines=recorded))


def flag(name: str, *, takes_value: bool) -> catalog.Flag:
    return catalog.Flag(name, takes_value=takes_value, negatable=False, owner="vllm")


def changed(**flags: catalog.Flag | None) -> catalog.Engine:
    """Return a recorded release whose flags are changed, or taken away with None."""
    release = shipped().engine_releases["vllm"][VLLM]
    named = {"--" + name.replace("_", "-"): flag for name, flag in flags.items()}
    kept = {name: found for name, each in release.flags.items() if (found := named.get(name, each))}
    return dataclasses.replace(release, version="0.99.0", flags=kept)


def test_sglang_runs_its_own_server(make_blueprint: Callable[..., Blueprint]) -> None:
    chosen = {"sglang": {"image": {"release": "0.5.23"}}}
    blueprint = make_blueprint(engine=chosen, stack={"direct": {}})
    assert errors(blueprint) == []
    process = worker(blueprint)
    assert process.image == "docker.io/lmsysorg/sglang:v0.5.23"
    assert command_behind_filter(process) == ("python3", "-m", "sglang.launch_server")
    values = flag_values(process.arguments)
    # Without it the server listens at the loopback address, and without the switch it reports no metrics.
    assert (values["host"], values["port"]) == ("0.0.0.0", "8000")  # noqa: S104 -- of a pod
    assert "--enable-metrics" in process.arguments
    assert process.pre_stop_seconds > DEREGISTRATION_SECONDS


@pytest.mark.parametrize("argument", ["host", "ssl-keyfile", "attn-dp-size", "enable-cache-report"])
def test_the_plan_owns_what_sglang_s_server_needs(
    argument: str, make_blueprint: Callable[..., Blueprint]
) -> None:
    chosen = {"sglang": {"image": {"release": "0.5.23"}, "args": {argument: 1}}}
    [error] = errors(make_blueprint(engine=chosen, stack={"direct": {}}))
    assert error.startswith(f"the plan sets '{argument}' itself; ")


@pytest.mark.parametrize("stack", STACKS, ids=json.dumps)
def test_a_release_runs_the_engine_s_own_image(
    stack: dict[str, Any], make_blueprint: Callable[..., Blueprint]
) -> None:
    blueprint = make_blueprint(engine=engine(), stack=stack)
    assert errors(blueprint) == []
    process = worker(blueprint)
    assert process.image == f"docker.io/vllm/vllm-openai:v{VLLM}"
    # Without an entry in the image's table of users, PyTorch asks these.
    assert {"USER", "HOME"} <= process.environment.keys()


def test_dynamo_s_image_has_the_user_already(make_blueprint: Callable[..., Blueprint]) -> None:
    process = worker(make_blueprint(stack={"direct": {}}))
    assert not {"USER", "HOME"} & process.environment.keys()


def test_an_own_image_may_be_built_on_a_release(make_blueprint: Callable[..., Blueprint]) -> None:
    image = {"name": "registry.example/mine:7@sha256:" + "a" * 64, "release": VLLM}
    blueprint = make_blueprint(engine={"vllm": {"image": image}}, stack={"direct": {}})
    assert errors(blueprint) == []
    assert worker(blueprint).image == image["name"]


def test_dynamo_does_not_run_it(make_blueprint: Callable[..., Blueprint]) -> None:
    [error] = errors(make_blueprint(engine=engine()))
    assert error == (
        "got '0.33.0', vllm's own release, whose image has no Dynamo; set 'stack: {llmD: {}}' or "
        "'stack: {direct: {}}', or '1.6.1'"
    )


def test_an_unknown_release_can_be_recorded(make_blueprint: Callable[..., Blueprint]) -> None:
    [error] = errors(make_blueprint(engine=engine("9.9.9"), stack={"direct": {}}))
    assert "known are '0.33.0', '1.6.1'; or record it: `blueprints engines record vllm==RELEASE`" in error


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"monokernel": True}, []),
        ({"medusa": 1}, ["got 'medusa', which is not an argument of vllm 0.33.0"]),
        ({"grpc-port": 1}, ["the plan sets 'grpc-port' itself; "]),
    ],
)
def test_arguments_are_those_of_the_release(
    arguments: dict[str, Any], expected: list[str], make_blueprint: Callable[..., Blueprint]
) -> None:
    found = errors(make_blueprint(engine=engine(args=arguments), stack={"direct": {}}))
    assert len(found) == len(expected)
    assert all(error.startswith(begins) for error, begins in zip(found, expected, strict=True))


def test_an_argument_of_a_newer_release_is_none_of_the_pinned_one(
    make_blueprint: Callable[..., Blueprint],
) -> None:
    [error] = errors(make_blueprint(engine={"vllm": {"args": {"monokernel": True}}}, stack={"direct": {}}))
    assert error.startswith("got 'monokernel', which is not an argument of vllm 0.31.0")


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"kv_events_config": None}, "which this release does not have"),
        (
            {"kv_events_config": flag("--kv-events-config", takes_value=False)},
            "which takes no value in this release",
        ),
        (
            {"enable_prefix_caching": flag("--enable-prefix-caching", takes_value=True)},
            "which takes a value in this release",
        ),
    ],
    ids=["removed", "a switch now", "a value now"],
)
def test_a_release_that_cannot_be_started_as_the_plan_does_is_refused(
    flags: dict[str, Any], problem: str, make_blueprint: Callable[..., Blueprint]
) -> None:
    blueprint = make_blueprint(engine=engine("0.99.0"), stack={"llmD": {"prefixScorer": "precise"}})
    [error] = errors(with_release(blueprint, changed(**flags)))
    name = next(iter(flags)).replace("_", "-")
    assert error.startswith(
        f"got '0.99.0', and the plan starts vllm with '--{name}', {problem}; set '0.33.0'"
    )


def test_the_published_image_has_nothing_for_efa() -> None:
    document = yaml.safe_load((blueprints_directory() / "llm-d-disaggregated.yaml").read_text("utf-8"))
    document["spec"]["models"][0]["engine"] = engine()
    found = errors(Blueprint.model_validate(document))
    assert found
    assert all("has no libfabric, which EFA needs" in error for error in found)
    document["spec"]["models"][0]["engine"]["vllm"]["image"]["name"] = "registry.example/mine:7"
    assert errors(Blueprint.model_validate(document)) == []


def recorded(folder: Path, **fields: Any) -> None:
    """Write a recorded release next to a blueprint."""
    document = json.loads((shipped().directory / f"engines/vllm/{VLLM}.json").read_text("utf-8"))
    (folder / "engines").mkdir()
    path = folder / "engines" / "vllm-0.99.0.json"
    path.write_text(json.dumps({**document, "version": "0.99.0", "tag": "v0.99.0", **fields}))


def loaded(folder: Path) -> LoadedBlueprint:
    document = yaml.safe_load((blueprints_directory() / "quickstart-g6e.yaml").read_text("utf-8"))
    document["spec"]["models"][0] |= {"engine": engine("0.99.0"), "stack": {"direct": {}}}
    (folder / "own.yaml").write_text(yaml.safe_dump(document))
    return load_blueprint(str(folder / "own.yaml"))


def test_a_release_recorded_next_to_the_blueprint_is_used(tmp_path: Path) -> None:
    recorded(tmp_path)
    assert worker(loaded(tmp_path).blueprint).image == "docker.io/vllm/vllm-openai:v0.99.0"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"name": "llamaCpp"}, "name: got 'llamaCpp', allowed are sglang, vllm"),
        ({"flags": {"--port": 7}}, "a flag is not written as the command writes it"),
        ({"colour": "red"}, "unknown fields: colour"),
    ],
    ids=["name", "flag", "field"],
)
def test_a_file_that_cannot_be_used_is_named(fields: dict[str, Any], message: str, tmp_path: Path) -> None:
    recorded(tmp_path, **fields)
    with pytest.raises(BlueprintError) as caught:
        loaded(tmp_path)
    text = str(caught.value)
    assert text.startswith(str(tmp_path / "engines" / "vllm-0.99.0.json"))
    assert message in text
    assert "make the file again with `blueprints engines record`" in text


# Which release has which class.


@pytest.mark.parametrize("name", sorted(catalog.models()))
def test_a_pinned_release_has_the_class_of_each_model(name: str) -> None:
    model = catalog.models()[name]
    able = [
        engine
        for engine, history in catalog.class_histories().items()
        if history.has(model.architecture, catalog.engine(engine).engine_version)
    ]
    assert able, f"{name} needs {model.architecture}"


@pytest.mark.parametrize(("name", "release"), SHIPPED)
def test_the_table_of_classes_agrees_with_the_recorded_release(name: str, release: str) -> None:
    history = catalog.class_histories()[name]
    engine = shipped().engine_releases[name][release]
    assert {each for each in history.classes if history.has(each, engine.engine_version)} == {
        *engine.model_classes
    }


def test_a_class_has_the_releases_from_its_first_to_its_last() -> None:
    history = catalog.class_histories()["vllm"]
    classes = {
        "New": catalog.ClassReleases("0.30.0"),
        "Gone": catalog.ClassReleases("0.19.0", until="0.31.0"),
    }
    history = dataclasses.replace(history, classes=classes)
    asked = ("0.9.0", "0.30.0", "0.31.0", "0.100.0")
    assert [history.has("New", each) for each in asked] == [False, True, True, True]
    assert [history.has("Gone", each) for each in asked] == [False, True, False, False]
    assert not history.has("Other", "0.31.0")


def needing(architecture: str, blueprint: Blueprint) -> list[tuple[str, str]]:
    """Return what is found about a model of another class, with its severity."""
    model = catalog.models()["Qwen/Qwen3-8B"]
    changed = {model.name: dataclasses.replace(model, architecture=architecture)}
    return [
        (each.severity, each.message)
        for each in serving_findings(with_models(blueprint, changed))
        if each.message.startswith("Qwen/Qwen3-8B is a")
    ]


def test_a_class_of_a_newer_release_is_refused_with_what_has_it(
    make_blueprint: Callable[..., Blueprint],
) -> None:
    [(severity, message)] = needing("DomynEdgeForCausalLM", make_blueprint())
    assert severity == "error"
    assert message.startswith(
        "Qwen/Qwen3-8B is a DomynEdgeForCausalLM, which needs vllm 0.33.0 or newer, and Dynamo 1.6.1 has "
        "0.31.0"
    )
    assert (
        "set 'engine: {vllm: {image: {release: 0.33.0}}}' with 'stack: {llmD: {}}' or 'stack: {direct: {}}'"
        in message
    )


def test_the_release_that_has_the_class_serves_it(
    make_blueprint: Callable[..., Blueprint],
) -> None:
    blueprint = make_blueprint(engine=engine(), stack={"direct": {}})
    assert needing("DomynEdgeForCausalLM", blueprint) == []


def test_a_class_of_no_release_is_a_warning(
    make_blueprint: Callable[..., Blueprint],
) -> None:
    [(severity, message)] = needing("AcmeForCausalLM", make_blueprint())
    assert severity == "warning"
    assert "which no vllm up to 0.33.0 registers, and Dynamo 1.6.1 has 0.31.0" in message


def test_the_command_line_of_an_own_image_is_that_of_the_pinned_one(
    make_blueprint: Callable[..., Blueprint],
) -> None:
    stack: dict[str, Any] = {"direct": {}}
    own, pinned = worker(make_blueprint(engine=engine(), stack=stack)), worker(make_blueprint(stack=stack))
    assert flag_values(own.arguments) == flag_values(pinned.arguments)


def test_the_table_of_classes_agrees_with_those_of_the_pinned_releases() -> None:
    registered = shipped().registered_classes
    for engine, release in registered.releases.items():
        history = catalog.class_histories()[engine]
        classes = [each for each in registered.classes.values() if engine in each.engines]
        assert [each.name for each in classes if not history.has(each.name, release)] == []


@pytest.mark.parametrize(("name", "release"), SHIPPED)
def test_the_page_names_the_image_of_each_recorded_release(name: str, release: str) -> None:
    page = (root() / "docs" / "engines.md").read_text("utf-8")
    address = shipped().engine_releases[name][release].address.removeprefix("docker.io/")
    assert f"| {release} | `{address}` |" in page
