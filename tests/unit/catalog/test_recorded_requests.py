"""Requests take of a device what vLLM admits them with, and devices hold the weights that it allocates.

The same recorded answers as in `test_recorded_layers.py`, here for each number of devices and each type of
the cache, at up to six lengths.
"""

from __future__ import annotations

from typing import Any

import pytest

from inference_catalog.cache_rules import CacheUse, request_bytes
from inference_catalog.weight_rules import expert_padding
from tests.unit.catalog.recorded_layers import case_name, cases, counted, published_weights

CASES = cases()
#: vLLM schedules a step while another runs.
_STEPS_AT_A_TIME = 2


def use_of(case: dict[str, Any], capability: str) -> CacheUse:
    return CacheUse(
        rule="vllm",
        tensor_parallel_size=case["tp"],
        kv_type=case["given_kv"],
        capability=capability,
        in_flight_tokens=_STEPS_AT_A_TIME * case["batched"],
    )


@pytest.mark.parametrize(("group", "case"), CASES, ids=case_name)
def test_requests_take_what_vllm_admits_them_with(group: str, case: dict[str, Any]) -> None:
    model = counted(group, case["name"])
    for capability in case["sm"]:
        use = use_of(case, capability)
        found = {tokens: request_bytes(model, use, int(tokens)) for tokens in case["requests"]}
        assert found == pytest.approx(case["requests"], rel=0.01)


@pytest.mark.parametrize(("group", "case"), CASES, ids=case_name)
def test_devices_hold_the_weights_that_vllm_allocates(group: str, case: dict[str, Any]) -> None:
    model = counted(group, case["name"])
    held = model.rank_weight_bytes(case["tp"], 1, expert_padding(model, use_of(case, case["sm"][0])))
    assert held == pytest.approx(published_weights(case), rel=0.01)
