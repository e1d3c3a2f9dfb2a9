"""Rules and triggers ask for metrics that Dynamo and vLLM reported, and none of them is dropped."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from inference_catalog.catalogue import shipped
from tests.local.monitoring.asked import SIGNALS, reported_names, rule_expressions, trigger_expressions

#: Recorded of ai-dynamo 1.6.1 and vLLM 0.31.0, see `serving_metrics.json`.
_RECORDED = Path(__file__).parents[2] / "catalog/recorded"
_STACKS: tuple[dict[str, Any], ...] = ({"dynamo": {}}, {"llmD": {}}, {"direct": {}})


def _asked() -> set[str]:
    return reported_names(
        expression
        for stack in _STACKS
        for expression in (
            *rule_expressions(stack).values(),
            *(query for signal in SIGNALS for query in trigger_expressions(signal, stack)),
        )
    )


def test_dynamo_and_vllm_report_every_metric_that_is_asked_for() -> None:
    recorded = {
        name
        for file in _RECORDED.glob("*.prom")
        for name in re.findall(r"^([\w:]+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert _asked() - recorded == set()


def test_no_metric_that_is_asked_for_is_dropped() -> None:
    dropped = re.compile(shipped().serving_metrics.dropped_names)
    assert {name for name in _asked() if dropped.fullmatch(name)} == set()
