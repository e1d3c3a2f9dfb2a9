"""Warnings, and the table of rules itself."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints.loading import parse_blueprint
from inference_blueprints.serving.checks.serving_checks import SPEC_CHECKS
from inference_blueprints.serving.engines import ENGINES
from inference_blueprints.spec import sections
from inference_blueprints.spec.rule import Rule
from inference_blueprints.spec.rule_table import all_rules, rule_findings
from inference_blueprints.spec.sections.batch.rules import buckets_are_general_purpose
from inference_blueprints.spec.sections.models.weights import entry_is_of_the_same_model
from inference_blueprints.spec.structure import keys
from inference_blueprints.spec.types import Engine, Spec
from inference_contracts.errors import BlueprintError, Finding

HERE = Path(__file__).parent
BASE = (HERE / "base.yaml").read_text(encoding="utf-8")
DOUBTFUL = yaml.safe_load((HERE / "doubtful.yaml").read_text(encoding="utf-8"))


def edited(case: dict[str, Any]) -> str:
    """Return the base with a case's edits."""
    text = BASE
    for edit in case["edits"]:
        assert edit["replace"] in text, "the edit has to find its place"
        text = text.replace(edit["replace"], edit["by"], 1)
    return text


@pytest.mark.parametrize("case", DOUBTFUL, ids=[case["case"] for case in DOUBTFUL])
def test_warnings_come_with_the_blueprint(case: dict[str, Any]) -> None:
    loaded = parse_blueprint(edited(case), "base.yaml")
    expected = [f"base.yaml:{line}" for line in case["warnings"].splitlines()]
    assert [str(warning) for warning in loaded.warnings] == expected
    assert {warning.severity for warning in loaded.warnings} == {"warning"}


def test_warnings_do_not_join_errors() -> None:
    text = BASE.replace("{max: 3}", "{max: 2}").replace("pool: quad", "pool: qad")
    with pytest.raises(BlueprintError) as caught:
        parse_blueprint(text, "base.yaml")
    assert [problem.severity for problem in caught.value.problems] == ["error"]


def written_rules() -> Iterator[Rule]:
    """Yield the public functions of the sections that turn a `Spec` into findings."""
    for module in pkgutil.walk_packages(sections.__path__, f"{sections.__name__}."):
        for _, function in inspect.getmembers(import_module(module.name), inspect.isgeneratorfunction):
            signature = inspect.signature(function)
            kinds = [each.annotation for each in signature.parameters.values()]
            is_rule = (kinds, signature.return_annotation) == (["Spec"], "Iterator[Finding]")
            if is_rule and function.__module__ == module.name and not function.__name__.startswith("_"):
                yield function


def test_every_rule_is_declared_once() -> None:
    """A rule that is written without its decorator would check nothing."""
    assert sorted(map(id, written_rules())) == sorted(map(id, all_rules()))


def test_every_rule_has_a_case_that_breaks_it(monkeypatch: pytest.MonkeyPatch) -> None:
    fired: set[Rule] = set()

    def record(rule: Rule) -> Rule:
        def check(spec: Spec) -> Iterator[Finding]:
            for finding in rule(spec):
                fired.add(rule)
                yield finding

        return check

    recorded = tuple(record(rule) for rule in all_rules())
    monkeypatch.setattr("inference_blueprints.spec.rule_table.all_rules", lambda **_: recorded)
    checks = "inference_blueprints.serving.checks.serving_checks.SPEC_CHECKS"
    monkeypatch.setattr(checks, tuple(record(check) for check in SPEC_CHECKS))
    broken = [*HERE.glob("broken/rules_*.yaml")]
    cases = [
        *DOUBTFUL,
        *(case for file in broken for case in yaml.safe_load(file.read_text(encoding="utf-8"))),
    ]
    for case in cases:
        try:
            parse_blueprint(edited(case), "base.yaml")
        except BlueprintError:
            continue
    assert fired == {*all_rules(), *SPEC_CHECKS}


def test_rules_of_a_whole_blueprint() -> None:
    blueprint = parse_blueprint(BASE, "base.yaml").blueprint
    assert rule_findings(blueprint) == []
    spec = blueprint.spec.model_copy(update={"pools": blueprint.spec.pools[:1]})
    [finding] = rule_findings(blueprint.model_copy(update={"spec": spec}))
    assert finding.path == ("spec", "models", 1, "deployments", 0, "aggregated", "pool")


def test_every_engine_says_whose_accelerators_it_needs() -> None:
    assert set(keys(Engine)) == set(ENGINES)
    known = {each.accelerator.manufacturer for each in catalog.instance_types().values() if each.accelerator}
    assert {engine.manufacturer for engine in ENGINES.values()} <= known


@pytest.mark.parametrize("key", ["dt=2026-11-28/hour=07/", "logs/2026-11-28T07:00:00+00:00/", "a@b,c/"])
def test_a_folder_as_teams_write_it_is_a_prefix(key: str) -> None:
    """Red if the folders of Hive, Athena or a log shipper are called no prefix."""
    team = f"{{name: ads, principals: [arn:aws:iam::111122223333:role/Ads], dataPrefixes: ['s3://acme/{key}']"
    text = BASE.replace("  models:\n", f"  teams:\n  - {team}, monthlyBudgetUsd: 10}}\n  models:\n", 1)
    [found] = parse_blueprint(text, "base.yaml").blueprint.spec.teams
    assert found.data_prefixes == [f"s3://acme/{key}"]


