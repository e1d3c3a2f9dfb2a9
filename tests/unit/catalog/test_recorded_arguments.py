"""Arguments of vLLM that divide experts, or that change states, are counted as its own classes take them.

`scripts/record_model_layers.py` wrote vLLM's answers for some models of the catalogue, and for one of each
class with experts.
"""

from __future__ import annotations

from typing import Any

import pytest

from inference_catalog.cache_rules import CacheUse, request_bytes
from inference_catalog.weight_rules import expert_padding, holds_shared_experts_whole
from tests.unit.catalog.recorded_layers import case_name, cases, counted

#: vLLM schedules a step while another runs.
_STEPS_AT_A_TIME = 2


def use_of(case: dict[str, Any]) -> CacheUse:
    arguments = case["arguments"]
    return CacheUse(
        rule="vllm",
        tensor_parallel_size=case["tp"],
        capability=case["sm"][0],
        block=arguments.get("block_size", 0),
        in_flight_tokens=_STEPS_AT_A_TIME * case["batched"],
        prefix_caching=case["state_mode"] != "none",
        state_type=arguments.get("mamba_cache_dtype", "auto"),
        recurrent_type=arguments.get("mamba_ssm_cache_dtype", "auto"),
        whole_experts=arguments.get("enable_expert_parallel", False),
    )


@pytest.mark.parametrize(("group", "case"), cases(("experts", "ranks")), ids=case_name)
def test_devices_hold_the_experts_that_vllm_gives_them(group: str, case: dict[str, Any]) -> None:
    model, use = counted(group, case["name"]), use_of(case)
    ranks = case["arguments"].get("data_parallel_size", 1)
    held = model.rank_weight_bytes(
        case["tp"],
        ranks,
        expert_padding(model, use),
        whole_experts=use.whole_experts,
        whole_shared_experts=holds_shared_experts_whole(use, ranks),
    )
    assert held == pytest.approx(case["weights"], rel=0.01)


@pytest.mark.parametrize(("group", "case"), cases(("states",)), ids=case_name)
def test_states_have_the_types_that_vllm_is_told(group: str, case: dict[str, Any]) -> None:
    model, use = counted(group, case["name"]), use_of(case)
    found = {tokens: request_bytes(model, use, int(tokens)) for tokens in case["requests"]}
    assert found == pytest.approx(case["requests"], rel=0.01)
