"""The benchmark of the front door beside other gateways, without them: pins, configuration and rows."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks import front_door_peers
from benchmarks.harness.figure import ROOT, BenchmarkError
from benchmarks.harness.paced_streams import PacedChunks
from benchmarks.harness.peers import ai_gateway
from benchmarks.harness.peers.installed import installing
from benchmarks.harness.peers.litellm import LITELLM
from inference_contracts.errors import UserError


def test_every_package_of_litellm_has_a_version_and_hashes() -> None:
    entries = re.split(r"\n(?=\S)", LITELLM.requirements.read_text().strip())
    wrong = [
        each for each in entries if not re.match(r"[a-z0-9-]+==\S+( \\\n +--hash=sha256:\w{64})+$", each)
    ]
    assert wrong == []


def test_the_page_and_the_lock_name_the_measured_releases() -> None:
    release = LITELLM.locked_version("litellm")
    assert f"LiteLLM {release}" in (front_door_peers.__doc__ or "")
    assert f"litellm[proxy]=={release}'" in (ROOT / "Makefile").read_text()
    assert f"gateway {ai_gateway.PROCESSOR.version.removeprefix('v')}" in (front_door_peers.__doc__ or "")


def test_what_cannot_be_installed_fails_the_benchmark(capsys: pytest.CaptureFixture[str]) -> None:
    """Red if a gateway that is not there gives a row."""
    with pytest.raises(BenchmarkError, match="LiteLLM could not be installed"), installing("LiteLLM"):
        raise UserError("the index refused litellm")
    assert "the index refused litellm" in capsys.readouterr().err


def test_a_limit_is_asked_before_a_request_and_told_its_cost_after_it() -> None:
    document = ai_gateway.envoy_document(1, Path("/none"), 2, limits=3)
    [listener] = document["static_resources"]["listeners"]
    manager = listener["filter_chains"][0]["filters"][0]["typed_config"]
    route = manager["route_config"]["virtual_hosts"][0]["routes"][0]
    [limits] = route["typed_per_filter_config"].values()
    asked, told = limits["rate_limits"][:4], limits["rate_limits"][4:]
    assert [each["actions"] for each in asked] == [each["actions"] for each in told]
    assert all(each["hits_addend"] == {"number": 0} for each in asked)
    assert all(each["apply_on_stream_done"] and "nano_dollars" in json.dumps(each) for each in told)
    assert "ratelimit" not in json.dumps(ai_gateway.envoy_document(1, Path("/none"), 2, limits=None))


def test_goals_are_shares_of_the_other_gateways() -> None:
    rows = {each.name: each for each in front_door_peers.compared("", "us", [100, 300, 500, 600, 6000])}
    assert {name: (row.ratio, row.goal) for name, row in rows.items()} == {
        "front_door_peers_bare": (3.0, None),
        "front_door_peers_ai_gateway": (0.6, 0.6),
        "front_door_peers_ai_gateway_limits": (0.5, None),
        "front_door_peers_litellm": (0.05, 0.05),
    }
    assert all(row.met for row in rows.values() if row.goal)


def test_a_chunk_costs_what_was_spent_while_chunks_came() -> None:
    assert PacedChunks(chunks=2000, processor_seconds=0.5, failed=0).microseconds == 250
