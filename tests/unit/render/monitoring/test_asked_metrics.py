"""Rules and triggers ask for metrics that Dynamo and vLLM reported, and none of them is dropped."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

from inference_blueprints.render.monitoring.hardware_alarms import hardware_alarms
from inference_blueprints.resources import root
from inference_catalog.catalogue import shipped
from inference_contracts.metric_labels import GPU_SERIES
from tests.local.monitoring.asked import (
    SIGNALS,
    alarm_queries,
    panel_queries,
    quickstart,
    reported_names,
    rule_expressions,
    trigger_expressions,
)

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


_DCGM = re.compile(r"\bDCGM_FI_\w+")
#: How the names of series begin that frontends, engines and routers report.
_RAW = re.compile(
    r"\b(?:dynamo_|llm_d_router_|inference_extension_|trtllm_)\w+|\b(?:vllm|sglang|llamacpp|vllm_omni):\w+"
)


def _asked_of_cloudwatch() -> dict[str, str]:
    """Return every query of CloudWatch: of alarms, dashboards, controllers and commands, and of runbooks."""
    platform = quickstart()
    texts = {**alarm_queries(platform), **panel_queries("quickstart")}
    texts |= {alarm.kind: alarm.query("quickstart") for alarm in hardware_alarms(platform.spec.pools)}
    for place in ("runtime/gpu_health", "runtime/capacity_shift", "inference_blueprints/operate"):
        texts |= {str(path): _queries_in(path) for path in (root() / place).rglob("*.py")}
    runbooks = (root() / "docs" / "runbooks").glob("*.md")
    return texts | {str(path): path.read_text("utf-8") for path in runbooks}


def _queries_in(path: Path) -> str:
    """Return the texts of a module with braces, in which a query of a metric selects its labels."""
    texts = [
        each.value for each in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(each, ast.Constant)
    ]
    return "\n".join(text for text in texts if isinstance(text, str) and "{" in text)


def test_agents_send_the_series_of_gpus_that_something_asks_for_and_no_others() -> None:
    """Red if a query asks for a field that agents do not send, or if they send, and AWS bills, more."""
    asked = {name for text in _asked_of_cloudwatch().values() for name in _DCGM.findall(text)}
    assert asked == set(GPU_SERIES)


def test_nothing_asks_cloudwatch_for_series_of_engines_and_frontends() -> None:
    """Agents send none of them: 1.9 million series of 7,816 workers."""
    assert {
        where: found for where, text in _asked_of_cloudwatch().items() if (found := _RAW.findall(text))
    } == {}
