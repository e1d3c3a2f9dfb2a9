from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from inference_blueprints import resources
from inference_blueprints.serving.checks.serving_checks import serving_findings
from inference_blueprints.serving.performance import transfer_bytes, transfer_seconds
from inference_blueprints.serving.resolved import resolve
from inference_blueprints.spec.types import Blueprint
from inference_contracts.errors import Finding

PLACE = ("spec", "models", 0, "deployments", 0, "disaggregated")

Make = Callable[..., Blueprint]


@pytest.fixture(scope="session")
def _document() -> dict[str, Any]:
    path = resources.blueprints_directory() / "p5en-disaggregated.yaml"
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


@pytest.fixture
def disaggregated(_document: dict[str, Any]) -> Make:
    """Return a maker of the shipped blueprint with changes to its parts."""

    def make(
        *,
        prefill: dict[str, Any] | None = None,
        decode: dict[str, Any] | None = None,
        pool: dict[str, Any] | None = None,
        workload: dict[str, Any] | None = None,
        **model: Any,
    ) -> Blueprint:
        document = copy.deepcopy(_document)
        document["spec"]["pools"][0] |= pool or {}
        section = document["spec"]["models"][0]
        roles = section["deployments"][0]["disaggregated"]
        roles["prefill"] |= prefill or {}
        roles["decode"] |= decode or {}
        section["workload"] |= workload or {}
        section |= model
        return Blueprint.model_validate(document)

    return make


def _one(blueprint: Blueprint) -> Finding:
    [finding] = serving_findings(blueprint)
    return finding


def test_the_shipped_blueprint_has_nothing_to_find(disaggregated: Make) -> None:
    assert list(serving_findings(disaggregated())) == []


def test_decode_reads_its_heads_from_one_prefill_device(disaggregated: Make) -> None:
    finding = _one(disaggregated(prefill={"tensorParallelSize": 4}, decode={"tensorParallelSize": 2}))
    assert finding.path == (*PLACE, "decode", "tensorParallelSize")
    assert finding.severity == "error"
    assert finding.message.startswith("got 2, must be a multiple of prefill's 4")
    assert "raise it to 4" in finding.message


@pytest.mark.parametrize("engine", ["sglang", "tensorrtLlm"])
def test_engines_that_gather_heads_may_have_fewer_decode_devices(engine: str, disaggregated: Make) -> None:
    sizes = {"prefill": {"tensorParallelSize": 4}, "decode": {"tensorParallelSize": 2}}
    found = serving_findings(disaggregated(**sizes, pool={"nodes": {"max": 7}}, engine={engine: {}}))
    assert [finding for finding in found if "must be a multiple" in finding.message] == []


def test_latent_attention_may_have_fewer_decode_devices(disaggregated: Make) -> None:
    blueprint = disaggregated(
        pool={"instanceTypes": ["p6-b300.48xlarge"]},
        weights={"huggingFace": "deepseek-ai/DeepSeek-R1"},
        prefill={"tensorParallelSize": 8, "replicas": 2},
        decode={"tensorParallelSize": 4, "replicas": 2},
    )
    assert not [each for each in serving_findings(blueprint) if "multiple of prefill" in each.message]


def test_the_cache_of_a_prompt_by_hand(disaggregated: Make) -> None:
    """64 layers of 8 KV heads of 128, keys and values of two bytes: 262,144 bytes a token."""
    prefill, decode = resolve(disaggregated(), 0, 0)
    assert transfer_bytes(prefill) == 3000 * 262_144
    # One GPU of eight has an eighth of 3,200 Gbit/s.
    assert transfer_seconds(prefill, decode) == pytest.approx(3000 * 262_144 / (3200e9 / 8 / 8))


def test_without_efa_one_card_is_shared(disaggregated: Make) -> None:
    prefill, decode = resolve(disaggregated(pool={"efa": False}), 0, 0)
    assert transfer_seconds(prefill, decode) == pytest.approx(3000 * 262_144 / (3200e9 / 16 / 8 / 8))


@pytest.mark.parametrize(("objective", "severity"), [(1000.0, "warning"), (300.0, "error"), (10_000.0, None)])
def test_a_transfer_is_held_against_the_time_to_the_first_token(
    objective: float, severity: str | None, disaggregated: Make
) -> None:
    blueprint = disaggregated(
        pool={"efa": False, "nodes": {"max": 9}},
        prefill={"replicas": 40},
        decode={"replicas": 4},
        workload={"inputTokens": 4000, "peakRequestsPerSecond": 4.0},
        objectives={"timeToFirstTokenP90Ms": objective},
    )
    found = [each for each in serving_findings(blueprint) if "KV cache of 4000 tokens takes" in each.message]
    assert [each.severity for each in found] == ([severity] if severity else [])
    assert all("TCP, without EFA" in each.message for each in found)


def test_the_bottleneck_is_named_with_what_would_do(disaggregated: Make) -> None:
    finding = _one(disaggregated(prefill={"replicas": 4}))
    assert finding.path == (*PLACE, "prefill", "replicas")
    assert finding.severity == "warning"
    assert finding.message.startswith("prefill is the bottleneck (simulated)")
    replicas = int(finding.message.rpartition("; set replicas: ")[2])
    assert list(serving_findings(disaggregated(prefill={"replicas": replicas}))) == []
    assert list(serving_findings(disaggregated(prefill={"replicas": replicas - 1})))


def test_decode_is_held_against_the_time_per_token(disaggregated: Make) -> None:
    objectives = {"timeToFirstTokenP90Ms": 1000.0, "timePerOutputTokenP90Ms": 9.0}
    finding = _one(disaggregated(objectives=objectives))
    assert finding.path == (*PLACE, "decode", "replicas")
    assert finding.message.startswith("decode is the bottleneck (simulated)")


def test_short_prompts_are_doubted(disaggregated: Make) -> None:
    finding = _one(disaggregated(workload={"inputTokens": 3000, "sharedPrefixRatio": 0.8}))
    assert (finding.path, finding.severity) == (PLACE, "warning")
    assert finding.message.startswith("prompts have 600 unshared tokens")


def test_g6e_is_doubted_with_the_reason(disaggregated: Make) -> None:
    blueprint = disaggregated(
        pool={"instanceTypes": ["g6e.48xlarge"], "efa": False, "nodes": {"max": 9}},
        weights={"huggingFace": "Qwen/Qwen3-8B"},
        workload={"peakRequestsPerSecond": 1.0},
    )
    assert any(
        "through host memory" in each.message and "l40s" in each.message
        for each in serving_findings(blueprint)
    )


@pytest.mark.parametrize(
    ("name", "size", "allowed"),
    [
        ("Qwen/Qwen3-235B-A22B-FP8", 8, "1, 2, 4"),
        ("Qwen/Qwen3-30B-A3B-FP8", 4, "1, 2"),
    ],
)
def test_fp8_blocks_stay_whole(name: str, size: int, allowed: str, disaggregated: Make) -> None:
    """1536 and 768 numbers of an expert over so many devices are no multiples of 128."""
    blueprint = disaggregated(
        weights={"huggingFace": name},
        prefill={"tensorParallelSize": size},
        decode={"tensorParallelSize": size},
    )
    found = [each for each in serving_findings(blueprint) if "whole blocks of 128" in each.message]
    assert len(found) == 2
    assert all(each.message.endswith(f"allowed are {allowed}") for each in found)
