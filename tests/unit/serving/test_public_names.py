"""A second name of a model in requests: what each engine is told, and what the plan and the picture show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.report.picture.picture import picture
from inference_blueprints.report.plan.plan_tables import plan_tables
from inference_blueprints.report.plan.short_plan import short_lines
from inference_blueprints.report.plan.summary import as_dict, summarise
from inference_blueprints.serving.command_line import arguments_by_name, model_names
from inference_blueprints.serving.plan import build_plan
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import BlueprintError

PUBLIC = "Qwen/Qwen3.5-27B"
#: Of each shipped blueprint: its engine and stack, with what it needs beside them.
BASES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "vllm": ("quickstart-g6e", {}),
    "sglang": ("quickstart-g6e", {"engine": {"sglang": {}}}),
    "vllm alone": ("quickstart-g6e", {"stack": {"direct": {}}}),
    "llm-d": ("quickstart-g6e", {"stack": {"llmD": {}}}),
    "neuron": ("trn2", {}),
    "llama.cpp": ("graviton-llama-cpp", {}),
}


def named(base: str, changes: Mapping[str, Any], public: str | None = PUBLIC) -> Blueprint:
    path = resources.blueprints_directory() / f"{base}.yaml"
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    document["spec"]["models"][0] |= {**changes, **({"publicName": public} if public else {})}
    return parse_blueprint(yaml.safe_dump(document), "named.yaml").blueprint


def values(blueprint: Blueprint) -> tuple[str, ...]:
    """Return the values of the argument with the names of the model."""
    [worker] = build_plan(blueprint).models[0].deployments[0].workers
    stated = dict(arguments_by_name(worker.arguments))
    return stated.get("served-model-name", ()) or stated["alias"]


@pytest.mark.parametrize(("base", "changes"), BASES.values(), ids=BASES)
def test_every_engine_is_told_both_names(base: str, changes: Mapping[str, Any]) -> None:
    """vLLM takes several values. Dynamo's worker of SGLang and llama.cpp split one at its commas."""
    blueprint = named(base, changes)
    own = blueprint.spec.models[0].name
    joined = changes.get("engine") or base == "graviton-llama-cpp"
    assert values(blueprint) == ((f"{own},{PUBLIC}",) if joined else (own, PUBLIC))
    assert values(named(base, changes, public=None)) == (own,)


@pytest.mark.parametrize(("base", "changes"), BASES.values(), ids=BASES)
def test_a_second_name_changes_no_other_argument(base: str, changes: Mapping[str, Any]) -> None:
    def others(public: str | None) -> list[str]:
        [worker] = build_plan(named(base, changes, public)).models[0].deployments[0].workers
        own = named(base, changes, public).spec.models[0].name
        return [word for word in worker.arguments if word not in (own, PUBLIC, f"{own},{PUBLIC}")]

    assert others(PUBLIC) == others(None)


def test_names_are_read_from_a_command_line() -> None:
    assert model_names(("serve", "--served-model-name", "a", "b/c", "--port", "1")) == ("a", "b/c")
    assert model_names(("--port", "1", "--alias", "a,b/c")) == ("a", "b/c")


def test_images_have_one_name() -> None:
    with pytest.raises(BlueprintError, match="vLLM-Omni refuses requests for images with a second name"):
        named("image-generation", {})


def test_plan_and_picture_show_both_names() -> None:
    blueprint = named("quickstart-g6e", {})
    plan = build_plan(blueprint)
    summary = summarise(blueprint, plan)
    [table] = [each for each in plan_tables(summary) if each.title == "Names in requests"]
    assert table.rows == (("qwen3-8b", PUBLIC),)
    shown = as_dict(summary)["publicNames"]
    assert shown == [{"model": "qwen3-8b", "publicName": PUBLIC}]
    assert PUBLIC in dict(short_lines(summary, "named.yaml"))["models"]
    assert f"also {PUBLIC}" in picture(blueprint, plan)


def test_a_plan_without_second_names_says_nothing_of_them() -> None:
    blueprint = named("quickstart-g6e", {}, public=None)
    summary = summarise(blueprint, build_plan(blueprint))
    assert all(each.title != "Names in requests" for each in plan_tables(summary))
    assert "also" not in picture(blueprint, build_plan(blueprint))
