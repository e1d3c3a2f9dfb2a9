"""Which features a blueprint uses."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

import inference_catalog as catalog
from inference_blueprints.resources import blueprints_directory
from inference_blueprints.spec.types import Blueprint, Spec
from inference_blueprints.spec.used_features import support_of
from inference_catalog import Feature, Proof
from inference_catalog.support_levels import OWN_ENTRY


def spec_of(**changes: Any) -> Spec:
    text = (blueprints_directory() / "quickstart-g6e.yaml").read_text(encoding="utf-8")
    document = yaml.safe_load(text)
    document["spec"] |= changes
    return Blueprint.model_validate(document).spec


def names(spec: Spec, *features: Feature) -> list[str]:
    return [each.name for each in support_of(spec, features).features]


def test_what_a_file_chooses_is_experimental_without_an_entry() -> None:
    """A new alternative or section that silently counts as nothing turns this red."""
    pool = {"name": "l40s", "instanceTypes": ["g6e.2xlarge"], "nodes": {"max": 2}, "purchase": {"spot": {}}}
    spec = spec_of(pools=[pool], queueing={"kueue": {}}, gpuHealth={})
    assert names(spec) == ["cluster.eks", "gpuHealth", "pools.purchase.spot", "queueing", "queueing.kueue"]
    assert support_of(spec, ()).level == "experimental"


def test_an_entry_stands_for_its_key_and_what_is_below_it() -> None:
    queueing = Feature(name="Kueue", keys=("queueing",))
    cluster = Feature(name="EKS", keys=("cluster.eks",), proofs=(Proof(how="emulated", shows="", tests=()),))
    other = Feature(name="ECS", keys=("cluster.ecs",))
    support = support_of(spec_of(queueing={"kueue": {}}), (cluster, queueing, other))
    assert [each.name for each in support.features] == ["EKS", "Kueue"]


def test_values_and_accelerators_decide() -> None:
    """EFA that counts although it is off, or a Neuron device that counts as a GPU, turns this red."""
    efa = Feature(name="EFA", keys=("pools.efa=true",))
    gpu = Feature(name="GPU", keys=("pools.instanceTypes=nvidia.com/gpu",))
    neuron = Feature(name="Neuron", keys=("pools.instanceTypes=aws.amazon.com/neuron",))
    eks = Feature(name="EKS", keys=("cluster.eks",))
    assert names(spec_of(), eks, efa, gpu, neuron) == ["EKS", "GPU"]
    pool = {"name": "l40s", "instanceTypes": ["trn2.48xlarge"], "nodes": {"max": 2}, "efa": True}
    assert names(spec_of(pools=[pool]), eks, efa, gpu, neuron) == ["EKS", "EFA", "Neuron"]


@pytest.mark.parametrize(
    ("changes", "feature"),
    [
        ({"chat": {"thinking": False}}, "thinking by default and chat templates"),
        ({"publicName": "Qwen/Qwen3-8B"}, "public names of models"),
        ({"engine": {"vllm": {"image": {"release": "1.6.0"}}}}, "another release or image of an engine"),
        ({"engine": {"sglang": {"image": {"release": "1.6.0"}}}}, "another release or image of an engine"),
        ({"task": "embed"}, "embeddings"),
        ({"task": "rerank"}, "reranking"),
    ],
)
def test_what_a_model_adds_has_an_entry(changes: dict[str, Any], feature: str) -> None:
    """A choice that no level counts turns this red."""
    [model] = spec_of().model_dump(by_alias=True, exclude_none=True)["models"]
    added = {each.name for each in support_of(spec_of(models=[{**model, **changes}])).features}
    assert feature in added - {each.name for each in support_of(spec_of()).features}


def test_an_entry_beside_the_blueprint_is_a_feature() -> None:
    spec = spec_of()
    [model] = spec.models
    weights = model.weights.with_entries({"Qwen/Qwen3-8B": catalog.models()["Qwen/Qwen3-8B"]})
    own = spec.model_copy(update={"models": [model.model_copy(update={"weights": weights})]})
    entry = Feature(name="own", keys=(f"models.weights={OWN_ENTRY}",))
    assert [names(each, entry)[:1] for each in (spec, own)] == [["cluster.eks"], ["own"]]
