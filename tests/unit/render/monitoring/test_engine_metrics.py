"""The page lists every engine's metrics that rules ask for, and says where an engine has none."""

from __future__ import annotations

import re

import pytest

from inference_blueprints.render.monitoring.platform_rules import worker_recordings
from inference_blueprints.render.monitoring.recordings import recordings
from inference_blueprints.resources import root
from inference_blueprints.serving.engines import ENGINES
from tests.local.monitoring.asked import rule_expressions

_REPORTED = re.compile(r"\b(?:dynamo_frontend_\w+|(?:vllm|vllm_omni|sglang|llamacpp):\w+|trtllm_\w+)")
_SUFFIX = re.compile("_(bucket|sum|count)$")
#: Recordings of which an engine has no metric.
_NOT_REPORTED = {"serving_kv_cache_use": {"llamaCpp", "vllmOmni"}}
_SECTION = "## What each engine and stack reports"


@pytest.fixture(scope="module")
def section() -> str:
    page = (root() / "docs/observability.md").read_text(encoding="utf-8")
    return page.partition(_SECTION)[2].partition("\n## ")[0]


def _programs() -> set[str]:
    return {key for each in recordings() for key in each.promql} - {"any"}


def test_every_program_of_a_recording_is_an_engine_or_a_stack() -> None:
    servers = {engine.own_server.program for engine in ENGINES.values() if engine.own_server}
    assert _programs() <= {*ENGINES, "dynamo", *servers}
    assert _programs() >= {*ENGINES, "dynamo", "vllmServer"}


def test_rules_of_an_engine_s_own_server_are_the_same_on_every_stack_without_dynamo() -> None:
    plans = {stack: rule_expressions({stack: {}}) for stack in ("llmD", "direct", "dynamo")}
    assert plans["direct"] == plans["llmD"]
    assert "vllm:request_success_total" in plans["direct"]["serving_requests_per_second"]
    assert "dynamo_frontend_requests_total" in plans["dynamo"]["serving_requests_per_second"]


def test_every_recording_of_an_engine_knows_all_engines() -> None:
    """A new engine without these metrics must be listed, or its alarms are silent."""
    for each in recordings():
        if "vllm" in each.promql:
            assert set(each.promql) == set(ENGINES) - _NOT_REPORTED.get(each.name, set()), each.name


def test_the_page_names_every_metric_that_rules_ask_for(section: str) -> None:
    asked = {
        _SUFFIX.sub("", name)
        for each in recordings()
        for promql in each.promql.values()
        for name in _REPORTED.findall(promql)
    }
    listed = set(_REPORTED.findall(section))
    assert asked - listed == set()
    of_workers = {
        _SUFFIX.sub("", name)
        for each in worker_recordings()
        for promql in each.promql.values()
        for name in _REPORTED.findall(promql)
    }
    assert listed - asked - of_workers == set(), "no rule asks for them"


def test_the_page_says_which_workers_are_not_compared(section: str) -> None:
    compared = {engine for each in worker_recordings() for engine in each.promql}
    assert compared == {"vllm", "sglang"}
    assert "its workers are not compared" in section
