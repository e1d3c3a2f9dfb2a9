"""Speeds come from the catalogue, or are recorded once; what cannot be is said."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest

import inference_catalog as catalog
from inference_blueprints import tools
from inference_blueprints.measure.tuning.profiles import Profiles, Speed
from tests.unit.stand_in_programs import Call, Printed, StandInPrograms

KNOWN = Speed("Qwen/Qwen3-8B", "l40s", 1, "vllm")
MISSING = Speed("Qwen/Qwen3-8B", "l40s", 8, "vllm")

FAILED = Printed(err="first\nno data for this model\n", code=1)


@pytest.fixture
def uv(monkeypatch: pytest.MonkeyPatch) -> StandInPrograms:
    """uv, which records nothing."""
    programs = StandInPrograms(monkeypatch)
    programs.add("uv", lambda _: FAILED)
    monkeypatch.setattr(tools, "uv", lambda: Path("uv"))
    return programs


def test_the_catalogue_s_own_is_taken_and_nothing_is_recorded(tmp_path: Path, uv: StandInPrograms) -> None:
    assert Profiles(tmp_path).record([KNOWN], pytest.fail) == {}
    assert Profiles(tmp_path).find(*astuple(KNOWN)) == catalog.latency_profile(*astuple(KNOWN))
    assert uv.calls == []


def test_a_missing_one_is_recorded_once_and_kept(tmp_path: Path, uv: StandInPrograms) -> None:
    source = catalog.latency_profile(*astuple(KNOWN))
    file = next(catalog.catalogue.shipped().directory.rglob("Qwen3-8B/l40s-tp1.json"))

    def record(call: Call) -> Printed:
        target = Path(call.words[-1]) / "latency_profiles/vllm/Qwen/Qwen3-8B/l40s-tp8.json"
        target.parent.mkdir(parents=True)
        target.write_bytes(file.read_bytes())
        return Printed()

    uv.add("uv", record)
    said: list[str] = []
    store = Profiles(tmp_path / "store")
    assert store.record([MISSING, MISSING], said.append) == {}
    assert store.find(*astuple(MISSING)) == source
    assert store.record([MISSING], said.append) == {}
    [call] = uv.calls
    command = " ".join(call.words)
    assert "record_latency_profile.py Qwen/Qwen3-8B l40s 8 --engine vllm --directory" in command
    assert len(said) == 1
    assert "Qwen/Qwen3-8B on 8 x l40s (vllm)" in said[0]


def test_why_one_cannot_be_recorded_is_said(tmp_path: Path, uv: StandInPrograms) -> None:
    reasons = Profiles(tmp_path).record([MISSING], lambda _: None)
    assert reasons == {MISSING: "it cannot be recorded: no data for this model"}
    assert not list(tmp_path.rglob("*.json"))


def test_weights_in_another_type_are_recorded_by_their_own_name(tmp_path: Path, uv: StandInPrograms) -> None:
    quantised = Speed("meta-llama/Llama-3.3-70B-Instruct in fp8", "h200", 2, "vllm")
    Profiles(tmp_path).record([quantised], lambda _: None)
    [call] = uv.calls
    assert "record_latency_profile.py meta-llama/Llama-3.3-70B-Instruct in fp8 h200 2" in " ".join(call.words)


@pytest.mark.parametrize(
    "model", ["Qwen/Qwen3-8B in fp8 with speculation", "Qwen/Qwen3-8B in Q4_K_M", "my/own"]
)
def test_what_cannot_be_recorded_starts_no_program(model: str, tmp_path: Path, uv: StandInPrograms) -> None:
    """Each of them installed 0.7 GB, and ended with the name of an exception."""
    speed = Speed(model, "h200", 2, "vllm")
    [(_, reason)] = Profiles(tmp_path).record([speed], pytest.fail).items()
    assert reason.startswith("only models of the catalogue can be recorded")
    assert uv.calls == []


def test_an_accelerator_without_measurements_is_not_tried(tmp_path: Path, uv: StandInPrograms) -> None:
    without = next(name for name, each in catalog.accelerators().items() if each.performance_system is None)
    speed = Speed("Qwen/Qwen3-8B", without, 1, "vllm")
    reasons = Profiles(tmp_path).record([speed], pytest.fail)
    assert reasons == {speed: f"aiconfigurator has no measurements of {without}"}


def test_without_uv_nothing_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "uv", lambda: None)
    reasons = Profiles(tmp_path).record([MISSING], pytest.fail)
    assert reasons == {MISSING: "recording it needs the program uv, which is not installed"}
