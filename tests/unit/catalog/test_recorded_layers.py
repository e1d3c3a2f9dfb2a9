"""What is counted is what vLLM's own classes allocate: weights within 1 %, what each layer caches exactly.

`scripts/record_model_layers.py` wrote vLLM's answers: for the catalogue, for a configuration of each further
class, and for ten configurations that were held out when the rules were written.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from inference_catalog.catalogue import shipped
from inference_catalog.configurations.describe import describe
from tests.unit.catalog.recorded_layers import case_name, cases, configurations, counted, published_weights

CASES = cases()
PLAIN = [(group, case) for group, case in CASES if case["kv"] == "auto"]
ON_ONE_DEVICE = [(group, case) for group, case in PLAIN if case["tp"] == 1]
#: Kernels pad experts in MXFP4, so devices hold more than the published weights.
UNPADDED = [
    (group, case) for group, case in ON_ONE_DEVICE if counted(group, case["name"]).weight_type != "mxfp4"
]
_BYTES = {"bfloat16": 2, "float16": 2, "float32": 4}


def test_every_configuration_has_an_answer_of_vllm() -> None:
    answered = Counter(group for group, case in ON_ONE_DEVICE if "9.0" in case["sm"])
    assert answered["classes"] == len(configurations("classes"))
    assert answered["heldOut"] == len(configurations("heldOut")) == 10
    assert answered["catalogue"] > 20


def test_every_class_with_a_configuration_is_counted() -> None:
    assert configurations("classes").keys() <= shipped().architectures.keys()


@pytest.mark.parametrize(("group", "case"), UNPADDED, ids=case_name)
def test_weights_are_those_that_vllm_allocates(group: str, case: dict[str, Any]) -> None:
    assert counted(group, case["name"]).weight_bytes == pytest.approx(published_weights(case), rel=0.01)


@pytest.mark.parametrize(("group", "case"), PLAIN, ids=case_name)
def test_layers_cache_what_vllm_allocates_for_them(group: str, case: dict[str, Any]) -> None:
    found: Counter[int] = Counter()
    for layers in counted(group, case["name"]).cached_layers:
        if layers.kind == "none":
            continue
        is_state = layers.kind == "state"
        held = layers.state_bytes(case["tp"]) if is_state else int(layers.entry_bytes(2, case["tp"]))
        found[held] += layers.count
    expected: Counter[int] = Counter()
    for spec in case["layers"]:
        expected[_held(spec)] += spec["count"]
    assert found == expected


def _held(spec: dict[str, Any]) -> int:
    """Return the bytes of a state, or of a token. Pages of states are padded."""
    if "shapes" not in spec:
        return int(spec["page"] // spec["block"])
    sizes = (_BYTES[dtype] for dtype in spec["dtypes"])
    return sum(math.prod(shape) * size for shape, size in zip(spec["shapes"], sizes, strict=True))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ({"model_type": "mistral"}, "window"),
        ({"model_type": "ministral3"}, "full"),
        ({"model_type": None}, "window"),
        ({"sliding_window": None}, "full"),
    ],
    ids=str,
)
def test_a_field_that_is_left_out_has_the_default_of_its_type(text: dict[str, Any], kind: str) -> None:
    """``MistralConfig`` of transformers 5.17.0 has a window of 4,096, ``Ministral3Config`` has none."""
    configuration = configurations("classes")["Mistral3ForConditionalGeneration"]["configuration"]
    changed = configuration | {"text_config": configuration["text_config"] | text}
    [layers] = describe(changed)["cached_layers"]
    assert (layers["kind"], layers.get("window", 0)) == (kind, 4096 if kind == "window" else 0)