@pytest.mark.parametrize(
    ("bucket", "words"),
    [
        ("acme--usw2-az1--x-s3", "s3express:CreateSession allows on the whole bucket"),
        ("acme-data-123456789012-s3alias", "the alias of an access point"),
        ("acme--ol-s3", "an Object Lambda access point"),
        ("m1a2b3c4d5e6f.mrap", "a Multi-Region Access Point"),
        ("acme--table-s3", "a bucket of S3 Tables"),
        ("acme--x-s3-data", None),
        ("acme-s3", None),
    ],
)
def test_only_general_purpose_buckets_are_read(bucket: str, words: str | None) -> None:
    """Red if weights or data in a directory bucket pass, where each read is denied."""
    team = (
        "{name: ads, principals: [arn:aws:iam::111122223333:role/Ads], monthlyBudgetUsd: 10, dataPrefixes: "
    )
    text = BASE.replace("  models:\n", f"  teams:\n  - {team}[s3://{bucket}/a/]}}\n  models:\n", 1)
    weights = f"{{s3: s3://{bucket}/llama/, catalog: Qwen/Qwen3-8B"
    text = text.replace("{huggingFace: Qwen/Qwen3-8B, revision: v1", weights, 1)
    found = [*buckets_are_general_purpose(Spec.model_validate(yaml.safe_load(text)["spec"]))]
    assert [each.path[-1] for each in found] == (["s3", 0] if words else [])
    assert all(words in each.message for each in found if words)


@pytest.mark.parametrize(
    ("repository", "entry", "words"),
    [
        ("Qwen/Qwen3.5-4B", "Qwen/Qwen3-4B", "states the generation 3.5, not 3"),
        ("google/gemma-4-12b-it", "google/gemma-3-12b-it", "states the generation 4, not 3"),
        ("google/gemma-3n-E4B-it", "google/gemma-3-12b-it", "states the generation 3n, not 3"),
        ("deepseek-ai/DeepSeek-V5-Flash", "deepseek-ai/DeepSeek-V3", "states the generation v5, not v3"),
        ("acme/Qwen3-14B-AWQ", "Qwen/Qwen3-4B", "states the size 14b, not 4b"),
        ("acme/qwen3-4b-support", "Qwen/Qwen3-4B", None),
        ("RedHatAI/Meta-Llama-3.1-8B-Instruct-FP8", "meta-llama/Llama-3.1-8B-Instruct", None),
        ("acme/own-model-7b", "Qwen/Qwen3-4B", "states the size 7b, not 4b"),
        ("acme/DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1", None),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-32B", "deepseek-ai/DeepSeek-R1", "states 'distill', and that"),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "meta-llama/Llama-3.3-70B-Instruct", None),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "meta-llama/Llama-3.1-8B-Instruct", "size 70b, not 8b"),
        ("deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "deepseek-ai/DeepSeek-R1", "the size 8b, not 671.03b"),
        ("acme/Qwen3-235B-Distill-Qwen3-8B", "Qwen/Qwen3-8B", None),
        ("acme/DeepSeek-R1-671B-AWQ", "deepseek-ai/DeepSeek-R1", None),
        ("cerebras/MiniMax-M2.5-REAP-172B-A10B", "MiniMaxAI/MiniMax-M2.5", "states 'reap'"),
        ("moonshotai/Kimi-VL-A3B-Instruct", "moonshotai/Kimi-K2-Instruct", "states 'vl'"),
        ("acme/Kimi-K2-A3B", "moonshotai/Kimi-K2-Instruct", "3b active parameters, not 32.9b"),
        ("zai-org/GLM-5-Air", "zai-org/GLM-5-FP8", "states 'air'"),
        ("Qwen/Qwen3-VL-8B-Thinking", "Qwen/Qwen3-8B", "states 'vl'"),
        ("Qwen/Qwen3-VL-8B-Thinking", "Qwen/Qwen3-VL-8B-Instruct", None),
        ("Qwen/Qwen3-30B-A3B-Thinking-2507", "Qwen/Qwen3-30B-A3B", None),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1_5", "meta-llama/Llama-3.3-70B-Instruct", "49b, not 70b"),
        ("acme/ads-ranker-0.6b", "Qwen/Qwen3-0.6B", None),
        ("acme/ads-ranker-600m", "Qwen/Qwen3-0.6B", None),
        ("acme/DeepSeek-V3-Lite", "deepseek-ai/DeepSeek-V3", "states 'lite'"),
    ],
)
def test_an_entry_of_another_generation_is_a_doubt(repository: str, entry: str, words: str | None) -> None:
    """Red if a model whose layers differ is sized as its predecessor, and nobody says so."""
    text = BASE.replace("{huggingFace: Qwen/Qwen3-8B", f"{{huggingFace: {repository}, catalog: {entry}", 1)
    model = Spec.model_validate(yaml.safe_load(text)["spec"])
    found = [each.message for each in entry_is_of_the_same_model(model)]
    assert len(found) == bool(words)
    assert all(words in each for each in found if words)
