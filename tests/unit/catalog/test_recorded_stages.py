"""Pipeline stages and drafts take what vLLM's own classes take: weights and requests within 1 %.

The reference are vLLM 0.31.0's own functions, of which `scripts/record_model_layers.py` wrote the answers:
each stage's class is built as the first device of that stage, ``get_kv_cache_configs`` divides the layers of
all stages into groups, and ``load_eagle_model`` joins a draft with its model.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

import inference_catalog as catalog
from inference_catalog.cache_rules import CacheRule, CacheUse, pool_block_bytes, request_bytes, token_bytes
from inference_catalog.catalogue import model_entry, shipped
from inference_catalog.configurations.describe import describe
from inference_catalog.pipeline_stages import stages_of
from inference_catalog.weight_rules import expert_padding
from tests.unit.catalog.recorded_layers import FACTS, configurations, counted, recorded

STAGED = [case for case in recorded("stages") if "error" not in case]
DRAFTED = [case for case in recorded("drafts") if "error" not in case]
RULES: tuple[CacheRule, ...] = ("vllm", "sglang", "every token")


def named(value: object) -> str:
    match value:
        case {"name": name, "tp": size, "pp": stages}:
            return f"{name}, TP {size}, PP {stages}"
        case {"name": name, "tp": size, "draft": draft}:
            return f"{name}, TP {size}, {draft}"
        case _:
            return str(value)


def model_of(case: dict[str, Any]) -> catalog.Model:
    name = case["name"]
    return counted("catalogue" if name in catalog.models() else "heldOut", name)


def use_of(case: dict[str, Any], guessed: int = 0) -> CacheUse:
    # vLLM schedules a step for each stage, and one more.
    steps = case.get("pp", 1) + 1
    return CacheUse(
        rule="vllm",
        tensor_parallel_size=case["tp"],
        kv_type=case["given_kv"],
        capability=case["sm"][0],
        in_flight_tokens=steps * case["batched"],
        guessed_tokens=guessed,
    )


def held(model: catalog.Model, use: CacheUse) -> float:
    return model.rank_weight_bytes(use.tensor_parallel_size, 1, expert_padding(model, use))


def requests(model: catalog.Model, use: CacheUse, like: dict[str, int]) -> dict[str, int]:
    return {tokens: request_bytes(model, use, int(tokens)) for tokens in like}


@pytest.mark.parametrize("case", STAGED, ids=named)
def test_stages_hold_the_weights_that_vllm_allocates(case: dict[str, Any]) -> None:
    use = use_of(case)
    found = [held(stage, use) for stage in stages_of(model_of(case), case["pp"], "vllm")]
    assert found == pytest.approx([stage["weights"] for stage in case["stages"]], rel=0.01)


@pytest.mark.parametrize("case", STAGED, ids=named)
def test_requests_take_of_each_stage_what_vllm_admits_them_with(case: dict[str, Any]) -> None:
    use = use_of(case)
    for stage, own in zip(stages_of(model_of(case), case["pp"], "vllm"), case["stages"], strict=True):
        assert requests(stage, use, own["requests"]) == pytest.approx(own["requests"], rel=0.01)
        assert pool_block_bytes(stage, use) == pytest.approx(own["pool_block"], rel=0.01)


def test_classes_with_each_kind_of_tables_were_divided() -> None:
    divided = {model_of(case).architecture for case in STAGED}
    kinds = {shipped().architectures[name].in_each_stage for name in divided}
    assert kinds == {"ends", "embedding", "tables"}
    assert len(divided) > 15


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_stages_together_are_the_model_and_none_is_below_its_share(rule: CacheRule, count: int) -> None:
    for model in catalog.models().values():
        stages = stages_of(model, count, rule)
        embedding = 0 if model.output_bytes else 2 * model.vocabulary_size * model.hidden_size
        assert sum(each.layers for each in stages) == model.layers
        together = sum(each.weight_bytes for each in stages) - model.weight_bytes
        assert together >= 0 if rule == "vllm" else together == embedding
        experts = sum(each.expert_weight_bytes for each in stages)
        assert experts == pytest.approx(model.expert_weight_bytes, rel=1e-6)
        for use in (CacheUse(), CacheUse(tensor_parallel_size=8)):
            tokens = [token_bytes(each, use) for each in stages]
            assert sum(tokens) == pytest.approx(token_bytes(model, use))
            assert max(tokens) >= token_bytes(model, use) / count
            assert max(held(each, use) for each in stages) >= held(model, use) / count


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("vllm", {2: [31, 30], 3: [20, 21, 20], 4: [15, 15, 16, 15]}),
        ("sglang", {2: [30, 31], 3: [20, 20, 21], 4: [15, 15, 15, 16]}),
        ("every token", {2: [31, 30], 3: [21, 20, 20], 4: [16, 15, 15, 15]}),
    ],
)
def test_engines_put_remaining_layers_on_different_stages(
    rule: CacheRule, expected: dict[int, list[int]]
) -> None:
    model = catalog.model("deepseek-ai/DeepSeek-R1")
    assert model.layers == 61
    found = {count: [each.layers for each in stages_of(model, count, rule)] for count in expected}
    assert found == expected


def test_layers_without_an_order_are_spread_evenly() -> None:
    """Given layers have no order. Of Gemma's layers, each sixth has no window."""
    model = catalog.model("google/gemma-3-27b-it")
    unordered = model_entry(model.name, _unordered(model), Path("model.json"))
    known, spread = (stages_of(each, 4, "vllm") for each in (model, unordered))
    assert [each.layers for each in spread] == [each.layers for each in known]
    for one, two in zip(known, spread, strict=True):
        assert two.weight_bytes == pytest.approx(one.weight_bytes, rel=0.02)
        assert token_bytes(two, CacheUse()) == pytest.approx(token_bytes(one, CacheUse()), rel=0.1)


