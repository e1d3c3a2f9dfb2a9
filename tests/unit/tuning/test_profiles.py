"""Speeds come from the catalogue, or are recorded once; what cannot be is said."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import astuple
from pathlib import Path

import pytest

from inference_blueprints import catalog, tools
from inference_blueprints.tuning.profiles import Profiles, Speed

KNOWN = Speed("Qwen/Qwen3-8B", "l40s", 1, "vllm")
MISSING = Speed("Qwen/Qwen3-8B", "l40s", 8, "vllm")

#: Stands for uv: copies a profile of the catalogue to where the recording program would write it.
RECORDER = """\
#!/bin/sh
echo "$@" >> "{log}"
for last; do :; done
target="$last/latency_profiles/vllm/Qwen/Qwen3-8B"
mkdir -p "$target" && cp "{profile}" "$target/l40s-tp8.json"
"""
FAILING = "#!/bin/sh\necho first >&2\necho 'no data for this model' >&2\nexit 1\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    def install(text: str) -> None:
        path = tmp_path / "uv"
        path.write_text(text, encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setattr(tools, "uv", lambda: path)

    return install


def test_the_catalogue_s_own_is_taken_and_nothing_is_recorded(
    tmp_path: Path, program: Callable[[str], None]
) -> None:
    program(FAILING)
    assert Profiles(tmp_path).record([KNOWN], pytest.fail) == {}
    assert Profiles(tmp_path).find(*astuple(KNOWN)) == catalog.latency_profile(*astuple(KNOWN))


def test_a_missing_one_is_recorded_once_and_kept(tmp_path: Path, program: Callable[[str], None]) -> None:
    source = catalog.latency_profile(*astuple(KNOWN))
    file = next(catalog.catalogue.shipped().directory.rglob("Qwen3-8B/l40s-tp1.json"))
    program(RECORDER.format(log=tmp_path / "log", profile=file))
    said: list[str] = []
    store = Profiles(tmp_path / "store")
    assert store.record([MISSING, MISSING], said.append) == {}
    assert store.find(*astuple(MISSING)) == source
    assert store.record([MISSING], said.append) == {}
    [command] = (tmp_path / "log").read_text(encoding="utf-8").splitlines()
    assert "record_latency_profile.py Qwen/Qwen3-8B l40s 8 --engine vllm --directory" in command
    assert len(said) == 1
    assert "Qwen/Qwen3-8B on 8 x l40s (vllm)" in said[0]


def test_why_one_cannot_be_recorded_is_said(tmp_path: Path, program: Callable[[str], None]) -> None:
    program(FAILING)
    reasons = Profiles(tmp_path).record([MISSING], lambda _: None)
    assert reasons == {MISSING: "it cannot be recorded: no data for this model"}
    assert not list(tmp_path.rglob("*.json"))


def test_an_accelerator_without_measurements_is_not_tried(
    tmp_path: Path, program: Callable[[str], None]
) -> None:
    program(FAILING)
    without = next(name for name, each in catalog.accelerators().items() if each.performance_system is None)
    speed = Speed("Qwen/Qwen3-8B", without, 1, "vllm")
    reasons = Profiles(tmp_path).record([speed], pytest.fail)
    assert reasons == {speed: f"aiconfigurator has no measurements of {without}"}


def test_without_uv_nothing_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "uv", lambda: None)
    reasons = Profiles(tmp_path).record([MISSING], pytest.fail)
    assert reasons == {MISSING: "recording it needs the program uv, which is not installed"}