def _unordered(model: catalog.Model) -> dict[str, Any]:
    path = Path(catalog.__file__).with_name("data") / "models.json"
    entry = json.loads(path.read_text(encoding="utf-8"))["models"][model.name]
    return {name: value for name, value in entry.items() if name not in ("layer_types", "layer_order")}


def guessing(case: dict[str, Any]) -> catalog.Model:
    model = model_of(case)
    if case["draft"] == "mtp":
        return model.with_predictions()
    described = describe(configurations("drafts")[case["draft"]]["configuration"])
    draft = model_entry(case["draft"], described | FACTS, Path("draft.json"))
    return model.with_draft(draft, cached_alike=False)


def guessed(case: dict[str, Any]) -> int:
    """Return the guessed tokens as the plan counts them: states alone depend on them."""
    has_states = any(each.kind == "state" for each in model_of(case).cached_layers)
    return int(case["guessed"]) if has_states else 0


@pytest.mark.parametrize("case", DRAFTED, ids=named)
def test_a_draft_adds_the_weights_that_vllm_allocates(case: dict[str, Any]) -> None:
    """Layers for multi-token prediction share both tables; a draft is counted with its own."""
    use, model = use_of(case), guessing(case)
    own = case["draft_weights_if_shared"] if case["draft"] == "mtp" else case["draft_weights"]
    assert held(model, use) == pytest.approx(case["weights"] + own, rel=0.01)
    if case["draft"] != "mtp":
        assert held(model, use) - held(model_of(case), use) == pytest.approx(own, rel=0.01)


@pytest.mark.parametrize("case", DRAFTED, ids=named)
def test_requests_with_a_draft_take_what_vllm_admits_them_with(case: dict[str, Any]) -> None:
    use, model = use_of(case, guessed(case)), guessing(case)
    assert requests(model, use, case["requests"]) == pytest.approx(case["requests"], rel=0.01)
    assert math.isclose(pool_block_bytes(model, use), case["pool_block"], rel_tol=0.01)


def test_every_draft_with_a_configuration_was_recorded() -> None:
    assert {case["draft"] for case in DRAFTED} == {"mtp", *configurations("drafts")}


def test_sglang_holds_the_embedding_of_gemma_whole_and_divides_its_encoder_in_the_first_stage_alone() -> None:
    """As ``is_first_rank`` in ``models/gemma4_causal.py`` and ``gemma4_mm.py`` of SGLang 0.5.21 decides."""
    model = catalog.model("google/gemma-4-31B-it")
    assert model.vision
    as_vllm, as_sglang = (stages_of(model, 2, rule) for rule in ("every token", "sglang"))
    embedding = 2 * model.vocabulary_size * model.hidden_size
    more = [
        sglang.rank_weight_bytes(8) - vllm.rank_weight_bytes(8)
        for sglang, vllm in zip(as_sglang, as_vllm, strict=True)
    ]
    assert more == [pytest.approx((embedding - model.vision.weight_bytes) * 7 / 8, rel=0.001), 0]
